"""The restart policy, as arithmetic on a clock that only the test moves."""

from __future__ import annotations

import pytest

from witness.config.settings import Settings
from witness.supervise.plan_sidecars import RestartDecision, after_crash

SETTINGS = Settings(backoff_base=1.0, backoff_ceiling=10.0, intensity=5, intensity_window=60.0, failed_decay=900.0)


def _crash_at(*instants: float, salt: str = "run/scope", settings: Settings = SETTINGS) -> list[RestartDecision]:
    verdicts: list[RestartDecision] = []
    for now in instants:
        verdicts.append(after_crash(verdicts[-1].crashes if verdicts else (), now, settings, salt))
    return verdicts


def test_the_first_respawn_is_immediate() -> None:
    (first,) = _crash_at(100.0)
    assert first == RestartDecision((100.0,), 100.0, spent=False)


def test_each_further_wait_doubles_with_jitter_below_half() -> None:
    for number, verdict in enumerate(_crash_at(100.0, 101.0, 102.0, 103.0, 104.0)[1:]):
        wait = verdict.retry_at - verdict.crashes[-1]
        assert 0.5 * 2**number <= wait <= 1.0 * 2**number, number


def test_the_wait_has_a_ceiling() -> None:
    patient = Settings(backoff_base=1.0, backoff_ceiling=10.0, intensity=100, intensity_window=1e9)
    last = _crash_at(*map(float, range(40)), settings=patient)[-1]
    assert 5.0 <= last.retry_at - 39.0 <= 10.0


def test_jitter_spreads_those_that_fell_together_and_is_the_same_for_the_same_one() -> None:
    waits = {_crash_at(1.0, 2.0, salt=f"run/{n}")[-1].retry_at for n in range(50)}
    assert len(waits) == 50
    assert _crash_at(1.0, 2.0)[-1] == _crash_at(1.0, 2.0)[-1]


def test_more_crashes_than_the_intensity_within_the_window_spend_the_retries() -> None:
    verdicts = _crash_at(0.0, 10.0, 20.0, 30.0, 40.0, 50.0)
    assert [verdict.spent for verdict in verdicts] == [False] * 5 + [True]
    assert verdicts[-1].retry_at == 50.0 + 900.0


@pytest.mark.parametrize("life", [1.2, 9.9])
def test_a_sidecar_that_always_dies_a_little_later_is_failed_all_the_same(life: float) -> None:
    assert any(verdict.spent for verdict in _crash_at(*(life * n for n in range(1, 12))))


def test_crashes_older_than_the_window_are_forgotten() -> None:
    verdicts = _crash_at(*(61.0 * n for n in range(200)))
    assert not any(verdict.spent for verdict in verdicts)
    assert all(len(verdict.crashes) == 1 and verdict.retry_at == verdict.crashes[0] for verdict in verdicts)


def test_the_crash_list_does_not_grow_for_ever() -> None:
    crashes: tuple[float, ...] = ()
    for n in range(1000):
        crashes = after_crash(crashes, float(n), SETTINGS).crashes
    assert len(crashes) <= 61


def test_after_the_decay_it_is_tried_again_and_counts_anew() -> None:
    spent = _crash_at(0.0, 1.0, 2.0, 3.0, 4.0, 5.0)[-1]
    again = after_crash(spent.crashes, spent.retry_at + 1, SETTINGS)
    assert not again.spent
    assert again.retry_at == spent.retry_at + 1
