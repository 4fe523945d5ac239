from __future__ import annotations

import json
from pathlib import Path

import pytest

from sidecars.observer.observe.events import EventReader
from sidecars.observer.observe.recorded import read_events, read_screens, read_transcript
from tests.sidecars.conftest import as_payload, tool_event
from witness.errors import UsageError
from witness.events.spool_reader import append_event


def test_a_spool(tmp_path: Path) -> None:
    append_event(tmp_path, as_payload(tool_event("Bash", command="a")))
    with (tmp_path / "events.jsonl").open("ab") as spool:
        spool.write(b"torn {\n")
    append_event(tmp_path, as_payload(tool_event("Bash", command="b")))
    moments = read_events(tmp_path / "events.jsonl")
    assert [moment.payload["tool_input"]["command"] for moment in moments if moment.payload] == ["a", "b"]


def entry(kind: str, content: object, **more: object) -> str:
    return json.dumps(
        {"type": kind, "timestamp": "2026-11-30T12:00:00.500Z", "cwd": "/w", "message": {"content": content}} | more
    )


def test_a_transcript_is_read_as_its_hooks_would_have_told_it(tmp_path: Path) -> None:
    edit = {"type": "tool_use", "id": "1", "name": "Edit", "input": {"file_path": "/w/a.py", "new_string": "x"}}
    failing = {"type": "tool_use", "id": "2", "name": "Bash", "input": {"command": "false"}}
    unfinished = {"type": "tool_use", "id": "3", "name": "Read", "input": {"file_path": "b.py"}}
    thought = {"type": "thinking", "thinking": "I will edit secret.py"}
    failure = {"type": "tool_result", "tool_use_id": "2", "content": "exit 1", "is_error": True}
    lines = [
        entry("user", "fix it", uuid="u1"),
        entry("assistant", [thought, {"type": "text", "text": "Now."}]),
        entry("assistant", [edit, failing]),
        entry("user", [{"type": "tool_result", "tool_use_id": "1", "content": "ok"}]),
        entry("user", [failure], isSidechain=True),
        entry("assistant", [unfinished]),
        "not json",
        "{}",
        '{"message": {"content": [1, null]}}',
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    moments = read_transcript(tmp_path / "t.jsonl")
    reader = EventReader("/w")
    seen = [reader.read(moment.payload or {}, moment.id, moment.time) for moment in moments]
    assert [each.tool for each in seen if each] == ["UserPromptSubmit", "Edit", "Bash"]
    assert seen[1] is not None
    assert seen[1].written == ("a.py",)
    assert seen[2] is not None
    assert (seen[2].failed, seen[2].subagent) == (True, "subagent")
    assert moments[0].time == pytest.approx(1796040000.5)


def test_screens(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ftwo")
    (tmp_path / "b").write_bytes(b"three \xff")
    moments = read_screens([tmp_path / "a", tmp_path / "b"], 10.0)
    assert [(moment.time, moment.screen) for moment in moments] == [(0.0, "one"), (10.0, "two"), (20.0, "three \ufffd")]


@pytest.mark.parametrize("read", [read_events, read_transcript])
def test_nothing_recorded(tmp_path: Path, read: object) -> None:
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(UsageError, match="holds no recorded event"):
        read(tmp_path / "empty")  # type: ignore[operator]
    with pytest.raises(UsageError, match="cannot be read"):
        read(tmp_path / "missing")  # type: ignore[operator]
