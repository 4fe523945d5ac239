from __future__ import annotations

import json
from pathlib import Path

import pytest

from witness.process import ProcessId
from witness.process.exits import UNKNOWN_EXIT, Exit, ExitKind, agent_exit, recorded_exit

ME = ProcessId(4711, 99)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (None, ExitKind.UNKNOWN),
        (0, ExitKind.ENDED),
        (1, ExitKind.CRASH),
        (2, ExitKind.CRASH),
        (3, ExitKind.BAD_CONFIGURATION),
        (4, ExitKind.LIMITED),
        (137, ExitKind.CRASH),
    ],
)
def test_what_a_code_asks_for(code: int | None, kind: ExitKind) -> None:
    assert Exit(code).kind is kind


def _write(run_dir: Path, text: str) -> None:
    (run_dir / "exits").mkdir()
    (run_dir / "exits" / "scope.json").write_text(text)


def test_the_recorded_exit_of_exactly_this_process(tmp_path: Path) -> None:
    _write(tmp_path, json.dumps({"pid": 4711, "started": 99, "code": 3}))
    assert recorded_exit(tmp_path, "scope", ME) == Exit(3)


def test_the_exit_of_the_predecessor_is_not_mine(tmp_path: Path) -> None:
    _write(tmp_path, json.dumps({"pid": 4711, "started": 98, "code": 0}))
    assert recorded_exit(tmp_path, "scope", ME) is UNKNOWN_EXIT


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"pid": 4711}', '{"pid":4711,"started":99,"code":"x"}'])
def test_a_torn_record_is_no_clean_end(tmp_path: Path, text: str) -> None:
    _write(tmp_path, text)
    assert recorded_exit(tmp_path, "scope", ME).kind is ExitKind.UNKNOWN


def test_no_record_at_all(tmp_path: Path) -> None:
    assert recorded_exit(tmp_path, "scope", ME) is UNKNOWN_EXIT
    assert agent_exit(tmp_path) is UNKNOWN_EXIT
    assert agent_exit(tmp_path).describe() == ""


def test_an_agents_end_in_words(tmp_path: Path) -> None:
    (tmp_path / "exit.json").write_text('{"code": 2, "signal": 0}')
    assert agent_exit(tmp_path).describe() == "exit code 2"
    (tmp_path / "exit.json").write_text('{"code": 137, "signal": 9}')
    assert agent_exit(tmp_path).describe() == "exit code 137 (signal 9)"
