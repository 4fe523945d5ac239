"""Expressions that others wrote cost no more than their text is long."""

from __future__ import annotations

import sys
import time

import pytest

from witness.expressions import foreign


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a|a)*b", "(x+x+)+y", "(.*)*c", "([ab]?){700}c", "[ab]*a[ab]{500}c", "(?i)" + "|".join(["word"] * 300)],
)
def test_no_expression_holds_its_reader_up(pattern: str) -> None:
    expression = foreign(pattern, multiline=True)
    began = time.monotonic()
    expression.search("ab" * 500_000)
    expression.search("a" * 1_000_000)
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(a", "not an RE2 expression"),
        ("a(?=b)", "lookaround"),
        (r"(a)\1", "backreferences"),
        ("x" * 3000, "2000 characters"),
        ("((a{100}){100}){100}", "RE2"),
        ("([ab]?){999}([ab]?){999}", "too large"),
        ("(" * 1500, "RE2"),
    ],
)
def test_what_is_no_expression_is_one_line(pattern: str, said: str) -> None:
    began = time.monotonic()
    with pytest.raises(ValueError, match=said) as caught:
        foreign(pattern)
    assert time.monotonic() - began < 1
    assert "\n" not in str(caught.value)


def test_what_people_write_is_found() -> None:
    found = foreign(r"^\s*raise (Exception|RuntimeError)\(", multiline=True).search("x = 1\n  raise RuntimeError('ü')")
    assert found is not None
    assert found[1] == "RuntimeError"
    assert foreign("straße").search("die Straße") is None
    assert foreign("(?i)STRASSE").search("die Strasse") is not None


def test_without_re2_it_is_refused_and_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(ValueError, match=r"pip install 'gt-witness\[re2\]'"):
        foreign("never seen before")
