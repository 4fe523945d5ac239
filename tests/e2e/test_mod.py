"""The mod in the real client: the exact form of each answer, which channel served each call, and what happens when its
server is gone or silent. A wrong key in an answer is accepted by the client and loses the remark, so each is pinned."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.clients import claude_program, versions
from tests.e2e.conftest import PERMITTED, Session, wait_until
from witness.agents.channels import first_sign
from witness.agents.client_extensions import VARIABLE, make_mod
from witness.agents.hook_settings import session_settings
from witness.clock import SystemClock
from witness.delivery import queue_files
from witness.delivery.nudge_queue import Nudge, NudgeQueue
from witness.delivery.receipts import settle_deliveries
from witness.events.spool_reader import SpooledEvent, SpoolReader
from witness.journal import Journal
from witness.testing import Block, MessagesServer, Request, make_town, say, supervised, use
from witness.tmux import Tmux

NEWEST = claude_program(versions()["CLAUDE_NEWEST"])
OLDER = claude_program(versions()["CLAUDE"])
# The client runs the first before it loads a mod, and the last when it has ended it.
BY_HOOK_ALWAYS = {"SessionStart", "SessionEnd"}


class ModSession(Session):
    """A session with the mod, the command hooks behind it."""

    def __init__(self, claude: Path, work: Path, folder: Path, tmux: Tmux) -> None:
        super().__init__(claude, work, folder, tmux)
        self.environment[VARIABLE] = str(make_mod(folder / "run" / "mod", band=False))
        self.nudges = NudgeQueue(self.queue, SystemClock())

    def nudge(self, text: str, sender: str = "sidecar:scope") -> None:
        self.nudges.enqueue(Nudge(sender, text))

    def then(self, text: str, step: Block) -> Callable[[Request], Block]:
        """The step, with a nudge that comes while the model thinks of it."""

        def answer(request: Request) -> Block:
            self.nudge(text)
            return step

        return answer

    @property
    def server_pid(self) -> int:
        """The process that answers the mod."""
        return int(json.loads((self.spool / "mod.json").read_text())["pid"])

    def events(self) -> list[SpooledEvent]:
        return SpoolReader(self.spool).read(1000)

    def names(self) -> list[str]:
        return [str(event.payload["hook_event_name"]) for event in self.events()]

    def by_hook(self, *servers: int) -> set[str]:
        """Names of the events that a command hook has recorded."""
        known = tuple(f"-{pid}" for pid in servers or (self.server_pid,))
        return {str(event.payload["hook_event_name"]) for event in self.events() if not event.id.endswith(known)}

    def stages(self) -> list[str]:
        lines = (self.queue / queue_files.LEDGER).read_text().split("\n")
        return [json.loads(line)["stage"] for line in lines if line]


@pytest.fixture
def session(work: Path, tmp_path: Path, tmux: Tmux) -> ModSession:
    if not NEWEST.exists():
        pytest.skip(f"not installed: .ci/need-claude {versions()['CLAUDE_NEWEST']}")
    session = ModSession(NEWEST, work, tmp_path, tmux)
    # A busy machine makes an answer later than the mod waits; the command hook then serves, which is not what is tried.
    server_file = tmp_path / "run" / "mod" / "hooks" / "register.js"
    text = server_file.read_text()
    assert "const FIRST = 50\n" in text
    server_file.write_text(text.replace("const FIRST = 50\n", "const FIRST = 5000\n"))
    patience = "import gt_mod; gt_mod.PATIENCE = 5.0; gt_mod._ANSWER_WITHIN = 3.0; import os; os._exit(gt_mod.main())"
    server = tmp_path / "run" / "mod" / "hooks" / "server.js"
    command = json.loads(server.read_text().partition("SERVER = ")[2].partition("\n")[0])
    program = f"import sys; sys.path.insert(0, {os.path.dirname(command[-1])!r}); {patience}"
    server.write_text(server.read_text().replace(json.dumps(command), json.dumps([*command[:-1], "-c", program])))
    return session


def said(server: MessagesServer, text: str) -> list[int]:
    """In how many places each request's news says it."""
    return [request.news.count(text) for request in server.of("main")]


