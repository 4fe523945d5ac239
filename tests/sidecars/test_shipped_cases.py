"""The shipped cases hold for the rules judges: nothing is ever said that should not be."""

from __future__ import annotations

import pytest

from sidecars.tuning.evaluate import CASES_FILE, evaluate, load_cases
from sidecars.tuning.lint import lint
from sidecars.type_reader.rule_reader import SHIPPED
from sidecars.type_reader.sidecar_type import variant
from sidecars.type_reader.type_loader import load_type

TYPES = sorted(path.parent.name for path in SHIPPED.glob(f"*/{CASES_FILE}"))


def test_every_type_ships_cases() -> None:
    assert TYPES == ["blocks", "conventions", "loop", "scope", "specs", "tools"]


@pytest.mark.parametrize("name", TYPES)
def test_there_are_enough_cases_half_of_them_silent(name: str) -> None:
    cases = load_cases(SHIPPED / name / CASES_FILE)
    silent = sum(not case.signal for case in cases)
    assert len(cases) >= 20
    assert 0.4 <= silent / len(cases) <= 0.6
    assert len({case.name for case in cases}) == len(cases)


@pytest.mark.parametrize("name", TYPES)
def test_rules_never_speak_without_need_and_find_all_that_rules_can_find(name: str) -> None:
    score = evaluate(load_cases(SHIPPED / name / CASES_FILE), variant(load_type(name), "rules"))
    assert score.precision == 1.0
    wrong = [each.case.name for each in score.results if not each.right and not (each.case.needs and not each.spoke)]
    assert wrong == []


@pytest.mark.parametrize("name", TYPES)
def test_the_same_judge_without_a_key(name: str) -> None:
    """What a machine without a key runs: a type that wants a model falls back on its rules."""
    score = evaluate(load_cases(SHIPPED / name / CASES_FILE), load_type(name))
    assert [
        each.case.name for each in score.results if not each.right and not (each.case.needs and not each.spoke)
    ] == []


@pytest.mark.parametrize("name", TYPES)
def test_the_shipped_types_have_no_warning(name: str) -> None:
    assert [str(warning) for warning in lint(name).warnings] == []
