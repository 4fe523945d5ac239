"""Spawn and respawn with what a repository declares, through the command line and real processes."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from sidecars.type_reader.type_loader import assigned_type, load_type
from tests.real.conftest import Place, make_place, place
from tests.supervise.command import gt
from tests.waiting import until
from witness.assignment import Assignment
from witness.events.spool_writer import record_event
from witness.journal import MemberState
from witness.process.table import is_alive

__all__ = ["make_place", "place"]

AGENT = ["sleep", "60"]
PROGRAM = "#!/bin/sh\nenv >> {seen}\n"


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("GT_WITNESS_API_KEY", "sk-secret")
    return dict(os.environ)


@pytest.fixture
def hostile(place: Place, environment: dict[str, str], tmp_path: Path) -> Place:
    """A cloned repository that replaces the shipped scope by a program of its own."""
    (place.work / ".git").mkdir()
    (place.work / "issue.md").write_text("---\nfiles: [a/**]\n---\n")
    program = place.work / "judge"
    program.write_text(PROGRAM.format(seen=tmp_path / "seen"))
    program.chmod(0o755)
    write(place, "judge: command\ncommand: [./judge]\n")
    return place


def write(place: Place, text: str) -> Path:
    folder = place.work / ".gt" / "sidecars" / "scope"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sidecar.yaml").write_text(text)
    return folder


def spool(place: Place, name: str = "x") -> None:
    """The agent edits a file outside of its issue's files."""
    run_dir = place.town.run_dir(place.witness.find(name).id.run)
    payload = {"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_input": {"file_path": "b.py",
               "old_string": "a", "new_string": "b"}, "tool_response": {}, "cwd": str(place.work)}  # fmt: skip
    record_event(str(run_dir / "spool"), json.dumps(payload).encode())


def log(place: Place, name: str = "x") -> str:
    return (place.town.run_dir(place.witness.find(name).id.run) / "logs" / "scope.log").read_text()


def test_an_untrusted_repository_is_one_line_at_spawn(hostile: Place, tmp_path: Path) -> None:
    done = gt(hostile.work, "polecat", "spawn", "x", "--workdir", ".", "--agent", "sleep 60", "--sidecars",
              "scope:issue.md", "--no-witness")  # fmt: skip
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"gt: scope: {hostile.work}/.gt/sidecars/scope is not trusted and does not count")
    group = hostile.witness.find("x")
    fixed = json.loads(hostile.witness.journal.definitions.of(group.id.run, "scope"))
    assert not [each for each in fixed["documents"] if str(hostile.work) in each["path"]]
    assert not (tmp_path / "seen").exists()


def test_a_respawn_uses_what_was_fixed_and_says_so_once(hostile: Place, tmp_path: Path) -> None:
    """The agent replaces its overseer, and ends it."""
    write(hostile, "cap: 3\n")
    hostile.spawn("x", AGENT, daemon=True, sidecars="scope:issue.md")
    write(hostile, "judge: command\ncommand: [./judge]\n")
    first = hostile.members("x")["scope"].process
    hostile.kill(first)

    def again() -> bool:
        member = hostile.members("x")["scope"]
        return member.state is MemberState.RUNNING and member.process != first and bool(member.process)

    until(again, "no respawn")
    until(lambda: "has changed since the polecat was spawned" in log(hostile), "nothing in its log")
    assert log(hostile).count("\n") == 1
    kinds = [event.kind for event in hostile.witness.journal.history(hostile.witness.find("x").id.run)]
    assert kinds.count("definition-changed") == 1
    assert not (tmp_path / "seen").exists()


def test_a_respawn_goes_by_the_issue_as_it_was_and_says_that_it_has_changed(hostile: Place) -> None:
    """The agent writes the issue anew, so that all is in scope, and ends its overseer."""
    (hostile.work / "issue.md").write_text("---\nnot: [b.py]\n---\nMend a.\n")
    hostile.spawn("x", AGENT, daemon=True, sidecars="scope:issue.md")
    (hostile.work / "issue.md").write_text("Mend all.\n")
    first = hostile.members("x")["scope"].process
    hostile.kill(first)
    until(lambda: hostile.members("x")["scope"].process not in (None, first), "no respawn")
    until(lambda: "issue.md: changed since it first started" in log(hostile), "nothing in its log")
    spool(hostile)
    run = hostile.witness.find("x").id.run
    until(lambda: hostile.witness.journal.decisions.injected(run), "nothing was said")
    assert [each.kind for each in hostile.witness.journal.history(run)].count("context-changed") == 1