def test_each_answer_is_in_the_very_next_request(server: MessagesServer, session: ModSession, work: Path) -> None:
    server.play(
        session.then("after a tool", use("Read", file_path=str(work / "app.py"))),
        session.then("after a failure", use("Bash", command="exit 3")),
        session.then("at the end", say("end")),
        say("Fin."),
    )
    session.headless()
    expected = {
        "after a tool": [0, 1, 0, 0],
        "after a failure": [0, 0, 1, 0],
        "at the end": [0, 0, 0, 1],
    }
    assert {text: said(server, text) for text in expected} == expected
    assert session.names() == [
        "SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop", "Stop", "SessionEnd"
    ]  # fmt: skip
    assert session.by_hook() <= BY_HOOK_ALWAYS
    assert session.stages() == ["offered", "drained"] * 3


def test_what_waits_comes_with_a_typed_prompt(server: MessagesServer, session: ModSession) -> None:
    session.start()
    wait_until(lambda: "SessionStart" in session.names(), "the start, which hands over too")
    session.nudge("before you begin")
    server.play(say("Fin."))
    session.type("do the work")
    assert "[from sidecar:scope] before you begin" in server.wait_for_count(1).news
    wait_until((session.spool / "idle").exists, "the end of the turn")
    assert session.by_hook() <= BY_HOOK_ALWAYS
    assert session.stages() == ["offered", "drained"]


def test_parallel_calls_and_subagents_are_served_once_each(server: MessagesServer, session: ModSession) -> None:
    def parallel(request: Request) -> list[Block]:
        for number in range(3):
            session.nudge(f"note {number}")
        return [use("Bash", command=f"echo {number}") for number in range(3)]

    server.play(session.then("for the main agent", use("Bash", command="echo in the subagent")), kind="subagent")
    server.play(
        parallel,
        use(
            "Agent", description="look", prompt="look around, subagent", subagent_type="general-purpose",
            run_in_background=False,
        ),
        say("Fin."),
    )  # fmt: skip
    session.headless()
    assert [sum(said(server, f"note {number}")) for number in range(3)] == [1, 1, 1]
    assert sum(said(server, "for the main agent")) == 1
    assert not any("for the main agent" in request.text for request in server.of("subagent"))
    assert session.by_hook() <= BY_HOOK_ALWAYS
    calls = [event.payload["tool_use_id"] for event in session.events() if "tool_use_id" in event.payload]
    assert len(calls) == len(set(calls)) == 5


def test_what_no_hook_is_sent_for_is_recorded(server: MessagesServer, session: ModSession, work: Path) -> None:
    """A failed edit, the directory before a call, and what the client measures."""
    (work / "sub").mkdir()
    server.play(
        use("Bash", command="cd sub && echo x"),
        use("Edit", file_path=str(work / "app.py"), old_string="not there", new_string="x"),
        say("Fin."),
    )
    session.headless()
    events = {event.payload["hook_event_name"]: event.payload for event in session.events()}
    assert events["PostToolUse"]["cwd_before"] == str(work)
    assert events["PostToolUse"]["cwd"] == str(work / "sub")
    failed = events["ToolFailed"]
    assert failed["tool_name"] == "Edit"
    assert failed["tool_input"]["file_path"] == str(work / "app.py")
    assert "not found" in failed["error"]
    usage = json.loads((session.spool / "usage.json").read_text())
    assert usage["context"]["window"] > 0
    assert usage["cost"]["usd"] >= 0


def test_an_idle_agent_is_woken_at_once_and_a_half_typed_prompt_stays(
    server: MessagesServer, session: ModSession, tmp_path: Path
) -> None:
    session.start()
    server.play(say("Fin."))
    session.type("do the work")
    server.wait_for_count(1)
    wait_until((session.spool / "idle").exists, "the agent at its prompt")
    session.tmux.run("send-keys", "-t", session.name, "-l", "half typed")
    wait_until(lambda: "half typed" in session.screen(), "what a person types")
    session.nudge("there is news", "mayor")
    woken = server.wait_for(lambda request: "[from mayor] there is news" in request.news)
    drained = next(json.loads(line) for line in (session.queue / queue_files.LEDGER).read_text().split("\n") if line)
    assert "gt-witness plugin" in woken.news
    assert drained["event"] == "Submit"
    wait_until((session.spool / "idle").exists, "the end of the turn")
    session.nudge("look at the log", "human")
    personal = server.wait_for(lambda request: "look at the log" in request.news)
    assert personal.news.strip() == "look at the log"
    wait_until((session.spool / "idle").exists, "the end of the turn")
    assert "❯\u00a0half typed" in session.screen()
    with Journal(tmp_path / "journal.db") as journal:
        seen: list[str] = []

        def both_seen() -> bool:
            seen.extend(settle_deliveries(journal, session.queue, SystemClock()).seen)
            return len(seen) == 2

        wait_until(both_seen, "the receipts in the transcript")


