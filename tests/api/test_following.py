"""Sessions that a person has started. A stand-in for the client runs our plugin's script as the real one does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.cli.gas_town import make_gas_town
from tests.waiting import until
from witness.api.following import follow, followed_group, session_around, unfollow
from witness.clock import SystemClock
from witness.config.resources import hooks_dir
from witness.config.town import Town
from witness.errors import NotFoundError, UsageError, WitnessError
from witness.events.spool_reader import SpoolReader
from witness.gastown.follower import Follower
from witness.process.table import identify
from witness.testing import supervised
from witness.tmux import Tmux

_CLIENT = """
import json, os, subprocess, sys
print("ready", flush=True)
for line in sys.stdin:
    event, payload, more = json.loads(line)
    words = ["sh", "-c", f'exec sh "$CLAUDE_PLUGIN_ROOT/hooks/run.sh" {event}']
    ended = subprocess.run(words, input=payload.encode(), capture_output=True, env={**os.environ, **more})
    print(json.dumps([ended.returncode, ended.stdout.decode(), ended.stderr.decode()]), flush=True)
"""


class Client:
    """A session of a client called ``claude``."""

    def __init__(self, program: Path, workdir: Path, *flags: str, **environment: str) -> None:
        root = hooks_dir() / "mod"
        self.process = subprocess.Popen(
            [str(program), "-S", "-I", "-c", _CLIENT, *flags],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=workdir,
            env={**os.environ, "CLAUDE_PLUGIN_ROOT": str(root), **environment},
        )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def event(
        self, name: str, payload: Mapping[str, object] | None = None, environment: Mapping[str, str] | None = None
    ) -> tuple[int, str, str]:
        """Run the plugin's script at an event: its exit code and what it wrote."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        body = json.dumps({"hook_event_name": name, **(payload or {})})
        print(json.dumps([name, body, environment or {}]), file=self.process.stdin, flush=True)
        code, out, err = json.loads(self.process.stdout.readline())
        return code, out, err

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Client]]:
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.symlink_to(sys.executable)
    clients = []

    def started(workdir: Path, *flags: str, **environment: str) -> Client:
        clients.append(Client(program, workdir, *(flags or ("--plugin-dir", str(hooks_dir() / "mod"))), **environment))
        return clients[-1]

    yield started
    for client in clients:
        client.end()


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    folder = tmp_path / "a project"
    folder.mkdir()
    (tmp_path / "home").mkdir()
    (folder / "issue.md").write_text("---\nnot: [billing/**]\n---\nFix it.\n")
    return folder


def test_what_a_followed_session_does_is_recorded_and_judged_and_its_end_is_its_own(
    work: Path, start: Callable[..., Client]
) -> None:
    client = start(work)
    with supervised(Town.init(work)) as witness:
        session = session_around(client.process.pid)
        group = follow(witness, session, "scope:issue.md").group
        assert (group.id.polecat, group.run_state.by_person) == (f"session-{client.process.pid}", True)
        (work / "billing").mkdir()
        (work / "billing" / "a.py").write_text("A = 1\n")
        call = {
            "tool_name": "Write",
            "tool_use_id": "t1",
            "cwd": str(work),
            "tool_input": {"file_path": str(work / "billing" / "a.py"), "content": "A = 1\n"},
            "tool_response": {},
        }
        code, out, err = client.event("PostToolUse", call)
        assert (code, err) == (0, "")
        assert "billing/**" in json.loads(out)["hookSpecificOutput"]["additionalContext"]
        with pytest.raises(UsageError, match="already"):
            follow(witness, session, "tools")
        spool = SpoolReader(witness.town.run_dir(group.id.run) / "spool")
        assert len(spool.read(10)) == 1
        assert unfollow(witness, session).id == group.id
        assert client.event("PostToolUse", {**call, "tool_use_id": "t2"}) == (0, "", "")
        assert spool.read(10) == []
        assert client.process.poll() is None
        with pytest.raises(NotFoundError, match="nobody follows it"):
            unfollow(witness, session)


def test_a_session_that_ends_takes_its_sidecars_along(work: Path, start: Callable[..., Client]) -> None:
    client = start(work)
    with supervised(Town.init(work)) as witness:
        follow(witness, session_around(client.process.pid), "scope:issue.md")
        client.process.kill()
        until(lambda: not witness.polecats(), "its sidecars to end")


