"""What was saved, line by line and in sums."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sidecars.distill import Exit
from sidecars.distill.answer import Answer, Spending
from sidecars.distill.ledger import MOST_SAVED, Ledger
from witness.clock import ManualClock


def answer(**changes: object) -> Answer:
    fields: dict[str, object] = {"bytes_in": 400_000, "seconds": 0.5, "outcome": Exit.ANSWERED}
    spending = Spending("model", "claude-haiku-5-5", 2, 3000, 0, 200, 0.001)
    return Answer("a" * 80, (), (), (), spending, **{**fields, **changes})  # type: ignore[arg-type]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "state", ManualClock())


def test_each_answer_is_a_line(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GT_WITNESS_GROUP", "main/toast/r1")
    ledger.write(answer())
    (line,) = ledger.lines()
    assert line["time"] == "2027-01-15T08:00:00+00:00"
    assert (line["run"], line["backend"], line["outcome"]) == ("main/toast/r1", "model", "ANSWERED")
    assert line["tokens_in"] == 100_000
    assert line["tokens_saved"] == 100_000 - line["bytes_out"] // 4
    assert line["model_tokens"] == 3200
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600


def test_sums_by_run(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.write(answer(outcome=Exit.UNVERIFIED))
    monkeypatch.setenv("GT_WITNESS_GROUP", "main/toast/r1")
    ledger.write(answer())
    ledger.write(answer(outcome=Exit.TIMEOUT))
    stats = ledger.stats()
    assert (stats["questions"], stats["answered"], stats["unverified"], stats["failed"]) == (3, 1, 1, 1)
    assert stats["dollars"] == 0.003
    assert [(each["run"], each["questions"]) for each in stats["runs"]] == [("", 1), ("main/toast/r1", 2)]


def test_a_small_artifact_saves_nothing_and_a_huge_one_no_more_than_a_window(ledger: Ledger) -> None:
    ledger.write(answer(bytes_in=10))
    ledger.write(answer(bytes_in=5 << 30))
    small, huge = ledger.lines()
    assert small["tokens_saved"] == 0
    assert huge["tokens_in"] == MOST_SAVED


def test_torn_lines_spoil_only_themselves(ledger: Ledger) -> None:
    ledger.write(answer())
    with ledger.path.open("ab") as file:
        file.write(b'\n{"questions": 1, "byt')
    ledger.write(answer())
    assert ledger.stats()["questions"] == 2


def test_without_a_ledger_all_is_zero(ledger: Ledger) -> None:
    assert ledger.stats()["questions"] == 0


def test_a_ledger_that_cannot_be_written_loses_no_answer(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    Ledger(tmp_path / "state").write(answer())


def test_nothing_that_was_asked_or_answered_is_written_down(ledger: Ledger) -> None:
    ledger.write(answer())
    assert b"aaaa" not in ledger.path.read_bytes()
    assert os.listdir(ledger.path.parent) == ["distill.jsonl"]
