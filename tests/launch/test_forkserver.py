"""The fork server with real forks: sidecars that observe a process of the test."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.programs import alive
from tests.waiting import until
from witness.agents.hook_entries import hook_command
from witness.assignment import Assignment
from witness.errors import SpawnError
from witness.events.spool_writer import LOOKER
from witness.ipc.serving import short_path
from witness.journal import Journal
from witness.launch.pane import make_run_dir
from witness.launch.sidecar_pool import PoolStartingError, SidecarEvent, SidecarPool
from witness.names import GroupId
from witness.process import ProcessId
from witness.process.exits import ExitKind, recorded_exit, wait_gone
from witness.process.table import Markers, command_line, identify, look_up, read_table, send


class Home:
    """A runtime folder with a fork server, and an agent to observe."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.runtime = folder / "town" / ".runtime" / "witness"
        self.runtime.mkdir(parents=True, mode=0o700)
        self.run_dir = self.runtime / "runs" / "run1"
        make_run_dir(self.run_dir)
        self.work = folder / "work"
        self.work.mkdir()
        (self.work / "issue.md").write_text("only `billing/**`\n")
        self._stack = stack
        self.pool = self.connection()
        agent = subprocess.Popen(["sleep", "60"])
        stack.callback(agent.wait)
        stack.callback(agent.kill)
        self.agent = identify(agent.pid)
        Journal(self.runtime / "witness.db").close()
        stack.callback(self._end)
        self.started: list[ProcessId] = []
        self._told: list[SidecarEvent] = []

    def connection(self) -> SidecarPool:
        made = SidecarPool(self.runtime, "GT_WITNESS_API_KEY")
        self._stack.callback(made.close)
        return made

    def assignment(self, name: str = "scope", **more: object) -> Assignment:
        assert self.agent
        plain = Assignment(
            group=GroupId("main", "toast", f"run{os.getpid()}"),
            name=name,
            type="scope",
            argument="issue.md",
            session="gt-toast",
            socket="unused",
            town=str(self.runtime.parent.parent),
            workdir=str(self.work),
            run_dir=str(self.run_dir),
            journal=str(self.runtime / "witness.db"),
            queue=str(self.runtime / "queue"),
            agent=self.agent,
        )
        return replace(plain, **more)  # type: ignore[arg-type]

    def start(self, name: str = "scope", *, fork_server: SidecarPool | None = None, **more: object) -> ProcessId:
        process = (fork_server or self.pool).start(self.assignment(name, **more))
        self.started.append(process)
        return process

    def await_news(self, kind: str, process: ProcessId) -> SidecarEvent:
        """The next piece of news of that kind about that process."""
        deadline = time.monotonic() + 20
        while True:
            self._told += self.pool.poll_events()
            for news in self._told:
                if (news.kind, news.process) == (kind, process):
                    self._told.remove(news)
                    return news
            handle = self.pool.fileno()
            assert handle is not None, "the fork server is gone"
            assert time.monotonic() < deadline, f"{kind} was not told: {self.log()}"
            select.select([handle], [], [], 1)

    def log(self, name: str = "scope") -> str:
        path = self.run_dir / "logs" / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def _end(self) -> None:
        fork_server = self.pool.process()
        doomed = [*self.started, *([fork_server] if fork_server else [])]
        for process in doomed:
            send(process, signal.SIGKILL)
        assert not wait_gone(doomed, 10)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with ExitStack() as stack:
        yield Home(tmp_path, stack)


def test_a_sidecar_is_started_and_tells_that_it_observes(home: Home) -> None:
    process = home.start()
    assert identify(process.pid) == process
    assert home.await_news("ready", process).name == "scope"
    assert float((home.run_dir / "beats" / "scope").read_text()) > 0


def test_the_marker_and_the_name_are_visible_from_outside(home: Home) -> None:
    process = home.start()
    home.await_news("ready", process)
    marker = home.assignment().group.marker
    assert Markers().read(read_table())[process] == marker
    assert command_line(process) == f"gt-sidecar {marker} scope"
    fork_server = home.pool.process()
    assert fork_server
    assert fork_server not in Markers().read(read_table())


