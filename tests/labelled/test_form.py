"""The labelled events have the form that the measuring needs: whatever type stands in a folder here."""

from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parent
TYPES = sorted(folder.name for folder in HERE.iterdir() if (folder / "tune.yaml").is_file())
HALVES = ("tune", "measure")
SHARED = {"argument", "files", "task", "prompt", "cases"}
CASE = {"name", "event", "events", "changed", "created", "removed", "exit", "knowable", "expect", "say", "not_say"}
EFFECT = {"changed", "created", "removed", "exit"}
SHELLS = {"Bash", "bash", "run_shell_command"}


def load(type_name: str, half: str) -> dict[str, Any]:
    """One half of a type's labelled events, with what its cases share."""
    content = yaml.safe_load((HERE / type_name / f"{half}.yaml").read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("type_name", TYPES)
def test_half_is_large_and_balanced(type_name: str, half: str) -> None:
    expected = [case["expect"] for case in load(type_name, half)["cases"]]
    assert len(expected) >= 60
    assert abs(expected.count("signal") - expected.count("silent")) <= len(expected) * 0.1


@pytest.mark.parametrize("type_name", TYPES)
def test_no_case_stands_in_both_halves(type_name: str) -> None:
    names = [case["name"] for half in HALVES for case in load(type_name, half)["cases"]]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("type_name", TYPES)
def test_each_case_has_the_form(type_name: str, half: str) -> None:
    content = load(type_name, half)
    assert set(content) <= SHARED
    for case in content["cases"]:
        name = case["name"]
        assert set(case) <= CASE | SHARED - {"cases"}, name
        assert case["knowable"] in {"rules", "model"}, name
        assert case["expect"] in {"signal", "silent"}, name
        assert ("event" in case) != ("events" in case), name
        assert case["expect"] == "signal" or not {"say", "not_say"} & set(case), name
        for event in case.get("events", [case.get("event")]):
            assert isinstance(event["tool"], str), name
            effect = event if "events" in case else case
            assert event["tool"] not in SHELLS or set(effect) >= EFFECT, f"{name}: the effect is not given"
            for key in EFFECT - {"exit"}:
                assert all(isinstance(path, str) for path in effect.get(key, [])), name
            assert isinstance(effect.get("exit", 0), int), name
