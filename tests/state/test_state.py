"""The state of a town with real tmux: what waits, what has died and why, and what is not known."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import fastjsonschema
import pytest

from tests.real.conftest import Place
from tests.scripts import BASE_PYTHON
from tests.supervise.command import gt, gt_json
from tests.waiting import until_shown
from witness.events.spool_reader import append_event
from witness.journal import Decision
from witness.process.exits import wait_gone
from witness.state import records
from witness.state.ended import last_screen
from witness.state.reader import StateReader, follow
from witness.state.records import PolecatState
from witness.tmux import Tmux

SCHEMA_FILE = Path(records.__file__).with_name("state.schema.json")
DIALOG = (
    "● Write(billing/new.py)\n\n" + "─" * 60 + "\n Create file\n Do you want to create billing/new.py?\n"
    " ❯ 1. Yes\n   2. No\n\n Esc to cancel\n"
)


_T = TypeVar("_T")


def client(folder: Path, text: str) -> list[str]:
    """A program named claude that shows a text and waits."""
    program = folder / "claude"
    program.write_text(f"#!{BASE_PYTHON}\nimport signal\nprint({text!r}, flush=True)\nsignal.pause()\n")
    program.chmod(0o700)
    return [str(program)]


def until(place: Place, fact: Callable[[PolecatState], bool]) -> PolecatState:
    """The first state of the only polecat of which it is true."""
    reader = StateReader(place.town, place.witness.journal)

    def looked() -> PolecatState | None:
        (found,) = reader.read().polecats
        return found if fact(found) else None

    state = shown(place, looked)
    assert state
    return state


def shown(place: Place, fact: Callable[[], _T]) -> _T:
    """Wait until something shows on the screen of the first polecat."""
    session = place.witness.polecats()[0][0].session
    return until_shown(Tmux(*place.town.tmux_place), session, fact)


def ended(place: Place) -> dict[str, Any]:
    rows = gt_json(place.work, "polecat", "list", "--all")
    assert isinstance(rows, list)
    return rows[-1]["ended"]  # type: ignore[no-any-return]


def test_an_agent_at_a_dialog_waits_and_the_question_is_told(place: Place, tmp_path: Path) -> None:
    place.spawn("q", client(tmp_path, DIALOG))
    waiting = until(place, lambda each: each.activity != "unknown").waiting
    assert waiting
    assert (waiting.reason, waiting.question) == ("permission", "Create file · Do you want to create billing/new.py?")
    (row,) = gt_json(place.work, "polecat", "list")
    assert row["waiting"]["for"] == "permission"
    assert row["state"] == "RUNNING"
    shown = gt(place.work, "ps").stdout
    assert "waits for a permission" in shown
    assert "Do you want to create billing/new.py?" in shown


def test_a_still_frame_that_is_not_known_is_unknown(place: Place, tmp_path: Path) -> None:
    rule = "─" * 60
    place.spawn(
        "b", client(tmp_path, f"● ready\n\n✶ Compacting conversation…\n\n{rule}\n❯\u00a0\n{rule}\n  ? for shortcuts")
    )
    session = place.witness.find("b").session
    shown(place, lambda: "shortcuts" in place.witness.peek(session))
    assert until(place, lambda each: True).activity == "unknown"


def test_what_the_client_reports_is_told(place: Place, tmp_path: Path) -> None:
    place.spawn("w", client(tmp_path, "something"))
    spool = place.town.run_dir(place.witness.find("w").id.run) / "spool"
    append_event(spool, b'{"hook_event_name":"UserPromptSubmit"}')
    call = {"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_input": {"file_path": "a.py"}}
    append_event(spool, json.dumps(call).encode())
    append_event(spool, json.dumps({**call, "agent_id": "other", "hook_event_name": "Stop"}).encode())
    found = until(place, lambda each: True)
    assert found.activity == "working"
    assert found.last_action
    assert found.last_action.what == "Edit a.py"
    append_event(spool, b'{"hook_event_name":"Stop"}')
    assert until(place, lambda each: True).activity == "idle"


def test_what_the_agent_has_used_is_told_and_stays(place: Place, tmp_path: Path) -> None:
    place.spawn("w", client(tmp_path, "something"))
    run = place.witness.find("w").id.run
    spool = place.town.run_dir(run) / "spool"
    assert gt_json(place.work, "state")["polecats"][0]["usage"] is None
    transcript = tmp_path / "session.jsonl"
    usage = {"input_tokens": 1000, "output_tokens": 500}
    message = {"id": "m", "model": "claude-sonnet-5-5", "usage": usage}
    transcript.write_text(json.dumps({"type": "assistant", "timestamp": records.rfc3339(time.time() + 5), "message": message}) + "\n")  # noqa: E501 # fmt: skip
    append_event(spool, json.dumps({"hook_event_name": "Stop", "transcript_path": str(transcript)}).encode())
    shown = gt(place.work, "state").stdout
    assert "used 1.5 k tokens  $0.01  context 1.5 k (0% of its window)  claude-sonnet-5-5" in shown
    place.witness.nuke(["w"])
    transcript.unlink()
    (row,) = gt_json(place.work, "polecat", "list", "--all")
    assert (row["usage"]["tokens"], row["usage"]["transcript"]) == (1500, str(transcript))
    assert str(transcript) in gt(place.work, "polecat", "status", "w").stdout


def test_what_became_of_each_line_is_told(place: Place) -> None:
    (place.work / "issue.md").write_text('---\nfiles: ["a/**"]\n---\nOnly a.\n')
    place.spawn("w", ["sleep", "60"], sidecars="scope:issue.md")
    run, decisions = place.witness.find("w").id.run, place.witness.journal.decisions
    for number, (stage, heeded) in enumerate([("enqueued", ""), ("drained", ""), ("seen", "yes"), ("seen", "no")]):
        id = f"d{number}"
        decisions.add(
            Decision(id, run, "scope", 1.0, 1.0, "injected", message="m", stage=stage, line=id, heeded=heeded)
        )
    decisions.add(Decision("e", run, "scope", 1.0, 1.0, "injected", stage="seen", line="d3", heeded="yes"))
    (row,) = gt_json(place.work, "polecat", "list")
    (scope,) = row["sidecars"]
    assert scope["lines"] == {"said": 4, "delivered": 3, "seen": 2, "heeded": 2, "unheeded": 1}
    assert "injections 4 (3 delivered, 2 seen, 2 heeded, 1 not heeded)" in gt(place.work, "state").stdout
    place.witness.nuke(["w"])
    (row,) = gt_json(place.work, "polecat", "list", "--all")
    assert row["sidecars"][0]["lines"]["said"] == 4


def test_a_dead_pid_is_never_shown_as_running_also_without_a_witness(place: Place) -> None:
    (place.work / "issue.md").write_text('---\nfiles: ["a/**"]\n---\nOnly a.\n')
    spawned = place.spawn("x", ["sleep", "60"], sidecars="scope:issue.md")
    place.kill(spawned.sidecars[0].process)
    (row,) = gt_json(place.work, "polecat", "list")
    (scope,) = row["sidecars"]
    assert (scope["state"], scope["pid"]) == ("LOST", None)
    assert "gt witness start" in scope["mute"]
    place.kill(spawned.agent)
    (row,) = gt_json(place.work, "polecat", "list")
    assert (row["state"], row["pid"], row["activity"]) == ("ZOMBIE", None, "dead")


@pytest.mark.parametrize(
    ("script", "told", "status", "number"),
    [
        ("echo 'boom: no config'; exit 3", "by itself, exit status 3; last line: boom: no config", 3, None),
        ("echo bye; kill -SEGV $$", "signal 11 (SIGSEGV); last line: bye", None, 11),
    ],
)  # fmt: skip
def test_why_an_agent_died_stays(place: Place, script: str, told: str, status: int | None, number: int | None) -> None:
    began = place.work / "go"
    spawned = place.spawn(
        "boom", ["sh", "-c", f"while [ ! -e {shlex.quote(str(began))} ]; do sleep 0.05; done; {script}"]
    )
    began.touch()
    reaper = place.members("boom")["reaper"].process
    assert reaper
    assert not wait_gone({spawned.agent, reaper}, 20.0)
    assert told in ended(place)["sentence"]  # before anybody has looked
    place.witness.patrol()
    found = ended(place)
    assert (found["by"], found["status"], found["signal"]) == ("itself", status, number)
    assert told in found["sentence"]
    peeked = gt(place.work, "peek", "boom")
    assert peeked.returncode == 0
    assert script.split("'")[1] in peeked.stdout if "'" in script else "bye" in peeked.stdout
    assert "ended" in peeked.stderr
    assert told in gt(place.work, "polecat", "status", "boom").stdout
    assert "agent-dead" in gt(place.work, "logs", "boom").stdout


def test_the_screen_of_one_who_was_nuked_stays_without_colours(place: Place, tmp_path: Path) -> None:
    place.spawn("q", client(tmp_path, "\x1b[31mred words\x1b[0m"))
    session = place.witness.find("q").session
    shown(place, lambda: "red words" in place.witness.peek(session))
    run = place.witness.find("q").id.run
    place.witness.nuke(["q"])
    assert last_screen(place.town, run) == "red words"
    assert "by gt polecat nuke" in ended(place)["sentence"]
    assert gt_json(place.work, "polecat", "list", "--all", "--since", "0s") == []
    assert gt(place.work, "polecat", "list", "--since", "1h").returncode == 2


def test_a_state_is_as_its_schema_says(place: Place, tmp_path: Path) -> None:
    (place.work / "issue.md").write_text('---\nfiles: ["a/**"]\n---\nOnly a.\n')
    place.spawn("q", client(tmp_path, DIALOG), sidecars="scope:issue.md")
    place.spawn("gone", ["sleep", "60"])
    until_waiting = StateReader(place.town, place.witness.journal)
    shown(place, lambda: any(each.waiting for each in until_waiting.read().polecats))
    group = place.witness.find("gone")
    place.witness.nuke(["gone"])
    check = fastjsonschema.compile(json.loads(SCHEMA_FILE.read_text()))
    check(gt_json(place.work, "state"))
    check(until_waiting.read(ended=[group]).as_json())


def test_a_change_is_told_soon(place: Place, tmp_path: Path) -> None:
    place.spawn("w", client(tmp_path, "something"))
    spool = place.town.run_dir(place.witness.find("w").id.run) / "spool"
    stream = follow(StateReader(place.town, place.witness.journal), place.witness.journal)
    first = next(stream)
    assert (first["kind"], first["schema"]) == ("snapshot", 1)
    took = []
    for name in ("UserPromptSubmit", "Stop") * 3:
        began = time.monotonic()
        append_event(spool, json.dumps({"hook_event_name": name}).encode())
        change = next(stream)
        took.append(time.monotonic() - began)
        assert change["polecat"]["activity"] == ("idle" if name == "Stop" else "working")
    assert sorted(took)[len(took) // 2] < 2.0  # on an idle machine a tenth of a second; see docs/benchmarks.md
    place.witness.nuke(["w"])
    for change in stream:
        if change["kind"] == "change" and change["polecat"]["ended"]:
            break
    assert change["polecat"]["activity"] == "dead"
    stream.close()


def test_the_foreground_witness_tells_what_happens(place: Place) -> None:
    log = place.town.root / "log"
    with log.open("wb") as file:
        argv = [sys.executable, "-m", "witness.cli", "witness", "run"]
        running = subprocess.Popen(argv, cwd=place.work, stderr=file)
        try:
            while not place.witness.status()["running"]:
                assert running.poll() is None
            place.spawn("x", ["sleep", "60"])
            place.witness.nuke(["x"])
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(30)
    told = log.read_text()
    assert "main/x its agent has started" in told
    assert "main/x it has ended" in told
    assert "the Witness has stopped" in told


def test_attach_names_the_recorded_server(place: Place) -> None:
    place.spawn("x", ["sleep", "60"])
    socket, directory = place.town.tmux_place
    shown = gt(place.work, "attach", "--print", "x").stdout.split()
    assert shown[-6:] == ["tmux", "-L", socket, "attach-session", "-t", "=gt-x"]
    assert shown[:-6] == ([f"TMUX_TMPDIR={directory}"] if directory else [])
    server = f"{directory or '/tmp'}/tmux-{os.getuid()}/{socket}"
    argv, environment = Tmux(socket, directory).attaching("gt-x", {"TMUX": f"{server},1,0", "HOME": "/h"})
    assert argv == ["tmux", "-S", server, "switch-client", "-t", "=gt-x"]
    argv, environment = Tmux(socket, "/elsewhere").attaching("gt-x", {"TMUX": f"{server},1,0", "HOME": "/h"})
    assert argv[3] == "attach-session"
    assert environment == {"HOME": "/h", "TMUX_TMPDIR": "/elsewhere"}
    place.witness.nuke(["x"])
    refused = gt(place.work, "attach", "x")
    assert refused.returncode == 1
    assert "gt peek x" in refused.stderr


def test_an_agent_that_goes_in_a_circle_is_stuck_until_it_does_something_else(place: Place) -> None:
    with (place.town.root / "settings" / "witness.yaml").open("a") as file:
        file.write("types: {loop: {poll: 50ms}}\n")
    place.spawn("q", ["sleep", "60"], sidecars="loop", daemon=True)
    (group, _) = place.witness.polecats()[0]
    spool = place.town.run_dir(group.id.run) / "spool"
    failed = {
        "hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "tool_input": {"command": "npm test"},
        "error": "Exit code 1\nError: x",
    }  # fmt: skip
    for _ in range(4):
        append_event(spool, json.dumps(failed).encode())
    found = until(place, lambda each: each.activity == "stuck")
    assert "'npm test' has failed 4 times in the same way since" in found.why
    done = {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_response": "ok"}
    for number in range(8):
        append_event(spool, json.dumps({**done, "tool_input": {"command": f"echo {number}"}}).encode())
    assert until(place, lambda each: True).activity == "working"
