"""What was seen of a call is what is told of it: live, late, and when the spool is read again."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sidecars.observer.factory import Components
from sidecars.observer.observe.event_source import EventWatch
from sidecars.observer.observe.events import EventReader
from sidecars.observer.observe.recorded import RecordedEvent, read_events
from sidecars.tuning.evaluate import Case, evaluate, load_cases
from sidecars.tuning.replay import replay
from sidecars.type_reader.type_loader import load_type
from tests.events.looked import Looked
from tests.sidecars.conftest import tool_event
from witness.assignment import Assignment
from witness.events.effects import Effects
from witness.events.spool_reader import SpooledEvent
from witness.judging.observation import Observation


def spooled(effects: Effects | None, command: str = "./do-it", id: str = "5000000000-1", **more: Any) -> SpooledEvent:
    payload = tool_event("Bash", command=command) | more.pop("payload", {})
    return SpooledEvent(id, 5.0, payload, effects=effects, **more)


@pytest.fixture
def reader(tmp_path: Path) -> EventReader:
    return EventReader(str(tmp_path))


def see(reader: EventReader, event: SpooledEvent) -> Observation:
    seen = reader.see(event)
    assert seen is not None
    return seen


def test_what_was_seen_counts_and_not_what_the_command_says(reader: EventReader) -> None:
    seen = see(reader, spooled(Effects(("a",), ("b",), ("c",)), "sed -i s/x/y/ other.py"))
    assert (seen.written, seen.created, seen.removed, seen.seen) == (("a", "b", "c"), ("b",), ("c",), "effect")
    assert [seen.done()[path] for path in seen.written] == ["was changed", "was created", "was removed"]
    seen = see(reader, spooled(Effects(), "sed -i s/x/y/ other.py", id="6-1"))
    assert (seen.written, seen.seen) == ((), "effect")


def test_where_nobody_looked_the_command_is_read_and_that_is_said(reader: EventReader) -> None:
    seen = see(reader, spooled(None, "sed -i s/x/y/ other.py"))
    assert (seen.written, seen.seen) == (("other.py",), "read")


def test_an_edit_is_told_by_the_clients_own_tool(reader: EventReader) -> None:
    event = SpooledEvent("1-1", 1.0, tool_event("Write", file_path="n.py", content="x"), effects=Effects((), ("n.py",)))
    seen = see(reader, event)
    assert (seen.written, seen.created, seen.seen) == (("n.py",), ("n.py",), "client")
    patch = (
        "*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b\n*** Update File: c\n*** Move to: d\n*** End Patch"
    )
    seen = see(reader, SpooledEvent("2-1", 1.0, tool_event("apply_patch", command=patch)))
    assert (seen.created, seen.removed) == (("a", "d"), ("b", "c"))


def test_a_tool_of_a_server_is_believed_by_what_it_did(reader: EventReader) -> None:
    event = SpooledEvent("1-1", 1.0, tool_event("mcp__any__refactor", symbol="x"), effects=Effects(("a.py",)))
    assert see(reader, event).written == ("a.py",)


def test_a_failed_command_has_done_what_was_seen(reader: EventReader) -> None:
    failed = {"hook_event_name": "PostToolUseFailure", "error": "Exit code 3"}
    seen = see(reader, spooled(Effects(created=("half",), exit=3), "make half other", payload=failed))
    assert (seen.failed, seen.written) == (True, ("half",))
    assert see(reader, spooled(None, "sed -i s/x/y/ other.py", id="6-1", payload=failed)).written == ()


def test_what_a_command_opened_is_only_read(scope: Components, assignment: Assignment) -> None:
    event = spooled(Effects(("src/private/b",)), "cat src/private/a; ./change")
    moments = [RecordedEvent(event.time, event.id, event.payload, event=event)]
    decisions = replay(scope, assignment, moments).decisions
    assert {each.evidence: each.seen for each in decisions} == {
        "wrote: src/private/b": "effect",
        "opened: src/private/a": "read",
    }


def test_names_are_relative_to_where_the_call_began(reader: EventReader, tmp_path: Path) -> None:
    after = {"cwd": str(tmp_path / "sub")}
    effects = Effects(("sub/a.py",), cwd_before=str(tmp_path))
    assert see(reader, spooled(effects, "cd sub && cat b.py > a.py", payload=after)).opened == ("sub/b.py",)


def test_a_file_that_links_lead_to_has_both_names(reader: EventReader, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "link").symlink_to("private")
    seen = see(reader, spooled(Effects(created=("private/x",)), "echo 1 > link/x", payload={"cwd": str(tmp_path)}))
    assert set(seen.written) == {"private/x", "link/x"}


def test_what_was_seen_late_is_told_late_once_and_with_the_time_of_the_call(reader: EventReader) -> None:
    seen = see(reader, spooled(None, "sed -i s/x/y/ other.py", awaited=True, payload={"agent_id": "1"}))
    assert seen.written == ()
    late = see(reader, SpooledEvent("9000000000-2", 9.0, {}, effects=Effects(("a",)), of="5000000000-1"))
    assert (late.written, late.time, late.subagent, late.command) == (("a",), 5.0, "subagent", "")
    assert reader.see(SpooledEvent("9000000000-3", 9.0, {}, effects=Effects(), of="5000000000-1")) is None
    # A reader that was started meanwhile knows when the call was.
    late = see(EventReader("/x"), SpooledEvent("9000000000-2", 9.0, {}, effects=Effects(("a",)), of="5000000000-1"))
    assert (late.written, late.time) == (("a",), 5.0)


def said(scope: Components, assignment: Assignment, *events: SpooledEvent) -> list[str]:
    moments = [RecordedEvent(event.time, event.id, event.payload, event=event) for event in events]
    return [each.message for each in replay(scope, assignment, moments).spoken]


@pytest.mark.parametrize(
    ("effects", "words"),
    [
        (Effects(("src/private/a",)), "src/private/a was changed, and"),
        (Effects((), ("src/private/a",)), "src/private/a was created, and"),
        (Effects((), (), ("src/private/a",)), "src/private/a was removed, and"),
        (Effects((), ("docs/a",)), "docs/a was created; the files"),
        (Effects(("local.env",), generated=("local.env",)), "local.env was changed, and"),
        (Effects((), ("docs/a.pyc",), generated=("docs/a.pyc",)), ""),
        (Effects(generated=("node_modules/",)), ""),
        (Effects(), ""),
    ],
)
def test_the_words_are_what_was_seen(scope: Components, assignment: Assignment, effects: Effects, words: str) -> None:
    (message,) = said(scope, assignment, spooled(effects, "echo > src/private/other")) or [""]
    assert message.startswith(f"[sidecar:scope] {words}") if words else message == ""


def test_scope_hears_of_what_a_servers_tool_did(scope: Components, assignment: Assignment) -> None:
    event = SpooledEvent("1-1", 1.0, tool_event("mcp__any__refactor", symbol="x"), effects=Effects(("src/private/a",)))
    assert [message[:40] for message in said(scope, assignment, event)] == ["[sidecar:scope] src/private/a was change"]


def test_a_case_says_what_was_seen() -> None:
    def case(**seen: Any) -> Case:
        event = {"tool": "Bash", "command": "sed -i s/a/b/ $f", **seen}
        return Case("c", "scope", ({**event},), signal=True, task="---\nnot: [secret/**]\n---\nDo it.\n")

    kind = load_type("scope")
    cases = [case(changed=["secret/a"]), case(created=["secret/a"]), case(changed=[]), case()]
    assert [bool(result.spoke) for result in evaluate(cases, kind).results] == [True, True, False, False]


def test_a_file_of_cases_says_what_was_seen(tmp_path: Path) -> None:
    (tmp_path / "cases.yaml").write_text(
        "type: scope\ncases:\n"
        "- {name: a, event: {tool: Bash, command: x}, changed: [a], removed: [b], exit: 0, expect: signal}\n"
        "- {name: b, events: [{tool: Bash, command: x, created: [c]}, {tool: Read}], expect: silent}\n"
    )
    one, two = load_cases(tmp_path / "cases.yaml")
    assert Effects.from_json(one.events[0]) == Effects(("a",), (), ("b",), exit=0)
    assert Effects.from_json(two.events[0]) == Effects((), ("c",))


def test_a_spool_read_again_tells_what_was_seen_live(scope: Components, assignment: Assignment, tmp_path: Path) -> None:
    tree = Path(assignment.workdir)
    (tree / "src").mkdir()
    (tree / "src/a.py").write_text("x = 1\n")
    with Looked(tmp_path / "runs", tree) as looked:
        run = looked.run()
        for command in ("sed -i s/1/2/ src/a.py", "sed -i s/9/2/ src/a.py", "f=src/n; echo > $f", "rm src/*.py; false"):
            run.call(command)
        run.end("cat src/n", time.time(), 0, agent_id="sub", agent_type="coder")
        live = EventWatch(scope.kind, replace(assignment, run_dir=str(run.spool.parent)), "")
        seen = live.look()
    assert seen is not None
    reader = EventReader(str(tree))
    again = [reader.see(moment.event) for moment in read_events(run.spool / "events.jsonl") if moment.event]
    assert [each for each in again if each and not each.prompt] == seen
    assert [each.written for each in seen[1:]] == [("src/a.py",), (), ("src/n",), ("src/a.py",), ()]
