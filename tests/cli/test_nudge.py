"""``gt nudge`` and ``gt peek`` against a journal and a tmux of the test's own."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.waiting import until_shown
from witness.api import messages
from witness.cli.program import gt
from witness.clock import SystemClock
from witness.config.town import Town
from witness.delivery.nudge_queue import NudgeQueue
from witness.errors import NotFoundError, QueueFullError, RunEndedError, UsageError, WitnessError
from witness.journal import Group, GroupState, Journal
from witness.names import GroupId
from witness.tmux import Tmux


@pytest.fixture
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Town:
    town = Town.init(tmp_path / "a town")
    town.make_runtime()
    monkeypatch.chdir(town.root)
    monkeypatch.setattr(messages, "IDLE_SECONDS", 0.0)
    return town


def add(town: Town, state: GroupState = GroupState.RUNNING, run: str = "r1", agent: tuple[str, ...] = ("sh",)) -> None:
    with Journal(town.journal_path) as journal:
        journal.groups.add(Group(GroupId("main", "toast", run), "gt-toast", state, "boot", 0.0, 0.0, "/", agent))


def run(*arguments: str, **options: str) -> Result:
    return CliRunner().invoke(gt, list(arguments), catch_exceptions=False, **options)  # type: ignore[arg-type]


def pending(town: Town) -> list[tuple[str, str, str, str]]:
    queue = NudgeQueue(town.queue_dir("gt-toast"), SystemClock())
    nudges = [claim.nudge for claim in queue.pending()]
    return [(nudge.sender, nudge.message, nudge.priority, nudge.run) for nudge in nudges]


@pytest.mark.parametrize("target", ["toast", "main/toast", "main/polecats/toast", "gt-toast"])
def test_it_waits_for_the_next_step(town: Town, target: str) -> None:
    add(town)
    assert run("nudge", target, "look here", "--mode", "queue").stdout == "waits for the next step of main/toast\n"
    assert pending(town) == [("human", "look here", "normal", "r1")]


def test_the_message_may_come_by_flag_or_by_pipe(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    add(town)
    monkeypatch.setenv("GT_ROLE", "mayor")
    run("nudge", "toast", "-m", "by flag", "--priority", "urgent")
    run("nudge", "toast", "--stdin", "--mode", "queue", input="by\npipe\n")
    assert pending(town) == [("mayor", "by flag", "urgent", "r1"), ("mayor", "by\npipe", "normal", "r1")]


@pytest.mark.parametrize("message", ["", "   ", "\x00\x1b"])
def test_an_empty_message_is_bad_usage(town: Town, message: str) -> None:
    add(town)
    with pytest.raises(UsageError, match="empty"):
        run("nudge", "toast", message)
    assert pending(town) == []


def test_a_run_that_has_ended_is_refused(town: Town) -> None:
    add(town, GroupState.NUKED)
    with pytest.raises(RunEndedError, match="has ended"):
        run("nudge", "toast", "hello")
    with pytest.raises(NotFoundError):
        run("nudge", "nobody", "hello")
    add(town, GroupState.NUKING, "r2")
    with pytest.raises(RunEndedError, match="being ended"):
        run("nudge", "toast", "hello")
    assert pending(town) == []


def test_a_full_queue_says_what_to_do(town: Town) -> None:
    add(town)
    for number in range(50):
        run("nudge", "toast", str(number), "--mode", "queue")
    with pytest.raises(QueueFullError, match="--priority urgent"):
        run("nudge", "toast", "one more", "--mode", "queue")
    run("nudge", "toast", "one more", "--mode", "queue", "--priority", "urgent")
    assert len(pending(town)) == 50


def test_json_alone(town: Town) -> None:
    add(town)
    told = json.loads(run("nudge", "toast", "hello", "--mode", "queue", "--json").stdout)
    assert (told["polecat"], told["session"], told["mode"], told["delivered"]) == (
        "main/toast",
        "gt-toast",
        "queue",
        False,
    )
    assert told["file"].endswith(".json")


@pytest.fixture
def tmux(town: Town) -> Iterator[Tmux]:
    tmux = Tmux(town.socket)
    yield tmux
    if tmux.panes():
        tmux.run("kill-server")


def test_peek_shows_the_last_lines(town: Town, tmux: Tmux) -> None:
    add(town)
    program = "import sys\nfor n in range(100): print('line', n, flush=True)\nsys.stdin.read()"
    tmux.new_session("gt-toast", "/", [sys.executable, "-c", program], {}, (80, 20))
    until_shown(tmux, "gt-toast", lambda: "line 99" in tmux.capture("gt-toast", 5))
    assert run("peek", "toast", "-n", "3").stdout.splitlines() == ["line 97", "line 98", "line 99"]
    assert len(run("peek", "main/toast").stdout.splitlines()) == 100
    assert run("peek", "gt-toast", "2").stdout.splitlines() == ["line 98", "line 99"]


def test_peek_into_a_session_that_is_no_polecat(town: Town, tmux: Tmux) -> None:
    tmux.new_session("hq-mayor", "/", ["cat"], {}, (80, 20))
    assert run("peek", "hq-mayor").exit_code == 0
    with pytest.raises(NotFoundError):
        run("peek", "hq-may")


def test_immediate_types_and_refuses_a_dialog(town: Town, tmux: Tmux, tmp_path: Path) -> None:
    add(town, agent=("claude",))
    program = "import sys\nprint('Do you want to proceed?\\n ❯ 1. Yes\\n Esc to cancel', flush=True)\nsys.stdin.read()"
    tmux.new_session("gt-toast", "/", [sys.executable, "-c", program], {}, (80, 20))
    until_shown(tmux, "gt-toast", lambda: "Esc to cancel" in tmux.capture("gt-toast", 20))
    with pytest.raises(WitnessError, match="may be asking a person"):
        run("nudge", "toast", "yes", "--mode", "immediate")
