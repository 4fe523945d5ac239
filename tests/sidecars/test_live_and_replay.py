"""Ten sessions, made of what real clients gave to their hooks: replayed from the spool they come to the same decisions.

Live is the sidecar's own runner, woken after each event, on a clock that the test moves; what was seen of each call is
what truly changed when the payload was recorded. Some looks are late, as on a slow disk.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from sidecars.observer.factory import assemble
from sidecars.observer.observe.recorded import read_events, read_transcript
from sidecars.observer.watcher import SidecarRunner
from sidecars.tuning.replay import Replay, replay
from tests.sidecars.conftest import start_ticks
from witness.assignment import Assignment
from witness.clock import ManualClock
from witness.events.spool_writer import append_record
from witness.journal import Decision, Journal
from witness.process import ProcessId

PAYLOADS = Path(__file__).parents[1] / "payloads"
ISSUE = "---\nfiles: [sub/**, made.txt]\nnot: [app.py, old.py, '*.ipynb']\n---\nPut the sum right.\n"
CONVENTIONS = "- Never use `cat`.\n- No `echo` in shells.\n- Files in `sub/` are generated; never edit them by hand.\n"
# One that looks at few tools, and goes by the prompt that is typed.
OWN = """
judge: rules
tools: [Edit, Write, Bash]
context: [prompt]
rules:
  - {name: no-tests, writes: ["**"], lacks_block: constraints, say: "{path} {done}: {content}"}
