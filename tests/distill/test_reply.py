"""Answers as models write them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecars.distill.answer import Claim
from sidecars.distill.model_messages import read_reply

GOOD = {
    "answer": "17 of 18 passed {really}",
    "evidence": [{"path": "a.log", "locator": "L12", "quote": 'says "no"', "reason": "it says so"}],
    "gaps": ["why"],
    "followups": [],
}
TEXT = json.dumps(GOOD)
PRETTY = json.dumps(GOOD, indent=2)


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        PRETTY,
        f"```json\n{TEXT}\n```",
        f"```\n{PRETTY}\n```",
        f"```json\r\n{TEXT}\r\n```",
        f"Sure! Here is what I found:\n\n```json\n{PRETTY}\n```\nLet me know if you need more {{details}}.",
        f"Looking at the log {{as asked}}, I think: {TEXT} Hope this helps!",
        f'{{"thought": "hm"}}\n{TEXT}',
        f'{{"answer": "", "evidence": []}} wait. {TEXT}',
        f'{{"answer": "first try"}}\nNo, corrected:\n{TEXT}',
        f"```json\n{TEXT}",
        "\ufeff" + TEXT,
        "I ran `grep {x}`:\n```\nnot json\n```\n" + TEXT,
    ],
)
def test_wrapped_answers_are_read(reply: str) -> None:
    draft = read_reply(reply)
    assert draft is not None
    assert draft.answer == GOOD["answer"]
    assert draft.claims == (Claim("a.log", "L12", 'says "no"', "it says so"),)
    assert draft.gaps == ("why",)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "17 of 18 passed.",
        "{}",
        "[]",
        '{"answer": ""}',
        '{"answer": 3}',
        '{"result": "x"}',
        "{" * 5000,
        "null",
        "```json\n```",
    ],
)
def test_what_holds_no_answer_is_none(reply: str) -> None:
    assert read_reply(reply) is None


def test_an_answer_that_was_cut_off_keeps_what_is_whole() -> None:
    for length in range(TEXT.index("quote") + 12, len(TEXT)):
        draft = read_reply(TEXT[:length])
        assert draft is not None
        assert draft.answer == GOOD["answer"]


def test_newlines_inside_strings_are_forgiven() -> None:
    draft = read_reply('{"answer": "two\nlines", "evidence": []}')
    assert draft is not None
    assert draft.answer == "two\nlines"


def test_odd_shapes_of_evidence_are_read_as_far_as_they_go() -> None:
    draft = read_reply(
        json.dumps(
            {"answer": "x", "evidence": ["only a quote", {"locator": 12, "quote": None}, 7, None], "gaps": "one"}
        )
    )
    assert draft is not None
    assert draft.claims == (Claim("", "", "only a quote"), Claim("", "12", ""))
    assert draft.gaps == ("one",)
    single = read_reply('{"answer": "x", "evidence": {"path": "a", "locator": "L1", "quote": "q"}}')
    assert single is not None
    assert single.claims == (Claim("a", "L1", "q"),)


@given(st.text())
def test_no_reply_is_a_fault(text: str) -> None:
    read_reply(text)


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="{}`")),
)
def test_any_answer_between_any_words_is_read(answer: str, words: str) -> None:
    draft = read_reply(f"{words} {json.dumps({'answer': answer})} {words}")
    assert draft is not None
    assert draft.answer == answer.strip()