def test_the_longest_marker_has_room(home: Home) -> None:
    group = GroupId("r" * 64, "p" * 64, f"{os.getpid():064d}")
    process = home.start(group=group)
    home.await_news("ready", process)
    assert Markers().read(read_table())[process] == group.marker


def test_nothing_of_a_polecat_and_no_foreign_key_is_in_its_environment(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GT_ROLE", "GT_SESSION", "TMUX", "TMUX_PANE", "CLAUDECODE", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "of the caller")
    monkeypatch.setenv("GT_WITNESS_API_KEY", "sk-own")
    home.await_news("ready", home.start())
    environ = Path(f"/proc/{_fork_server(home).pid}/environ").read_bytes()
    assert b"of the caller" not in environ
    assert b"sk-own" not in environ


def _open_files(pid: int) -> set[str]:
    """What a process holds open; what it closes meanwhile is left out."""
    found = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(os.readlink(each))
    return found


def test_it_holds_no_handle_of_the_fork_server(home: Home) -> None:
    process = home.start()
    home.await_news("ready", process)
    handles = _open_files(process.pid)
    assert not [each for each in handles if "fork_server" in each], handles
    inodes = _open_files(_fork_server(home).pid)
    assert not {each for each in handles & inodes if each.startswith("socket:")}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_its_end_is_recorded_and_told(home: Home, number: int) -> None:
    process = home.start()
    home.await_news("ready", process)
    send(process, number)
    assert home.await_news("exited", process).code == 128 + number
    assert recorded_exit(home.run_dir, "scope", process).code == 128 + number


def test_it_ends_with_0_when_its_agent_does(home: Home) -> None:
    process = home.start()
    home.await_news("ready", process)
    assert home.agent
    send(home.agent, signal.SIGKILL)
    assert home.await_news("exited", process).code == 0
    assert recorded_exit(home.run_dir, "scope", process).kind is ExitKind.ENDED


def test_a_bad_configuration_is_told_by_its_code(home: Home) -> None:
    process = home.start(type="no-such-type")
    assert home.await_news("exited", process).code == 3
    assert "no-such-type" in home.log()


def test_a_text_that_is_no_assignment_is_a_crash_with_a_trace_in_the_log(home: Home) -> None:
    process = home.start()
    home.await_news("ready", process)
    answer = home.pool.ask(
        {
            "assignment": str(home.run_dir / "sidecars" / "torn.json"),
            "text": "{",
            "run": "run1",
            "name": "torn",
            "marker": "main/toast/x",
            "run_dir": str(home.run_dir),
        }
    )
    torn = ProcessId(answer["pid"], answer["started"])
    assert home.await_news("exited", torn).code == 1
    assert "ValueError" in home.log("torn") or "JSONDecodeError" in home.log("torn")
    assert alive((process.pid, process.started))


def test_a_request_that_is_none_is_answered(home: Home) -> None:
    home.start()
    assert "error" in home.pool.ask({"name": "x"})


def test_many_are_started_in_a_blink(home: Home) -> None:
    first = home.start()
    home.await_news("ready", first)
    began = time.monotonic()
    others = [home.start(f"scope-{number}") for number in range(10)]
    for process in others:
        home.await_news("ready", process)
    assert time.monotonic() - began < 5
    assert len({*others, first}) == 11


def test_two_who_start_a_fork_server_at_once_share_one(home: Home) -> None:
    argv = ["-m", "sidecars", "--forkserver", str(home.runtime)]
    starters = [subprocess.Popen([sys.executable, *argv]) for _ in range(4)]
    assert [starter.wait(40) for starter in starters] == [0] * 4
    assert _fork_server(home)
    running = [row.process for row in read_table().values() if str(home.runtime) in command_line(row.process)]
    assert running == [_fork_server(home)]
    process = home.start()
    home.await_news("ready", process)


def test_a_killed_fork_server_takes_nobody_with_it_and_a_new_one_comes(home: Home) -> None:
    before = home.start()
    home.await_news("ready", before)
    first = _fork_server(home)
    send(first, signal.SIGKILL)
    assert not wait_gone([first], 10)
    assert alive((before.pid, before.started))
    after = home.start("scope-2")
    home.await_news("ready", after)
    assert _fork_server(home) != first
    assert alive((before.pid, before.started))
    # Nobody saw how this one ended, and an unknown end is never taken for a clean one.
    send(before, signal.SIGKILL)
    assert not wait_gone([before], 10)
    assert recorded_exit(home.run_dir, "scope", before).kind is ExitKind.UNKNOWN


def test_two_callers_are_both_told(home: Home) -> None:
    process = home.start()
    home.await_news("ready", process)
    other = home.connection()
    assert other.join()
    second = home.start("scope-2", fork_server=other)
    assert home.await_news("ready", second).name == "scope-2"
    send(process, signal.SIGKILL)
    home.await_news("exited", process)


def test_a_caller_that_reads_nothing_holds_nobody_up(home: Home) -> None:
    process = home.start()
    home.await_news("ready", process)
    deaf = home.connection()
    assert deaf.join()
    for number in range(20):
        each = home.start(f"s{number}")
        home.await_news("ready", each)
        send(each, signal.SIGKILL)
        home.await_news("exited", each)


def test_a_deep_town_has_a_fork_server_too(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60) / ("ü ß" * 10)
    deep.mkdir(parents=True)
    with ExitStack() as stack:
        home = Home(deep, stack)
        assert len(os.fsencode(home.runtime / "forkserver.sock")) > 108
        process = home.start()
        home.await_news("ready", process)


def test_a_fork_server_that_cannot_come_up_is_told_in_one_line(home: Home) -> None:
    (home.runtime / "forkserver.lock").mkdir()
    with pytest.raises(Exception, match=r"forkserver.log") as told:
        home.start()
    assert "\n" not in str(told.value)


def test_a_run_folder_that_cannot_be_written_is_told(home: Home) -> None:
    with pytest.raises(SpawnError, match="assignment cannot be written"):
        home.start(run_dir=str(home.runtime / "nowhere"))


def test_a_large_log_is_put_aside(home: Home) -> None:
    log = home.run_dir / "logs" / "scope.log"
    log.write_text("x" * 1_000_001)
    home.await_news("ready", home.start())
    assert log.stat().st_size < 1_000_000
    assert (home.run_dir / "logs" / "scope.log.1").stat().st_size == 1_000_001


def test_files_are_the_users_alone(home: Home) -> None:
    home.await_news("ready", home.start())
    for path in (
        *home.runtime.glob("fork_server*"),
        home.run_dir / "sidecars" / "scope.json",
        home.run_dir / "logs" / "scope.log",
    ):
        assert path.stat().st_mode & 0o077 == 0, path


def _fork_server(home: Home) -> ProcessId:
    raw = json.loads((home.runtime / "forkserver.json").read_text())
    return ProcessId(raw["pid"], raw["started"])


# -- lookers -----------------------------------------------------------------------------------------------------------


def looker_of(home: Home) -> int:
    """The looker of the home's work tree, 0 when there is none."""
    title = f"gt-looker {home.work}"
    rows = read_table().values()
    return next((row.process.pid for row in rows if not row.defunct and command_line(row.process) == title), 0)


def answers(home: Home) -> bool:
    with socket.socket(socket.AF_UNIX) as probe, short_path(home.run_dir / "spool", LOOKER) as path:
        return probe.connect_ex(path) == 0


def test_one_looker_serves_all_that_observe_in_a_tree_and_ends_with_the_last(home: Home) -> None:
    first, second = home.start("scope"), home.start("scope-2")
    until(lambda: answers(home), "the looker serves the run")
    looker = looker_of(home)
    send(first, signal.SIGTERM)
    home.await_news("exited", first)
    assert looker_of(home) == looker
    assert answers(home)
    send(second, signal.SIGTERM)
    home.await_news("exited", second)
    until(lambda: not looker_of(home), "the looker ends", every=0.02)


def test_a_looker_that_is_killed_is_replaced_and_one_whose_forkserver_died_ends(home: Home) -> None:
    home.start()
    until(lambda: answers(home), "the looker serves the run")
    os.kill(killed := looker_of(home), signal.SIGKILL)
    until(lambda: looker_of(home) not in (0, killed) and answers(home), "the next one serves the run", every=0.02)
    fork_server = home.pool.process()
    assert fork_server is not None
    send(fork_server, signal.SIGKILL)
    until(lambda: not looker_of(home), "the looker ends", every=0.02)


def test_a_command_that_names_no_file_is_told_by_what_it_did(home: Home) -> None:
    (home.work / "issue.md").write_text("---\nfiles: [billing/**]\n---\nDo it.\n")
    home.start()
    until(lambda: answers(home), "the looker serves the run")
    event = {
        "hook_event_name": "PostToolUse",
        "session_id": "s",
        "cwd": str(home.work),
        "tool_name": "Bash",
        "tool_input": {"command": "f=other.txt; printf x > $f"},
        "tool_response": {"stdout": ""},
        "tool_use_id": "one",
        "duration_ms": 100,
    }
    subprocess.run(["sh", "-c", event["tool_input"]["command"]], cwd=home.work, check=True)  # type: ignore[index]
    environment = {"GT_WITNESS_SPOOL": str(home.run_dir / "spool"), "GT_WITNESS_HOOK_WAIT": "2000"}
    program = [*hook_command("PostToolUse")]
    subprocess.run(program, input=json.dumps(event).encode(), env=environment, check=True)
    with Journal(home.runtime / "witness.db") as journal:
        run = home.assignment().group.run
        until(lambda: journal.decisions.of(run), "the sidecar has judged it")
        (decision,) = journal.decisions.of(run)
    assert (decision.reason, decision.seen) == ("edited-outside", "effect")
    assert "other.txt was created" in decision.message


def test_a_fork_server_that_hangs_is_not_waited_for_and_answers_late(home: Home) -> None:
    """The Witness has others to look after; what was forked meanwhile is told when it is."""
    home.start()
    daemon = home.connection()
    daemon.waits = False
    daemon.connect()
    server = home.pool.process()
    assert server
    send(server, signal.SIGSTOP)
    began = time.monotonic()
    try:
        for name in ("tools", "specs"):  # the second one is not even asked for
            with pytest.raises(PoolStartingError):
                home.start(name, fork_server=daemon)
    finally:
        send(server, signal.SIGCONT)
    assert time.monotonic() - began < 5
    news: list[SidecarEvent] = []
    while not news:
        handle = daemon.fileno()
        assert handle is not None
        assert select.select([handle], [], [], 20)[0]
        news = [each for each in daemon.poll_events() if each.kind == "answered"]
    assert [(each.run, each.name) for each in news] == [(home.assignment().group.run, "tools")]
    home.started.append(news[0].process)
    row = look_up(news[0].process.pid)
    assert row
    assert row.parent == server.pid


def test_a_fork_server_that_hangs_for_good_is_replaced_and_its_sidecars_live(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = home.start()
    home.await_news("ready", first)
    monkeypatch.setattr("witness.launch.sidecar_pool.ANSWER_SECONDS", 0.0)
    daemon = home.connection()
    daemon.waits = False
    daemon.connect()
    hung = daemon.process()
    assert hung
    send(hung, signal.SIGSTOP)
    deadline = time.monotonic() + 30
    while True:
        try:
            second = home.start("tools", fork_server=daemon)
            break
        except PoolStartingError:
            assert time.monotonic() < deadline
            if launcher := daemon.starting():
                wait_gone({launcher}, 10)
    assert daemon.process() not in (None, hung)
    assert identify(hung.pid) != hung
    assert identify(first.pid) == first
    assert identify(second.pid) == second
