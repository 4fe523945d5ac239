from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sidecars.observer.context import Context
from sidecars.observer.context.project_names import offered
from sidecars.observer.factory import Components
from sidecars.observer.judge.rules import RulesJudge
from sidecars.observer.judge.verdict import quoted_from
from sidecars.type_reader.sidecar_type import Confidence, Rule, tool_filter
from witness.judging.observation import Observation

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
    found = {"tool": "Edit", "path": "src/private/x.py", "done": "was changed", "set": "src/private/**"}
    assert dict(verdict.values) == found
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


APIS = Context(names=offered("lib/text.py", "def slugify(title):\n    return title\n\nLIMIT = 3\ndef _own(): ...\n"))
AGAIN = Rule("again", snippet="s", defines="@apis")
LONG = Rule("long", snippet="s", function_over=3)
SLUG = "def slugify(t):\n    return t\n"


def wrote(path: str, text: str, tool: str = "Write") -> Observation:
    return Observation("e", tool=tool, written=(path,), text=text, lines_written=len(text.splitlines()))


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("app/a.py", SLUG, True),
        ("app/a.js", "const slugify = (t) => t\n", False),  # a script cannot call Python
        ("app/a.go", "package a\nfunc Slugify(t string) string { return t }\n", False),
        ("app/a.py", "LIMIT: int = 4\n", True),
        ("lib/text.py", SLUG, False),  # where it is at home
        ("docs/a.md", f"```python\n{SLUG}```\n", False),
        ("tests/test_a.py", SLUG, False),  # a test's own helper
        ("app/slug_pb2.py", SLUG, False),
        ("app/a.py", "# Generated by tool. Do not edit.\n" + SLUG, False),
        ("app/a.py", '# def slugify(t):\ntext = """\ndef slugify(t):\n    return t\n"""\n', False),
        ("app/a.py", "from lib.text import slugify\nx = slugify(t)\n", False),
        ("app/a.py", "class Page:\n    def slugify(self):\n        return 1\n", False),
        ("app/a.py", "def _own():\n    return 1\n", False),
        ("app/a.kt", "fun slugify(t: String) = t\n", False),  # not known
    ],
)
def test_what_is_defined_again(path: str, text: str, expected: bool) -> None:
    assert fires(AGAIN, wrote(path, text), APIS) is expected


def test_the_length_is_that_of_the_definition() -> None:
    rule = replace(AGAIN, lines_over=3)
    assert not fires(rule, wrote("app/a.py", SLUG + "x = 1\n" * 50), APIS)
    assert fires(rule, wrote("app/a.py", "def slugify(t):\n    a = t\n    b = a\n    return b\n"), APIS)


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.py", "def f():\n    a\n    b\n    c\n", True),
        ("a.py", "class A:\n    def f(self):\n        a\n        b\n        c\n", True),
        ("a.py", "x = 1\n" * 80, False),
        ("a.py", "def f():\n    a\n    b\n\n\ndef g():\n    a\n    b\n" * 9, False),
        ("a.ts", "function f() {\n  a\n  b\n}\n", True),
        ("a.json", "{\n" * 80, False),
        ("a.md", "def f():\n    a\n    b\n    c\n", False),
    ],
)
def test_a_long_function_is_measured_by_itself(path: str, text: str, expected: bool) -> None:
    assert fires(LONG, wrote(path, text)) is expected


@pytest.mark.parametrize(
    ("path", "text", "conditions", "expected"),
    [
        ("a.py", "print(1)\n", {"code": r"\bprint\("}, True),
        ("a.py", "# print(1)\nx = 'print(1)'\n", {"code": r"\bprint\("}, False),
        ("a.ts", "// console.log(1)\nconst a = `console.log(1)`\n", {"code": "console"}, False),
        ("a.md", "print(1)\n", {"code": "print"}, False),
        ("a.kt", "print(1)\n", {"code": "print"}, False),
        ("a.py", "x = 1  # TODO later\n", {"comments": "TODO"}, True),
        ("a.py", "x = 'TODO later'\n", {"comments": "TODO"}, False),
    ],
)
def test_code_and_comments_are_told_apart(path: str, text: str, conditions: dict[str, Any], expected: bool) -> None:
    assert fires(Rule("r", snippet="s", **conditions, shipped=True), wrote(path, text)) is expected


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("app/a.jsx", "const formatMoney = (c) => c\n", True),
        ("app/a.py", "def format_money(c):\n    return c\n", False),
    ],
)
def test_scripts_of_all_kinds_are_kin(path: str, text: str, expected: bool) -> None:
    offers = Context(names=offered("src/format.ts", "export function formatMoney(c: number) { return c }\n"))
    assert fires(AGAIN, wrote(path, text), offers) is expected