def test_other_peoples_hooks_go_on_running(server: MessagesServer, session: ModSession, tmp_path: Path) -> None:
    """Answered by the mod, an event runs nobody's command hooks: where others have some, ours serves as well."""
    ran = tmp_path / "ran"
    settings = json.loads(session.settings.read_text())
    theirs = {"matcher": "Bash", "hooks": [{"type": "command", "command": f"echo x >>{ran}"}]}
    settings["hooks"]["PostToolUse"].append(theirs)
    session.settings.write_text(json.dumps(settings))
    server.play(session.then("once", use("Bash", command="echo one")), use("Bash", command="echo two"), say("Fin."))
    session.headless()
    assert ran.read_text() == "x\n" * 2
    assert said(server, "once") == [0, 1, 0]
    assert session.by_hook() - BY_HOOK_ALWAYS == {"PostToolUse"}
    assert session.names().count("PostToolUse") == 2


def test_one_line_about_the_polecat_stands_above_the_prompt(
    server: MessagesServer, session: ModSession, tmp_path: Path
) -> None:
    constants = tmp_path / "run" / "mod" / "hooks" / "server.js"
    constants.write_text(constants.read_text().replace("BAND = false", "BAND = true"))
    (tmp_path / "run" / "prompt-line").write_text("gt main/toast RUNNING · scope 3→2→1\nand no more")
    session.start()
    wait_until(lambda: "gt main/toast RUNNING · scope 3→2→1" in session.screen(), "the line")
    assert "and no more" not in session.screen()


def test_with_its_server_killed_the_hooks_serve_and_a_new_one_comes(
    server: MessagesServer, session: ModSession
) -> None:
    servers: list[int] = []

    def kill(request: Request) -> Block:
        servers.append(session.server_pid)
        os.kill(servers[0], signal.SIGKILL)
        session.nudge("once")
        return use("Bash", command="echo one")

    def until_back(request: Request) -> Block:
        if session.server_pid != servers[0]:
            servers.append(session.server_pid)
            return use("Bash", command="echo back")
        server.play(until_back)
        return use("Bash", command="sleep 0.3")

    server.play(kill, until_back)
    session.headless(timeout=60)
    assert sum(said(server, "once")) == 1
    assert said(server, "once")[1] == 1
    calls = [event.payload["tool_use_id"] for event in session.events() if "tool_use_id" in event.payload]
    assert len(calls) == len(set(calls)) == len(server.of("main")) - 1
    assert len(servers) == 2


def test_with_its_socket_removed_nothing_is_lost(server: MessagesServer, session: ModSession) -> None:
    def remove(request: Request) -> Block:
        (session.spool / "mod.sock").unlink()
        session.nudge("once")
        return use("Bash", command="echo one")

    server.play(use("Bash", command="echo zero"), remove, use("Bash", command="echo two"), say("Fin."))
    session.headless()
    assert said(server, "once") == [0, 0, 1, 0]
    calls = [event.payload["tool_use_id"] for event in session.events() if "tool_use_id" in event.payload]
    assert len(calls) == len(set(calls)) == 3


def test_a_silent_server_is_passed_by_and_left_alone(
    server: MessagesServer, session: ModSession, tmp_path: Path
) -> None:
    script = tmp_path / "run" / "mod" / "hooks" / "register.js"
    script.write_text(script.read_text().replace("const FIRST = 5000\n", "const FIRST = 50\n"))

    def stop(request: Request) -> Block:
        os.kill(session.server_pid, signal.SIGSTOP)
        session.nudge("once")
        return use("Bash", command="echo 0")

    server.play(stop, *[use("Bash", command=f"echo {number}") for number in range(5)], say("Fin."))
    try:
        session.headless(timeout=60)
    finally:
        with suppress(ProcessLookupError):  # the client has ended it, stopped or not
            os.kill(session.server_pid, signal.SIGKILL)
    assert said(server, "once")[1] == 1
    assert sum(said(server, "once")) == 1
    calls = [event.payload["tool_use_id"] for event in session.events() if "tool_use_id" in event.payload]
    assert len(calls) == len(set(calls)) == 6
    assert "PostToolUse" in session.by_hook()


