"""Locators as they are defined, and as models write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecars.distill.answer import Lines, Pointer, parse_locator


@given(st.integers(1, 10**9), st.integers(0, 10**6))
def test_lines_are_read_back_as_written(first: int, more: int) -> None:
    lines = Lines(first, first + more)
    assert parse_locator(str(lines)) == lines


@given(st.lists(st.text(), min_size=1))
def test_pointers_are_read_back_as_written(keys: list[str]) -> None:
    pointer = Pointer(tuple(keys))
    if str(pointer).strip() == str(pointer):
        assert parse_locator(str(pointer)) == pointer


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("L12", (12, 12)),
        ("L12-L20", (12, 20)),
        ("L12-20", (12, 20)),
        ("12", (12, 12)),
        ("line 12", (12, 12)),
        ("Lines 12 to 20", (12, 20)),
        ("12..20", (12, 20)),
        ("L20-L12", (12, 20)),
        (" l7 ", (7, 7)),
    ],
)
def test_lines_are_understood(text: str, lines: tuple[int, int]) -> None:
    assert parse_locator(text) == Lines(*lines)


@pytest.mark.parametrize("text", ["", "L0", "L", "somewhere", "L1-", "-3", "L1-L2-L3", "L" + "9" * 30, "near L3"])
def test_what_is_none_is_none(text: str) -> None:
    assert parse_locator(text) is None


def test_pointers_with_a_hash_are_understood() -> None:
    assert parse_locator("#/cases/3/na~1me") == Pointer(("cases", "3", "na/me"))
