"""A whole sidecar, as a process of its own and in this one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sidecars.observer import process
from tests.sidecars.conftest import as_payload, start_ticks, tool_event
from tests.sidecars.observe.test_screen import EDIT, screen
from tests.sidecars.reports import report, tool
from tests.waiting import until
from witness.assignment import Assignment
from witness.events.spool_reader import append_event
from witness.journal import Decision, Journal
from witness.process import ProcessId
from witness.testing import MessagesServer, fail, hold
from witness.tmux import Tmux

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads start ticks from /proc")

Record = Callable[..., None]


@pytest.fixture
def observed(assignment: Assignment, agent: subprocess.Popen[bytes]) -> Assignment:
    return replace(assignment, agent=ProcessId(agent.pid, start_ticks(agent.pid)))


class Sidecar:
    """One running ``python -m sidecars``."""

    def __init__(self, assignment: Assignment) -> None:
        path = Path(assignment.run_dir) / f"{assignment.name}.json"
        path.write_text(assignment.to_json())
        self.assignment = assignment
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sidecars", "--assignment", str(path)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def ask(self, event: dict[str, Any]) -> None:
        """Record an event and wait, as a hook does, for the verdict; in a process of its own, for it changes folder."""
        append_event(self.assignment.spool, as_payload(event))
        subprocess.run(
            [sys.executable, "-c", "import sys; from witness.events.spool_writer import wake; wake(sys.argv[1], 20)",
             str(self.assignment.spool)],
            check=True, cwd=Path(__file__).parents[2],
        )  # fmt: skip

    def said(self) -> list[str]:
        return [json.loads(file.read_text())["message"] for file in sorted(Path(self.assignment.queue).glob("*.json"))]


@pytest.fixture
def start() -> Iterator[Callable[[Assignment], Sidecar]]:
    running: list[Sidecar] = []

    def begin(assignment: Assignment) -> Sidecar:
        running.append(Sidecar(assignment))
        return running[-1]

    yield begin
    for sidecar in running:
        sidecar.process.kill()
        sidecar.process.communicate()


def test_an_edit_out_of_scope_is_in_the_queue_before_the_hook_goes_on(
    observed: Assignment, start: Callable[[Assignment], Sidecar]
) -> None:
    sidecar = start(observed)
    sidecar.ask(tool_event("Edit", file_path="src/private/x.py", new_string="x"))
    assert sidecar.said() == [
        "[sidecar:scope] src/private/x.py was changed, and this task lists it as out of scope (src/private/**, *.env)."
    ]
    with Journal(Path(observed.journal)) as journal:
        (decision,) = journal.decisions.of("run-1")
    assert (decision.outcome, decision.stage, decision.reason) == ("injected", "enqueued", "edited-what-is-not")
    (file,) = Path(observed.queue).glob("*.json")
    queued = json.loads(file.read_text())
    assert decision.nudge == file.name
    assert (queued["sender"], queued["kind"], queued["thread_id"]) == (
        "sidecar:scope",
        "sidecar",
        f"scope/{decision.id}",
    )


def test_what_is_in_scope_is_silent_and_in_the_ledger(
    observed: Assignment, start: Callable[[Assignment], Sidecar]
) -> None:
    sidecar = start(observed)
    sidecar.ask(tool_event("Edit", file_path="src/a.py", new_string="x"))
    assert sidecar.said() == []
    with Journal(Path(observed.journal)) as journal:
        (decision,) = journal.decisions.of("run-1")
    assert (decision.outcome, decision.evidence) == ("silent", "Edit src/a.py")


def test_it_ends_with_its_agent(
    observed: Assignment, agent: subprocess.Popen[bytes], start: Callable[[Assignment], Sidecar]
) -> None:
    sidecar = start(observed)
    assert agent.stdin is not None
    agent.stdin.close()
    assert sidecar.process.wait(20) == process.ENDED


def test_a_turns_end_lets_through_what_a_cooldown_put_off_and_a_runs_end_records_it(
    observed: Assignment, agent: subprocess.Popen[bytes], start: Callable[[Assignment], Sidecar]
) -> None:
    sidecar = start(replace(observed, overrides={"cooldown": "600s"}))
    for name in "ab":
        sidecar.ask(tool_event("Edit", file_path=f"src/private/{name}.py", new_string="x"))
    assert len(sidecar.said()) == 1
    sidecar.ask({"hook_event_name": "Stop", "stop_hook_active": False})
    assert [text.split()[1] for text in sidecar.said()] == ["src/private/a.py", "src/private/b.py"]
    # The agent goes on because of that, and nothing keeps it from its second end.
    sidecar.ask(tool_event("Edit", file_path="src/private/c.py", new_string="x"))
    sidecar.ask({"hook_event_name": "Stop", "stop_hook_active": True})
    assert len(sidecar.said()) == 2
    assert agent.stdin is not None
    agent.stdin.close()
    assert sidecar.process.wait(20) == process.ENDED
    with Journal(Path(observed.journal)) as journal:
        assert [each.stage for each in journal.decisions.of("run-1")] == ["enqueued", "enqueued", "unsaid"]


def test_a_successor_goes_on_where_it_stopped(observed: Assignment, start: Callable[[Assignment], Sidecar]) -> None:
    first = start(observed)
    first.ask(tool_event("Edit", file_path="src/private/1.py", new_string="x"))
    first.process.kill()
    first.process.wait()
    append_event(observed.spool, as_payload(tool_event("Edit", file_path="src/private/2.py", new_string="x")))
    second = start(observed)
    second.ask(tool_event("Edit", file_path="src/private/3.py", new_string="x"))
    assert [text.split()[1] for text in second.said()] == [f"src/private/{n}.py" for n in (1, 2, 3)]


def test_the_same_event_twice_is_one_event(observed: Assignment, start: Callable[[Assignment], Sidecar]) -> None:
    sidecar = start(observed)
    event = tool_event("Read", file_path="src/private/x") | {"tool_use_id": "t1", "session_id": "s"}
    sidecar.ask(event)
    sidecar.ask(event)
    with Journal(Path(observed.journal)) as journal:
        assert len(journal.decisions.of("run-1")) == 1


def test_rubbish_in_the_spool_costs_nothing(observed: Assignment, start: Callable[[Assignment], Sidecar]) -> None:
    with (observed.spool / "events.jsonl").open("wb") as spool:
        spool.write(
            b"\n\xff\xfe\x00 not json\n" + b'\n{"t":1,"p":1,"cut":0,"e":{"hook_event_name"\n' + b"x" * 3_000_000 + b"\n"
        )
    sidecar = start(observed)
    sidecar.ask(tool_event("Write", file_path="docs/x", content="x"))
    assert len(sidecar.said()) == 1


def test_it_says_which_tools_it_never_looks_at(observed: Assignment, start: Callable[[Assignment], Sidecar]) -> None:
    """So that nobody waits for its verdict after one of them; those that scope declares are never among them."""
    start(observed)
    passed = set(json.loads((observed.spool / f"{observed.name}.passes").read_text()))
    assert "Glob" in passed
    assert not passed & {"Read", "Bash", "Write", "Edit", "MultiEdit", "NotebookEdit"}


def test_its_heartbeat_stands_before_it_is_ready(observed: Assignment, start: Callable[[Assignment], Sidecar]) -> None:
    start(observed)
    assert float(observed.heartbeat.read_text()) > 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"type": "nonsense"}, "no sidecar type named 'nonsense'"),
        ({"argument": "docs/missing.md"}, "missing.md: no such file"),
        ({"task": "---\nfiles: {a: 1}\n---\n"}, "--task:2: files: must be a list of paths or globs"),
        ({"task": "---\nfiles: [a\n---\n"}, "--task:3: not YAML"),
        ({"overrides": {"poll": "soon"}}, "overrides: poll: 'soon' is not a duration"),
        ({"overrides": {"colour": 1}}, "overrides: colour: unknown key"),
        ({"agent": ProcessId(0, 0)}, "names no agent to observe"),
    ],
)
def test_a_bad_configuration_is_one_line_and_code_3(
    observed: Assignment, capsys: pytest.CaptureFixture[str], change: dict[str, Any], words: str
) -> None:
    code = process.run(replace(observed, **change), lambda: pytest.fail("it must not observe"))
    assert code == process.BAD_CONFIGURATION
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("sidecar scope: ")
    assert words in line


def test_a_pid_that_belongs_to_somebody_else_is_an_end(observed: Assignment) -> None:
    stranger = ProcessId(os.getpid(), 1)
    assert process.run(replace(observed, agent=stranger), lambda: None) == process.ENDED


def test_a_journal_that_cannot_be_used_limits(observed: Assignment, capsys: pytest.CaptureFixture[str]) -> None:
    missing = replace(observed, journal="/nonexistent/witness.db")
    assert process.run(missing, lambda: None) == process.LIMITED
    assert "cannot be used" in capsys.readouterr().err


def test_an_assignment_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    done = subprocess.run(
        [sys.executable, "-m", "sidecars", "--assignment", str(tmp_path / "a.json")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (3, 1)


def await_injection(assignment: Assignment) -> Decision:
    """The first injection in the journal; its writer is another process, so the file is watched."""
    with Journal(Path(assignment.journal)) as journal:
        until(lambda: journal.decisions.injected("run-1"))
        return journal.decisions.injected("run-1")[0]


def test_a_model_is_asked_and_heard(
    observed: Assignment, start: Callable[[Assignment], Sidecar], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(observed.workdir, "spec.md").write_text("Bad input is answered with 422.\n")
    mine = replace(
        observed, name="specs", type="specs", argument="spec.md", overrides={"batch": "0s", "timeout": "15s"}
    )
    said = report(
        signal=True,
        evidence="status = 400",
        source_quote="Bad input is answered with 422.",
        confidence="high",
        message="a.py says 400; spec.md says 422.",
    )
    with MessagesServer(fail(529), tool(said)) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("GT_WITNESS_API_KEY", "sk-test")
        sidecar = start(mine)
        sidecar.ask(tool_event("Edit", file_path="a.py", new_string="status = 400"))
        decision = await_injection(mine)
    assert decision.message == "[sidecar:specs] a.py says 400; spec.md says 422."
    assert decision.usage is not None
    assert (decision.usage.calls, decision.usage.model) == (2, "claude-haiku-5-5")
    assert "422" in server.bodies[0]["system"][0]["text"]
    assert b"sk-test" not in Path(observed.journal).read_bytes()


def test_without_a_key_it_says_so_once(observed: Assignment, start: Callable[[Assignment], Sidecar]) -> None:
    Path(observed.workdir, "spec.md").write_text("Bad input is answered with 422.\n")
    mine = replace(observed, name="specs", type="specs", argument="spec.md")
    for _ in range(2):
        sidecar = start(mine)
        sidecar.ask(tool_event("Edit", file_path="a.py", new_string="status = 400"))
        sidecar.process.kill()
        sidecar.process.wait()
    with Journal(Path(mine.journal)) as journal:
        (note,) = [event for event in journal.history("run-1") if event.kind == "sidecar-lacks"]
    assert note.data["reason"] == "no key in GT_WITNESS_API_KEY: it stays silent"


def test_the_blocks_of_the_first_typed_prompt(observed: Assignment, start: Callable[[Assignment], Sidecar]) -> None:
    library = Path(observed.workdir, ".gt")
    library.mkdir()
    (library / "blocks.xml").write_text("<constraints>No new dependency.</constraints>")
    sidecar = start(replace(observed, name="blocks", type="blocks"))
    sidecar.ask(tool_event("Edit", file_path="pyproject.toml", new_string="x"))
    assert sidecar.said() == []
    sidecar.ask({"hook_event_name": "UserPromptSubmit", "prompt": "<role>r</role><objective>o</objective>"})
    sidecar.ask(tool_event("Edit", file_path="pyproject.toml", new_string="y"))
    assert [text.partition("constraints: ")[2] for text in sidecar.said()] == ["No new dependency."]


def test_a_type_that_has_nothing_to_hold_against_says_so(
    observed: Assignment, start: Callable[[Assignment], Sidecar]
) -> None:
    start(replace(observed, task="Fix it."))
    start(replace(observed, name="blocks", type="blocks"))
    with Journal(Path(observed.journal)) as journal:
        notes = {note.member: note.data["reason"] for note in journal.history("run-1")}
    assert notes["scope"].endswith("its issue lists no files: and no not:")
    assert notes["blocks"].endswith("write .gt/blocks.xml")


def test_an_event_that_is_nested_without_end(observed: Assignment, start: Callable[[Assignment], Sidecar]) -> None:
    append_event(observed.spool, b'{"hook_event_name":"PostToolUse","tool_name":"Edit","tool_input":' + b"[" * 400_000)
    append_event(
        observed.spool, b'{"hook_event_name":"PostToolUse","tool_input":' + b"[" * 99_000 + b"]" * 99_000 + b"}"
    )
    sidecar = start(observed)
    sidecar.ask(tool_event("Edit", file_path="src/private/x.py", new_string="x"))
    assert len(sidecar.said()) == 1


def test_an_event_on_which_the_judge_ends_its_sidecar_ends_not_every_successor(
    observed: Assignment, start: Callable[[Assignment], Sidecar]
) -> None:
    said = json.dumps({"signal": True, "evidence": "good", "confidence": "high", "message": "It is."})
    command = ["sh", "-c", f"grep -q fatal && kill -9 $PPID; echo '{said}'"]
    mine = replace(
        observed, overrides={"judge": "command", "command": command, "cooldown": "0s", "batch": "0s", "timeout": "10s"}
    )
    append_event(mine.spool, as_payload(tool_event("Edit", file_path="a", new_string="fatal")))
    for _ in range(3):
        assert start(mine).process.wait(timeout=20) == -9
    sidecar = start(mine)
    sidecar.ask(tool_event("Edit", file_path="b", new_string="good"))
    until(lambda: sidecar.said() or sidecar.process.poll() is not None, processes=[sidecar.process.pid])
    assert sidecar.said() == ["[sidecar:scope] It is."]
    with Journal(Path(mine.journal)) as journal:
        first = journal.decisions.of("run-1")[0]
    assert (first.outcome, first.reason) == ("failed", "passed over: several predecessors ended on it")
    assert first.evidence == "Edit a"


def test_a_rotated_spool_is_read_on(observed: Assignment, start: Callable[[Assignment], Sidecar]) -> None:
    sidecar = start(observed)
    sidecar.ask(tool_event("Edit", file_path="src/private/1.py", new_string="x"))
    (observed.spool / "events.jsonl").rename(observed.spool / "events.1.jsonl")
    sidecar.ask(tool_event("Edit", file_path="src/private/2.py", new_string="x"))
    assert len(sidecar.said()) == 2


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_an_agent_without_hooks_is_seen_on_its_screen(
    assignment: Assignment, tmp_path: Path, start: Callable[[Assignment], Sidecar]
) -> None:
    (tmp_path / "frame").write_text(screen(EDIT.replace("src/sum.py", "src/private/sum.py")))
    tmux = Tmux(f"gt-test-{os.getpid()}-{tmp_path.name}")
    show = "import sys; print(open(sys.argv[1]).read(), flush=True); sys.stdin.read()"
    try:
        pane = tmux.new_session(
            "agent", str(tmp_path), [sys.executable, "-c", show, str(tmp_path / "frame")], {}, (100, 40)
        )
        mine = replace(
            assignment, agent=ProcessId(pane.pid, start_ticks(pane.pid)), session="agent", socket=tmux.socket,
            overrides={"poll": "100ms"},
        )  # fmt: skip
        start(mine)
        decision = await_injection(mine)
    finally:
        subprocess.run(["tmux", "-L", tmux.socket, "kill-server"], capture_output=True, check=False)
    assert decision.message.startswith("[sidecar:scope] src/private/sum.py was changed")


def test_a_backlog_of_huge_events_is_read_in_little_memory(
    observed: Assignment, start: Callable[[Assignment], Sidecar]
) -> None:
    for number in range(100):
        answer = json.dumps({"stdout": "x" * 1_000_000})
        event = tool_event("Bash", command=f"cat big{number}") | {"tool_response": {}}
        append_event(
            observed.spool, as_payload(event).replace(b'"tool_response": {}', f'"tool_response": {answer}'.encode())
        )
    sidecar = start(observed)
    sidecar.ask(tool_event("Edit", file_path="src/private/x.py", new_string="x"))
    assert len(sidecar.said()) == 1
    peak = next(
        int(line.split()[1])
        for line in Path(f"/proc/{sidecar.process.pid}/status").read_text().splitlines()
        if line.startswith("VmHWM")
    )
    assert peak < 200_000  # KiB


def test_importing_it_is_light() -> None:
    code = "import sys, sidecars.observer.process; print(*sorted(sys.modules), sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"anthropic", "pydantic", "rich", "yaml", "sqlite3", "rapidfuzz", "pathspec", "asyncio"} & set(loaded)


def test_rules_speak_while_a_model_thinks(
    observed: Assignment, start: Callable[[Assignment], Sidecar], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(observed.workdir, "CONVENTIONS.md").write_text("# Conventions\n\nNo bare except.\n")
    mine = replace(
        observed, name="conventions", type="conventions", overrides={"batch": "0s", "timeout": "15s", "cooldown": "0s"}
    )
    gate = threading.Event()
    with MessagesServer(hold(gate)) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("GT_WITNESS_API_KEY", "sk-test")
        sidecar = start(mine)
        sidecar.ask(tool_event("Edit", file_path="a.py", new_string="x = 1\ny = 2\nz = 3\n"))
        server.wait_for(lambda _: True, 50)  # the model has the question, and keeps it
        sidecar.ask(tool_event("Edit", file_path="b.py", new_string="try:\n    x()\nexcept:\n    pass\n"))
        decision = await_injection(mine)
        gate.set()
    assert (decision.rule, decision.outcome) == ("bare-except", "injected")
    assert "b.py" in decision.message


def test_a_dead_endpoint_mutes_no_rule(
    observed: Assignment, start: Callable[[Assignment], Sidecar], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(observed.workdir, "CONVENTIONS.md").write_text("# Conventions\n\nNo bare except.\n")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("GT_WITNESS_API_KEY", "sk-test")
    sidecar = start(replace(observed, name="conventions", type="conventions"))
    sidecar.ask(tool_event("Edit", file_path="b.py", new_string="try:\n    x()\nexcept:\n    pass\n"))
    assert await_injection(observed).rule == "bare-except"


def test_what_a_cooldown_holds_back_survives_a_kill(
    observed: Assignment, start: Callable[[Assignment], Sidecar]
) -> None:
    mine = replace(observed, overrides={"cooldown": "2s"})
    first = start(mine)
    first.ask(tool_event("Edit", file_path="src/private/1.py", new_string="x"))
    first.ask(tool_event("Edit", file_path="src/private/2.py", new_string="x"))
    assert len(first.said()) == 1
    first.process.kill()
    first.process.wait()
    start(mine)
    with Journal(Path(mine.journal)) as journal:
        until(lambda: len(journal.decisions.injected("run-1")) == 2)
        assert "src/private/2.py" in journal.decisions.injected("run-1")[1].message


def test_at_the_end_of_a_turn_it_sees_what_was_heeded(
    observed: Assignment, agent: subprocess.Popen[bytes], start: Callable[[Assignment], Sidecar]
) -> None:
    sidecar = start(observed)
    file = Path(observed.workdir, "src", "private", "x.py")
    file.parent.mkdir(parents=True)
    file.write_text("x")
    git = ["git", "-c", "core.hooksPath=/dev/null", "init", "-q", observed.workdir]
    subprocess.run(
        git, check=True, env={"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": observed.workdir}
    )
    sidecar.ask(tool_event("Edit", file_path="src/private/x.py", new_string="x"))
    sidecar.ask({"hook_event_name": "Stop"})
    with Journal(Path(observed.journal)) as journal:
        until(lambda: journal.decisions.of("run-1")[0].heeded == "no")
        file.unlink()
        assert agent.stdin is not None
        agent.stdin.close()
        assert sidecar.process.wait(20) == process.ENDED
        assert journal.decisions.of("run-1")[0].heeded == "yes"
