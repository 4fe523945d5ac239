"""What a real town does to our following of its polecats, and what we must not do to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

from tests.gastown.observed import group, scope, until_observed
from tests.gastown.real_town import RealPolecat, RealTown
from tests.waiting import until
from witness.api import Witness
from witness.config.resources import hooks_dir
from witness.journal import MemberKind
from witness.process import ProcessId
from witness.process.exits import wait_gone
from witness.process.table import identify, is_alive


def test_a_slung_polecat_is_observed_by_what_the_real_bead_says(
    gastown: RealTown, witness: Witness, observed: RealPolecat
) -> None:
    found = group(witness, observed)
    assert found is not None
    assert (found.session, found.run_state.bead) == (observed.session, observed.bead)
    assert found.run_state.task == "Fix the totals"
    agents = [m.process for m in witness.journal.members.of(found.id.run) if m.kind is MemberKind.AGENT]
    assert [agent.pid for agent in agents if agent] == [observed.pid]


def test_the_end_of_an_observation_leaves_gas_towns_own_reminder(
    gastown: RealTown, witness: Witness, observed: RealPolecat
) -> None:
    """G2: a reply reminder, which the real ``gt mail send`` queues for later, outlives ESTOP and thaw."""
    gastown.run("gt", "mail", "send", observed.address, "-s", "Question", "-m", "Which port?")
    (before,) = [nudge for nudge in gastown.queued(observed.session) if nudge.get("kind") == "reply-reminder"]
    gastown.run("gt", "estop", "--reason", "test", "--rig", "shop", check=False)
    assert (gastown.root / "ESTOP.shop").exists() or (gastown.root / "ESTOP").exists()
    try:
        witness.patrol()
        assert group(witness, observed) is None
    finally:
        gastown.run("gt", "thaw", "--rig", "shop", check=False)
        for name in ("ESTOP", "ESTOP.shop"):
            (gastown.root / name).unlink(missing_ok=True)
    assert before in gastown.queued(observed.session)
    assert is_alive(_agent(observed)), "the agent is Gas Town's"
    until_observed(gastown, witness, observed)


def test_no_gt_command_after_done_brings_sidecars_back(
    gastown: RealTown, witness: Witness, observed: RealPolecat
) -> None:
    """G3: any ``gt`` command sets the heartbeat to ``working``; only new work means a new observation."""
    found = group(witness, observed)
    assert found is not None
    done = observed.run("gt", "done", "--status", "DEFERRED")
    assert done.returncode == 0, done.stdout + done.stderr

    def ended() -> bool:
        witness.patrol()
        return group(witness, observed) is None

    until(ended, "the end of the observation", 60, below=gastown.agents, every=0.2)
    observed.run("gt", "tap", "polecat-stop-check")  # Gas Town's own Stop hook
    observed.run("gt", "mail", "check", "--inject", stdin="{}")
    observed.run("gt", "hook")
    assert gastown.heartbeat(observed.session) == "working"
    for _ in range(3):
        assert witness.patrol().errors == []
        assert group(witness, observed) is None
    assert is_alive(_agent(observed)), "its session stays for the next work"


def test_a_crashed_sidecar_of_closed_work_stays_away(
    gastown: RealTown, witness: Witness, observed: RealPolecat
) -> None:
    """G11: the assignment is looked at before a sidecar is started again."""
    found = group(witness, observed)
    assert found is not None
    watcher = scope(witness, found)
    assert watcher is not None
    gastown.run("bd", "close", observed.bead, cwd=gastown.root / "shop")
    os.kill(watcher.pid, 9)
    assert not wait_gone({watcher}, 10.0)
    report = witness.patrol()
    assert (report.respawned, report.errors) == ([], [])
    assert group(witness, observed) is None
    assert is_alive(_agent(observed))


def test_nudges_of_the_real_programs_reach_an_idle_agent(
    gastown: RealTown, witness: Witness, observed: RealPolecat
) -> None:
    """G1: the idle watch wakes between Gas Town's create and its write; nothing may be taken for malformed."""
    number, heard, taken = 120, list[str](), list[str]()

    def by_gt() -> None:
        for name in (f"gt-{n:04}" for n in range(5)):
            # It refuses what finds the queue full; nq waits.
            if not gastown.run("gt", "nudge", observed.address, name, "--mode", "queue", check=False).returncode:
                taken.append(name)

    writers = [threading.Thread(target=by_gt)] + [
        threading.Thread(target=gastown.run, args=("nq", "enq", str(gastown.root), observed.session, str(number), name))
        for name in ("one", "two")
    ]
    for writer in writers:
        writer.start()

    def all_heard() -> bool:
        # As the client runs it beside an agent at its prompt, which begins a turn with what it says.
        watch = observed.run(
            sys.executable, "-S", "-I", str(hooks_dir() / "gt_hook.py"), "Idle", stdin="{}",
            CLAUDE_CODE_ENTRYPOINT="cli", AI_AGENT="claude-code_2-1-332_harness",
        )  # fmt: skip
        assert watch.returncode == 2, (watch.returncode, watch.stderr)
        heard.append(watch.stderr)
        over = not any(writer.is_alive() for writer in writers)
        return over and not gastown.queued(observed.session)

    gastown.run(
        "nq", "enq", str(gastown.root), observed.session, "1", "last"
    )  # so that each watch has something to end with
    until(all_heard, "all nudges", 120, below=gastown.agents, every=0.01)
    text = "\n".join(heard)
    wanted = {"last-0000", *taken, *(f"{name}-{n:04}" for name in ("one", "two") for n in range(number))}
    assert {each: text.count(each) for each in wanted if text.count(each) != 1} == {}
    assert not list((gastown.town.queue_dir(observed.session) / "malformed").glob("*"))


def _agent(observed: RealPolecat) -> ProcessId:
    found = identify(observed.pid)
    assert found is not None
    return found


def test_a_daemon_and_cron_find_a_tmux_that_lies_elsewhere(
    gastown: RealTown, witness: Witness, observed: RealPolecat
) -> None:
    """G6: the town's tmux has a ``TMUX_TMPDIR``, which cron does not know."""
    found = group(witness, observed)
    assert found is not None
    watcher = scope(witness, found)
    assert watcher is not None
    gastown.ours("witness", "start")
    try:
        status = json.loads(gastown.ours("witness", "patrol", "--json").stdout)
        assert status["checked"] >= 1
        without = {name: value for name, value in gastown.environment.items() if name != "TMUX_TMPDIR"}
        argv = [sys.executable, "-m", "witness.cli", "witness", "patrol", "--json"]
        done = subprocess.run(argv, env=without, cwd=gastown.root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert group(witness, observed) is not None
    finally:
        gastown.ours("witness", "stop")
    # And with no daemon that could be asked.
    done = subprocess.run(argv, env=without, cwd=gastown.root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert group(witness, observed) is not None
    assert is_alive(watcher)
