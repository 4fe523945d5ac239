from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sidecars.definition.sidecar_type import Confidence, Rule, tool_filter
from sidecars.observer.context import Context
from sidecars.observer.factory import Components
from sidecars.observer.judge.rules import RulesJudge
from sidecars.observer.judge.verdict import quoted_from
from sidecars.observer.observe.observation import Observation

SETS = Context(sets={"files": ("src/**",), "not": ("src/private/**",)})
EDIT = Observation("e", tool="Edit", written=("src/private/x.py",), text="import os\n", lines_written=1)


def fires(rule: Rule, seen: Observation, material: Context = SETS) -> bool:
    (verdict,) = RulesJudge([rule], material).judge([seen])
    assert verdict.observation == seen.id
    return verdict.signal


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"tools": ("Edit", "Write")}, True),
        ({"tools": ("Ed*",)}, True),
        ({"tools": ("edit",)}, False),
        ({"tools": ("mcp__*",)}, False),
        ({"writes": ("@not",)}, True),
        ({"opens": ("@not",)}, False),
        ({"touches": ("@not",)}, True),
        ({"touches": ("@not",), "but_not": ("*.py",)}, False),
        ({"writes_outside": ("@files",)}, False),
        ({"writes_outside": ("docs/**",)}, True),
        ({"touches_outside": ("docs/**",)}, True),
        ({"writes_outside": ("docs/**",), "but_not": ("src/",)}, False),
        ({"writes_outside": ("@unknown",)}, False),
        ({"writes": ("@unknown",)}, False),
        ({"text": r"^import os$"}, True),
        ({"text": "import sys"}, False),
        ({"command": "x"}, False),
        ({"failed": True}, False),
        ({"failed": False}, True),
        ({"lines_over": 0}, True),
        ({"lines_over": 1}, False),
        ({"tools": ("Edit",), "unless": "import"}, False),
        ({"tools": ("Edit",), "text": "os", "writes": ("src/**",)}, True),
        ({"tools": ("Edit",), "text": "sys", "writes": ("src/**",)}, False),
    ],
)
def test_every_condition_must_hold(conditions: dict[str, Any], expected: bool) -> None:
    assert fires(Rule("r", snippet="s", **conditions), EDIT) is expected


@pytest.mark.parametrize(
    ("blocks", "expected"), [(None, False), (frozenset({"role"}), True), (frozenset({"constraints"}), False)]
)
def test_a_missing_block(blocks: frozenset[str] | None, expected: bool) -> None:
    rule = Rule("r", tools=("Edit",), lacks_block="constraints", snippet="s")
    assert fires(rule, EDIT, replace(SETS, blocks=blocks, library={"constraints": "No network."})) is expected
    assert not fires(rule, EDIT, replace(SETS, blocks=blocks))


def test_the_first_rule_that_holds_is_reported() -> None:
    rules = [Rule("a", tools=("Write",), snippet="1"), Rule("b", tools=("Edit",), snippet="2"), Rule("c", snippet="3")]
    (verdict,) = RulesJudge(rules, SETS).judge([EDIT])
    assert (verdict.rule, verdict.snippet) == ("b", "2")


def test_a_verdict_says_what_it_found_and_quotes_it() -> None:
    rule = Rule("r", writes=("@not",), confidence=Confidence.LOW, snippet="s")
    (verdict,) = RulesJudge([rule], SETS).judge([EDIT])
    assert dict(verdict.values) == {"tool": "Edit", "path": "src/private/x.py", "set": "src/private/**"}
    assert verdict.confidence is Confidence.LOW
    assert quoted_from(verdict.evidence, [EDIT]) == "e"


@pytest.mark.parametrize(
    "seen",
    [
        Observation("e", tool="Bash", command="rm -rf build\nls"),
        Observation("e", tool="Bash", command="x", output="Traceback (most recent call last):\n  boom"),
        Observation("e", tool="Write", text="a = 1\n" * 30),
        Observation("e", tool="Task"),
    ],
)
def test_all_evidence_stands_in_the_observation(seen: Observation) -> None:
    rule = Rule(
        "r", tools=("*",), snippet="s", output="Traceback.*" if seen.output else "", text="a = 1" if seen.text else ""
    )
    (verdict,) = RulesJudge([rule], SETS).judge([seen])
    assert verdict.signal
    assert quoted_from(verdict.evidence, [seen]) == "e"


def test_no_globs_mean_any_tool() -> None:
    assert tool_filter(())("anything")


@pytest.mark.parametrize(
    ("seen", "rule"),
    [
        (Observation("e", tool="Edit", written=("src/private/a.py",)), "edited-what-is-not"),
        (Observation("e", tool="Read", opened=("prod.env",)), "opened-what-is-not"),
        (Observation("e", tool="Bash", command="ls src/private", opened=("src/private",)), "opened-what-is-not"),
        (Observation("e", tool="Write", written=("docs/a.md",)), "edited-outside"),
        (Observation("e", tool="Write", written=("/etc/hosts",)), "edited-outside"),
        (Observation("e", tool="Read", opened=("docs/a.md",)), ""),
        (Observation("e", tool="Edit", written=("src/a.py",)), ""),
        (Observation("e", tool="Write", written=("/tmp/note",)), ""),
        (Observation("e", tool="Bash", command="make test"), ""),
    ],
)
def test_the_scope_type(scope: Components, seen: Observation, rule: str) -> None:
    (verdict,) = scope.judge.judge([seen])
    assert (verdict.rule, verdict.signal) == (rule, bool(rule))
