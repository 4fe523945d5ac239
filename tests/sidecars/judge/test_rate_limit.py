from __future__ import annotations

from itertools import pairwise

import pytest

from sidecars.observer.judge.asking import BURST, Pace
from witness.clock import ManualClock
from witness.journal import Decision, Journal, Usage


@pytest.fixture
def pace(journal: Journal, clock: ManualClock) -> Pace:
    return Pace(journal, "run-1", "specs", 30, clock)


def call(journal: Journal, clock: ManualClock, sidecar: str = "specs") -> None:
    id = f"{sidecar}-{clock.wall()}-{len(journal.decisions.of('run-1'))}"
    journal.decisions.add(Decision(id, "run-1", sidecar, clock.wall(), 0.0, "silent", usage=Usage(calls=1)))


def test_a_burst_and_then_an_even_pace(pace: Pace, journal: Journal, clock: ManualClock) -> None:
    for _ in range(BURST):
        assert pace.wait() == 0.0
        call(journal, clock)
    assert pace.wait() == pytest.approx(3600 / 26)
    clock.advance(3600 / 26)
    assert pace.wait() == 0.0


def test_an_hour_of_constant_wishes_holds_the_pace(pace: Pace, journal: Journal, clock: ManualClock) -> None:
    calls = 0
    end = clock.wall() + 3600
    while clock.wall() < end:
        clock.advance(pace.wait() or 1.0)
        if pace.wait() == 0.0:
            call(journal, clock)
            calls += 1
    assert 25 <= calls <= 31


def test_a_successor_and_a_neighbour(pace: Pace, journal: Journal, clock: ManualClock) -> None:
    for _ in range(BURST):
        call(journal, clock)
    assert Pace(journal, "run-1", "specs", 30, clock).wait() > 0
    assert Pace(journal, "run-1", "tools", 30, clock).wait() == 0
    assert Pace(journal, "run-2", "specs", 30, clock).wait() == 0


def test_trouble_rests_the_whole_town_longer_each_time(pace: Pace, journal: Journal, clock: ManualClock) -> None:
    other = Pace(journal, "run-2", "tools", 30, clock)
    rests = []
    for _ in range(8):
        pace.failed()
        rests.append(other.wait())
        clock.advance(other.wait() + 0.001)
    assert 15 <= rests[0] <= 18.75
    assert all(later > earlier for earlier, later in pairwise(rests[:5]))
    assert max(rests) <= 600 * 1.25
    pace.succeeded()
    pace.failed()
    assert other.wait() <= 18.75


def test_the_servers_own_wish_counts(pace: Pace) -> None:
    pace.failed(120.0)
    assert 120 <= pace.wait() <= 150
