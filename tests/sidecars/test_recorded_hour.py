"""A recorded hour of the real Claude Code: few calls, no labelled signal lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecars.tuning.replay import NAIVE_SECONDS
from tests.sidecars.recordings.hour import LABELS, moments, run
from tests.sidecars.recordings.record import HOUR


def test_it_is_an_hour_with_spinners_and_long_calls() -> None:
    screens = [moment for moment in moments("screen") if moment.screen]
    assert screens[-1].time - screens[0].time == pytest.approx(HOUR, rel=0.02)
    assert sum("…" in (moment.screen or "") and "esc to interrupt" in (moment.screen or "") for moment in screens) > 100
    assert len(moments("event")) > 50


def test_each_action_is_seen_once_on_the_screen(tmp_path: Path) -> None:
    """As often as the hooks told of it: every edit was another, no command was run twice."""
    done, _ = run(tmp_path, "screen", "rules+model")
    told, _ = run(tmp_path, "event", "rules+model")
    assert len(done.decisions) <= len(told.decisions) + 3


@pytest.mark.parametrize("source", ["event", "screen"])
@pytest.mark.parametrize("judge", ["model", "rules+model"])
def test_a_tenth_of_the_naive_calls_finds_everything(tmp_path: Path, source: str, judge: str) -> None:
    done, oracle = run(tmp_path, source, judge)
    said = [decision.message for decision in done.decisions if decision.outcome in ("injected", "refused")]
    assert [label for label in LABELS if not any(label in message for message in said)] == []
    assert [each.reason for each in done.decisions if each.outcome == "refused"] == []
    assert oracle.calls <= 0.10 * HOUR / NAIVE_SECONDS
