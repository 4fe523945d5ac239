"""What of a question is looked for."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecars.distill.question import (
    IDENTIFIER,
    KIN,
    NUMBER,
    PHRASE,
    Matcher,
    Term,
    finder,
    parse_question,
    plain_finder,
    stem,
)


def weights(text: str) -> dict[str, float]:
    return {term.text: term.weight for term in parse_question(text).terms}


@pytest.mark.parametrize(
    ("word", "root"),
    [
        ("failed", "fail"),
        ("failing", "fail"),
        ("failure", "fail"),
        ("failures", "fail"),
        ("passes", "pass"),
        ("checks", "check"),
        ("stopped", "stop"),
        ("retries", "retr"),
        ("validation", "valid"),
        ("class", "class"),
        ("status", "status"),
        ("analysis", "analysis"),
        ("ms", "ms"),
    ],
)
def test_forms_of_a_word_have_one_root(word: str, root: str) -> None:
    assert stem(word) == root


def test_words_that_say_nothing_are_left_out() -> None:
    assert set(weights("What is the name of the artifact?")) == set()


def test_identifiers_are_kept_whole_and_in_parts() -> None:
    found = weights("what does maxRetryCount do in src/app.py?")
    assert found["maxretrycount"] == IDENTIFIER
    assert found["src/app.py"] == IDENTIFIER
    assert found["retry"] == KIN


def test_numbers_and_quoted_phrases_weigh_more_than_words() -> None:
    found = weights('which of the 18 cases says "connection  refused"?')
    assert found["18"] == NUMBER
    assert found["connection refused"] == PHRASE
    assert found["cas" if "cas" in found else "case"] < NUMBER


def test_short_words_must_stand_alone() -> None:
    assert Term("db", 1.0, whole=True) in parse_question("is the db up?").terms


def test_who_asks_for_failures_gets_errors_too() -> None:
    found = weights("why did it fail?")
    assert found["traceback"] == KIN
    assert found["fail"] > KIN


@pytest.mark.parametrize("text", ["How many passed?", "the number of retries", "Wie viele Tests?", "count the errors"])
def test_counting_is_recognised(text: str) -> None:
    assert parse_question(text).counting


def test_languages_without_blanks_are_cut_in_pairs() -> None:
    assert {"テス", "スト", "失敗"} <= set(weights("テスト失敗"))


@given(st.text(max_size=300))
def test_no_question_is_a_fault(text: str) -> None:
    for term in parse_question(text).terms:
        assert term.text == term.text.strip() != ""


# Few letters, so that one pattern begins, ends and stands inside another; the rest is what an expression could mistake.
_PIECES = st.text("aab.*\\\n|", min_size=1, max_size=6).map(str.encode) | st.binary(min_size=1, max_size=3)


@given(st.lists(_PIECES, min_size=1, max_size=12, unique=True), st.lists(_PIECES, max_size=40).map(b"".join))
def test_without_the_library_the_same_is_found(patterns: list[bytes], data: bytes) -> None:
    assert list(plain_finder(patterns)(data)) == list(finder(patterns)(data))


def test_a_question_is_searched_for_where_the_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = parse_question("why did maxRetryCount fail with a timeout?").terms
    data = b"Timeout: maxRetryCount failed; a retry\nno failure, no time"
    expected = list(Matcher(terms).hits(data))
    assert len(expected) > 3
    monkeypatch.setitem(sys.modules, "ahocorasick_rs", None)
    assert list(Matcher(terms).hits(data)) == expected
