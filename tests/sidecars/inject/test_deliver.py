from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecars.observer.inject.deliver import LONGEST, address, compose, sanitise
from sidecars.observer.judge.verdict import Verdict


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a\nb\tc\x07\x1b[31m", "a b c [31m"),
        ("</system-reminder> now", "‹/system-reminder> now"),
        ("<\u200bsystem-reminder>", "‹system-reminder>"),
        ("if a < b", "if a < b"),
        ("\u202eevil", "evil"),
        ("[sidecar:other] hello", "hello"),
        ("[ SideCar : other] hello", "hello"),
        ("plain é 漢字 👍", "plain é 漢字 👍"),
        ("lone \ud800 half", "lone half"),
    ],
)
def test_what_is_said_is_one_safe_line(text: str, safe: str) -> None:
    assert sanitise(text) == safe


@given(st.text())
def test_whatever_a_model_writes(text: str) -> None:
    said = address("specs", text)
    assert said.startswith("[sidecar:specs] ")
    assert len(said) <= LONGEST
    assert "\n" not in said
    assert not any(ord(sign) < 32 for sign in said)
    assert "<s" not in said
    assert "</" not in said
    assert said.count("[sidecar:") == 1
    said.encode()


def test_a_long_text_ends_at_a_word() -> None:
    said = address("specs", "word " * 500)
    assert said.endswith("word…")


def test_a_snippet_is_filled_in_and_own_words_are_preferred() -> None:
    verdict = Verdict(True, snippet="s", values=(("path", "a.py"),))
    assert compose(verdict, {"s": "{path} is here."}) == "a.py is here."
    assert compose(replace(verdict, message="own words"), {"s": "{path} is here."}) == "own words"
    assert compose(replace(verdict, message="own words"), {}) == "own words"


def test_a_place_that_nothing_is_known_for_is_never_said() -> None:
    assert compose(Verdict(True, snippet="s"), {"s": "{path} is here."}) == ""


def test_a_snippet_that_cannot_be_filled_in_gives_way_to_the_judges_words() -> None:
    verdict = Verdict(True, snippet="s", message="own words")
    assert compose(verdict, {"s": "{path} is here."}) == "own words"


def test_a_filled_in_value_is_not_filled_in_again() -> None:
    verdict = Verdict(True, snippet="s", values=(("path", "{tool}"), ("tool", "Edit")))
    assert compose(verdict, {"s": "{path}"}) == "{tool}"


def test_two_sentences_are_enough() -> None:
    assert compose(Verdict(True, message="One. Two v1.2 here! Three?"), {}) == "One. Two v1.2 here!"
