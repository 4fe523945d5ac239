"""Settings that would hurt the Witness are refused, with file, line and key."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

from witness.config.settings import Settings, load_settings, parse_duration
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


def test_every_setting_stands_on_its_page_with_its_default() -> None:
    page = (Path(__file__).parents[1] / "docs" / "settings.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    told = {row[0].strip("| `"): row[1].strip("`") for row in rows}
    assert list(told) == [each.name for each in fields(Settings)]
    plain = Settings()
    for name, text in told.items():
        value = getattr(plain, name)
        if isinstance(value, float) and text[-1] in "smhd":
            assert parse_duration(text) == value, name
        elif isinstance(value, bool):
            assert text == str(value).lower(), name
        elif isinstance(value, tuple) and value:
            assert text == json.dumps(list(value)), name
        else:
            assert text == (str(value) if value or isinstance(value, float | int) else "empty"), name
    assert all(len(row) == 3 and len(row[2]) > 10 for row in rows), "each says what it means"
