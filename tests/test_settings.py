"""Settings that would hurt the Witness are refused, with file, line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from witness.config.settings import load_settings
from witness.errors import DeclarationError


@pytest.mark.parametrize(
    "line",
    [
        "stop_grace: [1]", "stop_grace: {a: 1}", "stop_grace: null", "stop_grace: -5", "stop_grace: .nan",
        "hung_after: .inf", "patrol_interval: 0", "patrol_interval: 0s", "patrol_interval: 1ms",
        "run_budget: .nan", "day_budget: .inf", "stop_grace: 2026-01-01",
    ],
)  # fmt: skip
def test_no_length_of_time_and_no_limit(tmp_path: Path, line: str) -> None:
    """A duration that is none at all was a crash of the daemon that read it anew; a zero interval a busy core."""
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "witness.yaml").write_text(f"# first\n{line}\n")
    with pytest.raises(DeclarationError) as caught:
        load_settings(tmp_path, "main")
    (problem,) = caught.value.problems
    assert (problem.line, problem.key) == (2, line.partition(":")[0])


def test_what_is_usable_is_used(tmp_path: Path) -> None:
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "witness.yaml").write_text("patrol_interval: 10ms\nstop_grace: 0\nday_budget: 1\n")
    settings = load_settings(tmp_path, "main")
    assert (settings.patrol_interval, settings.stop_grace, settings.day_budget) == (0.01, 0.0, 1.0)