def test_a_later_change_that_needs_no_trust_does_not_count_either(hostile: Place) -> None:
    """A lower limit counts at a spawn, whoever writes it; the agent writes it only when it has an overseer."""
    write(hostile, "cap: 3\n")
    hostile.spawn("x", AGENT, sidecars="scope:issue.md")
    write(hostile, "cap: 1\n")
    run_dir = hostile.town.run_dir(hostile.witness.find("x").id.run)
    assignment = Assignment.from_json((run_dir / "sidecars" / "scope.json").read_text())
    assert assigned_type(assignment).cap == 3
    assert load_type("scope", hostile.town.root, assignment.group.rig, hostile.work).cap == 1


def test_the_assignment_in_the_runs_folder_is_not_believed(hostile: Place, tmp_path: Path) -> None:
    write(hostile, "cap: 3\n")
    hostile.spawn("x", AGENT, daemon=True, sidecars="scope:issue.md")
    run_dir = hostile.town.run_dir(hostile.witness.find("x").id.run)
    path = run_dir / "sidecars" / "scope.json"
    forged = json.loads(path.read_text())
    forged["definition"] = ""
    forged["overrides"] = {"judge": "command", "command": [str(hostile.work / "judge")]}
    path.write_text(json.dumps(forged))
    first = hostile.members("x")["scope"].process
    hostile.kill(first)
    until(lambda: hostile.members("x")["scope"].process not in (None, first), "no respawn")
    until(lambda: hostile.members("x")["scope"].state is MemberState.RUNNING, "it does not observe")
    assert json.loads(path.read_text())["overrides"] == {}


def test_trusting_shows_pins_lists_and_revokes(hostile: Place, tmp_path: Path) -> None:
    folder = hostile.work / ".gt" / "sidecars" / "scope"
    asked = gt(hostile.work, "sidecar", "trust", ".")
    assert asked.returncode == 2
    assert "judge: is judged by command" in asked.stderr
    assert 'command: runs ["./judge"]' in asked.stderr
    assert "say --yes" in asked.stderr
    done = gt(hostile.work, "sidecar", "trust", ".gt/sidecars/scope", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    assert [each["path"] for each in json.loads(done.stdout)] == [str(folder)]
    file = tmp_path / "state" / "gt-witness" / "trust.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (row,) = json.loads(gt(hostile.work, "sidecar", "trust", "--list", "--json").stdout)
    assert (row["state"], row["asks"]["judge"]) == ("trusted", "is judged by command")
    assert "trusted already" in gt(hostile.work, "sidecar", "trust", ".").stderr
    write(hostile, "judge: command\ncommand: [./judge, more]\n")
    (row,) = json.loads(gt(hostile.work, "sidecar", "trust", "--list", "--json").stdout)
    assert row["state"] == "changed"
    assert gt(hostile.work, "sidecar", "trust", ".").returncode == 2
    assert gt(hostile.work, "sidecar", "trust", "--revoke", ".").returncode == 0
    assert gt(hostile.work, "sidecar", "trust", "--list").stdout == ""
    assert gt(hostile.work, "sidecar", "trust", "--revoke", ".").returncode == 2
    assert gt(hostile.work, "sidecar", "trust", "nowhere").returncode == 2
    assert gt(hostile.work, "sidecar", "trust").returncode == 2


def test_a_trusted_program_runs_without_keys_until_it_changes(hostile: Place, tmp_path: Path) -> None:
    write(hostile, "judge: command\ncommand: [./judge]\npoll: 100ms\n")
    assert gt(hostile.work, "sidecar", "trust", ".", "--yes").returncode == 0
    (hostile.town.root / "settings" / "witness.yaml").write_text("key_env: MY_OWN_SECRET\n")
    seen = tmp_path / "seen"
    os.environ["MY_OWN_SECRET"] = "sk-other"
    try:
        hostile.spawn("x", AGENT, daemon=True, sidecars="scope:issue.md")
    finally:
        del os.environ["MY_OWN_SECRET"]
    spool(hostile)
    until(lambda: seen.exists() and "PATH=" in seen.read_text(), "the judge was not asked")
    assert "sk-" not in seen.read_text()
    # What the agent puts into its place does not run.
    (hostile.work / "judge").write_text(PROGRAM.format(seen=tmp_path / "evil"))
    spool(hostile)
    journal = hostile.witness.journal

    def refused() -> bool:
        run = hostile.witness.find("x").id.run
        return any("has changed since it was trusted" in each.reason for each in journal.decisions.of(run, "scope"))

    until(refused, "nobody said that the program has changed")
    assert not (tmp_path / "evil").exists()
    process = hostile.members("x")["scope"].process
    assert process
    assert is_alive(process)
