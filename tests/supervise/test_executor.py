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
from witness.journal import Journal
from witness.nuke.terminate import Ended, Survivor
from witness.process.table import identify
from witness.supervise.actions import EndOrphans, Tell
from witness.supervise.executor import Deeds
from witness.supervise.reconcile import Rounds


@pytest.fixture
def rounds(tmp_path: Path) -> Iterator[Rounds]:
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
        made = Rounds(town, journal, ManualClock(boot=BOOT))
        yield made
        made.close()


def _queue(rounds: Rounds, session: str) -> list[dict[str, object]]:
    return [json.loads(each.read_text()) for each in rounds.town.queue_dir(session).glob("*.json")]


def test_the_rigs_witness_is_told_in_its_queue(rounds: Rounds) -> None:
    rounds.actor.perform([Tell(RUN, "sidecar scope is FAILED")], {"main": Settings()}, Deeds())
    (nudge,) = _queue(rounds, "mn-witness")
    assert nudge["message"] == "main/toast: sidecar scope is FAILED"
    assert nudge["sender"] == "gt-witness"


def test_orphans_that_cannot_be_ended_are_told_once(rounds: Rounds, monkeypatch: pytest.MonkeyPatch) -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        orphan = identify(child.pid)
        assert orphan
        monkeypatch.setattr(
            rounds.actor, "end", lambda goals, grace: [Ended(RUN, 0, (Survivor(orphan, "sleep"),), grace)]
        )
        told = []
        for _ in range(3):
            deeds = Deeds()
            rounds.actor.perform([EndOrphans(RUN, frozenset({orphan}))], {"main": Settings()}, deeds)
            told.append((len(deeds.zombies), len(deeds.errors)))
        assert told == [(1, 1), (0, 0), (0, 0)]
        assert [event.kind for event in rounds.journal.history(RUN)].count("zombie") == 1
    finally:
        child.kill()
        child.wait()


def test_a_stale_move_changes_nothing(rounds: Rounds) -> None:
    """Somebody else was quicker: the record that a plan was made on is not the present one."""
    from witness.journal import MemberState
    from witness.supervise.actions import MoveMember
    from witness.supervise.states import MemberEvent

    stale = replace(member("scope"), state=MemberState.SPAWNING)
    rounds.actor.perform([MoveMember(stale, MemberEvent.READY, stale)], {"main": Settings()}, Deeds())
    (now,) = rounds.journal.members.of(RUN)
    assert now.state is MemberState.RUNNING
    assert rounds.journal.history(RUN) == []


def test_of_two_that_end_the_same_group_the_slower_is_content(rounds: Rounds, monkeypatch: pytest.MonkeyPatch) -> None:
    """A spawn that undoes itself, and the Witness that has found its dead agent: both are right."""
    assert rounds.actor.begin_nuke(RUN, "spawn-failed")
    result = Ended(RUN, 1, (), 0.1)
    with Journal(rounds.town.journal_path) as journal:
        witness = Rounds(rounds.town, journal, ManualClock(boot=BOOT))
        finish = witness.actor.finish_nuke
        # The Witness comes between the spawn's look at the record and its own last words.
        monkeypatch.setattr(rounds.actor, "_take_session", lambda *_: finish(result, Deeds(), ()))
        slower = Deeds()
        rounds.actor.finish_nuke(result, slower)
        witness.close()
    assert (slower.nuked, slower.errors) == ([], [])
    assert [event.kind for event in rounds.journal.history(RUN)].count("nuked") == 1
    assert rounds.actor.begin_nuke(RUN, "nuke") is None