def test_a_later_process_of_the_same_number_is_nobodys_session(work: Path, start: Callable[..., Client]) -> None:
    client = start(work)
    with supervised(Town.init(work)) as witness:
        group = follow(witness, session_around(client.process.pid), "scope:issue.md").group
        (pointer,) = (Path.home() / ".local" / "state" / "gt-witness" / "followed").iterdir()
        assert pointer.stat().st_mode & 0o077 == 0
        pointer.rename(pointer.with_name(f"{client.process.pid}-1"))
        assert client.event("PostToolUse", {"tool_name": "Read"}) == (0, "", "")
        assert client.event("Mod") == (3, "", "")
        assert SpoolReader(witness.town.run_dir(group.id.run) / "spool").read(10) == []


def test_a_polecat_in_a_client_with_the_plugin_is_served_by_its_own_hooks_alone(
    work: Path, start: Callable[..., Client]
) -> None:
    client = start(work)
    with supervised(Town.init(work)) as witness:
        group = follow(witness, session_around(client.process.pid), "scope:issue.md").group
        own = {"GT_WITNESS_SPOOL": str(work / "spool of its own")}
        assert client.event("PostToolUse", None, own) == (0, "", "")
        assert client.event("Mod", None, own) == (3, "", "")
        assert SpoolReader(witness.town.run_dir(group.id.run) / "spool").read(10) == []


def test_what_cannot_be_followed_is_said_and_leaves_nothing(
    work: Path, tmp_path: Path, start: Callable[..., Client]
) -> None:
    def refused(client: Client | None, words: str, sidecars: str = "scope:issue.md", name: str = "") -> None:
        with pytest.raises(WitnessError, match=words):
            follow(witness, session_around(client.process.pid if client else 0), sidecars, name)
        assert witness.polecats() == []

    with supervised(Town.init(work)) as witness:
        refused(None, "no Claude Code is around this command")
        refused(start(work, "--model", "x"), "our plugin is not in this session")
        refused(start(work, "--bare"), "switched off")
        refused(start(work), "no sidecars: say which", "")
        refused(start(work), "scop", "scop:issue.md")
        refused(start(work), "usable name", "scope:issue.md", "a b")
        settings = work / ".claude" / "settings.json"
        settings.parent.mkdir()
        settings.write_text('{"disableAllHooks": true}')
        refused(start(work), "disableAllHooks")
        settings.write_text('{"enabledPlugins": {"gt-witness@gt-witness": true}}')
        assert follow(witness, session_around(start(work, "--model", "x").process.pid), "scope:issue.md").group


def test_gas_towns_follower_leaves_a_persons_session_alone(
    work: Path, tmp_path: Path, start: Callable[..., Client]
) -> None:
    town = make_gas_town(tmp_path / "gt", "gastown/Toast")
    client = start(town.root)
    with supervised(town) as witness:
        session = session_around(client.process.pid)
        follow(witness, session, "tools")
        follower = Follower(town, witness.journal, Tmux(*town.tmux_place), SystemClock())
        assert follower.look([], wait=True) == []
        assert followed_group(witness, session)
        assert identify(client.process.pid)


def test_projects_that_came_with_a_repository_have_no_session_followed_before_they_are_trusted(
    work: Path, start: Callable[..., Client]
) -> None:
    subprocess.run(["git", "init", "-q", work], check=True)
    (work / "settings").mkdir()
    (work / "settings" / "witness.yaml").write_text("follow: {sidecars: 'scope:issue.md'}\n")
    with supervised(Town.init(work)) as witness:
        client = start(work, PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        assert client.event("SessionStart")[0] == 0
        command = [sys.executable, "-P", "-m", "witness.cli", "follow", "--at-start", "--pid", str(client.process.pid)]
        subprocess.run(command, check=True, cwd=work, timeout=30)
        assert witness.polecats() == []
        subprocess.run([*command[:4], "sidecar", "trust", work / "settings" / "witness.yaml", "--yes"], check=True)
        client.event("SessionStart")
        until(lambda: [group.state for group, _ in witness.polecats()] == ["RUNNING"], "the session to be followed")


def test_a_session_that_cannot_be_shown_the_way_is_not_left_half_followed(
    work: Path, tmp_path: Path, start: Callable[..., Client]
) -> None:
    (tmp_path / "home" / ".local").write_text("no folder")
    with supervised(Town.init(work)) as witness:
        session = session_around(start(work).process.pid)
        with pytest.raises(OSError, match="local"):
            follow(witness, session, "scope:issue.md")
        assert witness.polecats() == []
        (tmp_path / "home" / ".local").unlink()
        assert follow(witness, session, "scope:issue.md").group
