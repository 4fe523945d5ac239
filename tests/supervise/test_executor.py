"""What the patrol does beyond starting and ending: telling, and telling once."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.supervise.facts import BOOT, RUN, group, member
from witness.clock import ManualClock
from witness.config.settings import Settings
from witness.config.town import Town
from witness.journal import Decision, Journal
from witness.nuke import Survivor, TerminationResult
from witness.process.table import identify
from witness.supervise.actions import EndOrphans, Tell
from witness.supervise.executor import PatrolResult
from witness.supervise.reconcile import Reconciler


@pytest.fixture
def reconciler(tmp_path: Path) -> Iterator[Reconciler]:
    """The patrol of a Gas Town whose rig `main` has the prefix `mn`."""
    (tmp_path / "mayor").mkdir()
    (tmp_path / "mayor" / "town.json").write_text("{}")
    rigs = {"version": 1, "rigs": {"main": {"git_url": "x", "beads": {"repo": "", "prefix": "mn"}}}}
    (tmp_path / "mayor" / "rigs.json").write_text(json.dumps(rigs))
    town = Town.at(tmp_path)
    town.make_runtime()
    with Journal(town.journal_path) as journal:
        journal.groups.add(group())
        journal.members.add(member("scope"))
        made = Reconciler(town, journal, ManualClock(boot=BOOT))
        yield made
        made.close()


def _queue(reconciler: Reconciler, session: str) -> list[dict[str, object]]:
    return [json.loads(each.read_text()) for each in reconciler.town.queue_dir(session).glob("*.json")]


def test_the_rigs_witness_is_told_in_its_queue(reconciler: Reconciler) -> None:
    reconciler.actor.perform([Tell(RUN, "sidecar scope is FAILED")], {"main": Settings()}, PatrolResult())
    (nudge,) = _queue(reconciler, "mn-witness")
    assert nudge["message"] == "main/toast: sidecar scope is FAILED"
    assert nudge["sender"] == "gt-witness"


def test_orphans_that_cannot_be_ended_are_told_once(reconciler: Reconciler, monkeypatch: pytest.MonkeyPatch) -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        orphan = identify(child.pid)
        assert orphan
        monkeypatch.setattr(
            reconciler.actor,
            "end",
            lambda goals, grace: [TerminationResult(RUN, 0, (Survivor(orphan, "sleep"),), grace)],
        )
        told = []
        for _ in range(3):
            deeds = PatrolResult()
            reconciler.actor.perform([EndOrphans(RUN, frozenset({orphan}))], {"main": Settings()}, deeds)
            told.append((len(deeds.zombies), len(deeds.errors)))
        assert told == [(1, 1), (0, 0), (0, 0)]
        assert [event.kind for event in reconciler.journal.history(RUN)].count("zombie") == 1
    finally:
        child.kill()
        child.wait()


def test_a_stale_move_changes_nothing(reconciler: Reconciler) -> None:
    """Somebody else was quicker: the record that a plan was made on is not the present one."""
    from witness.journal import MemberState
    from witness.supervise.actions import MoveMember
    from witness.supervise.lifecycle import MemberEvent

    stale = replace(member("scope"), state=MemberState.SPAWNING)
    reconciler.actor.perform([MoveMember(stale, MemberEvent.READY, stale)], {"main": Settings()}, PatrolResult())
    (now,) = reconciler.journal.members.of(RUN)
    assert now.state is MemberState.RUNNING
    assert reconciler.journal.history(RUN) == []


def test_of_two_that_end_the_same_group_the_slower_is_content(
    reconciler: Reconciler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A spawn that undoes itself, and the Witness that has found its dead agent: both are right."""
    assert reconciler.actor.begin_nuke(RUN, "spawn-failed")
    result = TerminationResult(RUN, 1, (), 0.1)
    with Journal(reconciler.town.journal_path) as journal:
        witness = Reconciler(reconciler.town, journal, ManualClock(boot=BOOT))
        finish = witness.actor.finish_nuke
        # The Witness comes between the spawn's look at the record and its own last words.
        monkeypatch.setattr(reconciler.tmux, "variable", lambda *_: finish(result, PatrolResult(), ()))
        slower = PatrolResult()
        reconciler.actor.finish_nuke(result, slower)
        witness.close()
    assert (slower.nuked, slower.errors) == ([], [])
    assert [event.kind for event in reconciler.journal.history(RUN)].count("nuked") == 1
    assert reconciler.actor.begin_nuke(RUN, "nuke") is None


def test_what_a_sidecar_still_had_to_say_is_recorded_as_unsaid_with_the_end_of_its_run(
    reconciler: Reconciler,
) -> None:
    """It is killed with its group, so it cannot say so by itself."""
    reconciler.journal.decisions.add(
        Decision("d1", RUN, "scope", 1.0, 1.0, "refused", "cooldown: 9 s left", stage="held", gate="cooldown")
    )
    assert reconciler.actor.begin_nuke(RUN, "nuke")
    reconciler.actor.finish_nuke(TerminationResult(RUN, 1, (), 0.1), PatrolResult())
    (decision,) = reconciler.journal.decisions.of(RUN)
    assert (decision.stage, decision.reason) == ("unsaid", "cooldown: 9 s left; unsaid: the run ended first")
    assert reconciler.journal.decisions.held(RUN, "scope") == []