def test_an_older_client_ignores_it_and_runs_the_hooks(
    server: MessagesServer, work: Path, tmp_path: Path, tmux: Tmux
) -> None:
    if not OLDER.exists():
        pytest.skip(f"not installed: .ci/need-claude {versions()['CLAUDE']}")
    session = ModSession(OLDER, work, tmp_path, tmux)
    server.play(session.then("once", use("Bash", command="echo one")), say("Fin."))
    session.headless()
    assert said(server, "once") == [0, 1]
    assert not (session.spool / "mod.json").exists()
    assert "PostToolUse" in session.names()


def test_after_a_tool_that_no_sidecar_looks_at_nobody_waits(
    server: MessagesServer, session: ModSession, work: Path
) -> None:
    """It is recorded all the same; as soon as something waits, the next such call is asked about too."""
    (session.spool / "scope.passes").write_text('["Read"]')
    read = use("Read", file_path=str(work / "app.py"))

    def then_nudge(request: Request) -> Block:
        session.nudge("once")
        return use("Bash", command="sleep 0.3")

    server.play(read, then_nudge, use("Read", file_path=str(work / "app.py")), say("Fin."))
    session.headless()
    assert sum(said(server, "once")) == 1
    assert session.names().count("PostToolUse") == 3
    assert session.by_hook() <= BY_HOOK_ALWAYS


def test_hooks_that_a_project_switches_off_are_said_at_spawn_in_the_list_and_by_the_doctor(
    either_claude: Path, server: MessagesServer, home: Path, trust: Callable[[Path], Path], tmp_path: Path
) -> None:
    """What is configured is not what works: the polecat is one with a pane only, and nobody has to find that out."""
    town = make_town(tmp_path / "town")
    repo = trust(town.root / "repo")
    (repo / ".claude").mkdir()
    (repo / ".claude" / "settings.json").write_text('{"disableAllHooks": true}')
    server.play(use("Bash", command="echo one"), say("Fin."))
    agent = shlex.join([str(either_claude), *PERMITTED])

    def gt(*arguments: str) -> str:
        argv = [sys.executable, "-m", "witness.cli", *arguments]
        return subprocess.run(argv, cwd=repo, capture_output=True, text=True, check=False, timeout=60).stdout

    with supervised(town) as witness:
        reason = f"{repo}/.claude/settings.json says disableAllHooks"
        assert f"channel pane: {reason}" in gt(
            "polecat", "spawn", "d", "--workdir", str(repo), "--agent", agent, "--sidecars", "scope:docs/issue.md",
            "--task", "do it",
        )  # fmt: skip
        server.wait_for_count(2)
        spool = town.run_dir(witness.find("d").id.run) / "spool"
        assert first_sign(spool) is None
        (row,) = json.loads(gt("polecat", "list", "--json"))
        assert (row["channel"], row["channel_note"]) == ("pane", reason)
        assert reason in gt("polecat", "list")
        found = [line for line in gt("doctor").splitlines() if "main/d" in line or "repo/d" in line]
        assert any(reason in line for line in found), found


def test_the_client_itself_finds_nothing_wrong_with_it(either_claude: Path, home: Path, tmp_path: Path) -> None:
    folder = make_mod(tmp_path / "mod", band=True)
    done = subprocess.run(
        [either_claude, "plugin", "validate", folder], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout
    assert "gating hook without" not in done.stdout


def test_hooks_as_one_command_line_serve_too_and_know_their_client(
    either_claude: Path, server: MessagesServer, work: Path, tmp_path: Path, tmux: Tmux
) -> None:
    """For a client that may not know ``args``: no shell stays in between, so that who calls is the client itself."""
    session = ModSession(either_claude, work, tmp_path, tmux)
    del session.environment[VARIABLE]
    session.settings.write_text(json.dumps(session_settings(as_string=True)))

    def who_calls(request: Request) -> Block:
        owner = int((session.spool / "client").read_text().split()[0])
        assert "claude" in psutil.Process(owner).name()
        session.nudge("once")
        return use("Bash", command="echo one")

    server.play(who_calls, use("Bash", command="echo two"), say("Fin."))
    session.headless()
    assert said(server, "once") == [0, 1, 0]
    assert session.names().count("PostToolUse") == 2