"""
BLOCKS = "<constraints>Nothing new.</constraints>\n"
# Between two events; the longest is longer than the cooldown.
PAUSES = (1.0, 2.0, 7.0, 1.0, 26.0, 3.0)
COOLDOWN = "20s"
START = 1_700_000_000.0


@dataclass(frozen=True)
class Session:
    """What a client did.

    Args:
        client: whose payloads.
        calls: which of them, by an expression on their names.
        turns: how often it came to its end.
        late: every so many looks came too late for their event; 0: none.
        ends: it said that it ended.
        stops: its turns came to their ends before that.
    """

    client: str
    calls: str
    turns: int = 1
    late: int = 0
    ends: bool = True
    stops: bool = True


SESSIONS = {
    "edits": Session("claude-2.1.197", "^(read|edit|write|notebook|glob|grep)-", stops=False),
    "shell": Session("claude-2.1.197", "^bash-"),
    "shell-with-late-looks": Session("claude-2.1.332", "^bash-", late=2),
    "refused-and-failed": Session("claude-2.1.332", "-(failure|half|denied|asked|unread)", turns=3),
    "subagents": Session("claude-2.1.197", "^subagent-"),
    "everything-in-four-turns": Session("claude-2.1.332", "^(?!session)", turns=4, late=3, ends=False),
    "codex": Session("codex-0.171.0", "^(patch|shell)-", turns=2),
    "gemini": Session("gemini-0.61.0", "^(?!session|subagent)", late=4),
    "gemini-subagents": Session("gemini-0.61.0", "^(subagent|shell)-", turns=2, ends=False),
    "opencode": Session("opencode-1.18.33", "^(?!session)"),
}
COMPLETED = re.compile(r"\.(PostToolUse|PostToolUseFailure|AfterTool)\.json$")
DENIED = re.compile(r"-(denied|asked)\.(PreToolUse|BeforeTool)\.json$")


@dataclass(frozen=True)
class Line:
    """One record of a spool, ``seconds`` after the one before."""

    seconds: float
    payload: bytes
    look: bytes = b""
    late: bytes = b""


def recorded(path: Path, work: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8").replace("{WORK}", str(work)).replace("{ROOT}", str(work.parent))
    found: dict[str, Any] = json.loads(text)
    return found


def lines_of(session: Session, work: Path) -> Iterator[Line]:
    folder = PAYLOADS / session.client

    def told(kind: str, **more: Any) -> Iterator[Line]:
        if (path := folder / f"session.{kind}.json").exists():
            payload = recorded(path, work)["payload"] | {"prompt_id": f"p{kind}{more}", **more}
            yield Line(1.0, json.dumps(payload).encode())

    names = [path for path in sorted(folder.glob("*.json")) if re.search(session.calls, path.name)]
    calls = [path for path in names if COMPLETED.search(path.name)]
    assert len(calls) >= 4, "a session of nothing proves nothing"
    assert not any(DENIED.search(path.name) for path in calls), "what was denied has no completed event"
    yield from told("SessionStart")
    for turn in range(session.turns):
        typed = "Go on." if turn else "<role>You put sums right.</role>"
        yield from told("UserPromptSubmit", prompt=typed)
        yield from told("BeforeAgent", prompt=typed)
        for number, path in list(enumerate(calls))[turn :: session.turns]:
            record = recorded(path, work)
            effects = {key: [_below(each, work) for each in record[key]] for key in ("changed", "created", "removed")}
            look = json.dumps(effects).encode()
            late = bool(session.late) and number % session.late == 0
            payload = json.dumps(record["payload"] | {"tool_use_id": f"t{number}", "session_id": "s"}).encode()
            yield Line(PAUSES[number % len(PAUSES)], payload, b"null" if late else look, look if late else b"")
        for kind in ("Stop", "AfterAgent") if session.stops else ():
            yield from told(kind, stop_hook_active=False)
    if session.ends:
        yield from told("SessionEnd")


def _below(path: str, work: Path) -> str:
    return path.removeprefix(f"{work}/")


class Live:
    """A sidecar beside a session, as it lives."""

    def __init__(self, assignment: Assignment) -> None:
        self.assignment, self.clock = assignment, ManualClock(now=1_000.0, date=START)
        self.spool = assignment.spool

    def run(self, lines: list[Line]) -> list[Decision]:
        with SidecarRunner(assemble(self.assignment), self.assignment, self.clock) as runner:
            for line in lines:
                self._pass(runner, line.seconds)
                now = self._now
                append_record(str(self.spool), line.payload, look=line.look, now=now)
                runner.look()
                if line.late:
                    self._pass(runner, 0.5)
                    of = self._ids()[-1].encode()
                    append_record(str(self.spool), b"", look=line.late, of=of, now=self._now)
                    runner.look()
            if b'"SessionEnd"' not in lines[-1].payload:
                self._pass(runner, 600.0)
            runner.finish()
        with Journal(Path(self.assignment.journal)) as journal:
            return journal.decisions.of("run-1", self.assignment.name, last=10_000)

    @property
    def _now(self) -> int:
        return round(self.clock.wall() * 1e9)

    def _ids(self) -> list[str]:
        return [moment.id for moment in read_events(self.spool)]

    def _pass(self, runner: SidecarRunner, seconds: float) -> None:
        while (wait := runner.patience) <= seconds:
            self.clock.advance(wait)
            seconds -= wait
            runner.look()
        self.clock.advance(seconds)


def row(decision: Decision) -> tuple[Any, ...]:
    return (
        decision.event, decision.outcome, decision.gate, decision.rule, decision.message, decision.reason,
        decision.age and round(decision.age, 2), decision.about, decision.seen, decision.subjects,
        round(decision.time, 2), decision.stage if decision.stage in ("held", "unsaid") else "",
    )  # fmt: skip


@pytest.fixture
def project(assignment: Assignment) -> Assignment:
    """The assignment of a project in which three types have something to say."""
    work = Path(assignment.workdir)
    (work / "CONVENTIONS.md").write_text(CONVENTIONS)
    (work / ".gt" / "sidecars" / "own").mkdir(parents=True)
    (work / ".gt" / "sidecars" / "own" / "sidecar.yaml").write_text(OWN)
    (work / ".gt" / "blocks.xml").write_text(BLOCKS)
    agent = ProcessId(int(Path("/proc/self").resolve().name), start_ticks(int(Path("/proc/self").resolve().name)))
    return replace(assignment, task=ISSUE, agent=agent, overrides={"cooldown": COOLDOWN})


def both(project: Assignment, kind: str, session: Session) -> tuple[list[Decision], Replay]:
    mine = replace(project, name=kind, type=kind)
    lines = list(lines_of(session, Path(project.workdir)))
    live = Live(mine).run(lines)
    again = replay(assemble(mine), mine, read_events(mine.spool))
    return live, again


@pytest.mark.parametrize("name", SESSIONS)
@pytest.mark.parametrize("kind", ["scope", "conventions", "own"])
def test_a_replay_comes_to_the_same_decisions(project: Assignment, kind: str, name: str) -> None:
    live, again = both(project, kind, SESSIONS[name])
    assert [row(each) for each in again.decisions] == [row(each) for each in live]
    assert live


def test_the_sessions_have_in_them_what_a_replay_could_get_wrong(project: Assignment, tmp_path: Path) -> None:
    """Else the test above would prove less than it says."""
    decisions: list[Decision] = []
    for number, (name, session) in enumerate(SESSIONS.items()):
        runs = replace(project, run_dir=str(tmp_path / f"run{number}"), journal=str(tmp_path / f"{number}.db"))
        runs.spool.mkdir(parents=True)
        live, again = both(runs, "scope", session)
        decisions += live
        assert again.moments > 5, name
    assert {"injected", "silent"} <= {each.outcome for each in decisions}
    assert {"cooldown"} <= {each.gate for each in decisions}
    assert {"effect", "client"} <= {each.seen for each in decisions}
    assert len({each.about for each in decisions if each.about}) > 1, "a subagent's action"
    assert any(" ago)" in each.message for each in decisions), "a remark that came late"
    assert any(each.stage == "unsaid" for each in decisions), "a remark that the end of the session left"


def test_what_a_bare_transcript_cannot_prove_is_counted(scope: Any, assignment: Assignment, tmp_path: Path) -> None:
    """A shell command without a look is judged by its text, and a call without a result not at all; both are told."""
    path = tmp_path / "s1.jsonl"

    def use(id: str, tool: str, **given: Any) -> dict[str, Any]:
        return {"message": {"content": [{"type": "tool_use", "id": id, "name": tool, "input": given}]}}

    def result(id: str, **more: Any) -> dict[str, Any]:
        return {"message": {"content": [{"type": "tool_result", "tool_use_id": id, "content": "", **more}]}}

    main = [
        use("1", "Bash", command="make all"), result("1"),
        use("2", "Edit", file_path="src/private/a.py", old_string="a", new_string="b"), result("2"),
        use("3", "Edit", file_path="src/private/b.py", old_string="a", new_string="b"), result("3", is_error=True),
        use("4", "Edit", file_path="src/private/c.py", old_string="a", new_string="b"),
    ]  # fmt: skip
    inner = [use("5", "Write", file_path="src/private/d.py", content="x"), result("5")]
    for name, entries, more in (("s1.jsonl", main, {}), ("agent-1.jsonl", inner, {"isSidechain": True})):
        stamped = [{"timestamp": f"2026-01-01T00:00:0{n}Z", "sessionId": "s1", **e} for n, e in enumerate(entries)]
        (tmp_path / name).write_text("\n".join(json.dumps({**each, **more}) for each in stamped))
    (tmp_path / "agent-2.jsonl").write_text(json.dumps({"sessionId": "another", **inner[0]}))
    done = replay(scope, assignment, read_transcript(path))
    assert (done.not_looked_at, done.unfinished) == (1, 1)
    said = {subject.path for each in done.decisions if each.outcome == "injected" for subject in each.subjects}
    assert said == {"src/private/a.py", "src/private/d.py"}
