from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witness.prompts import (
    ALIASES,
    SIDECAR_FRAME,
    TEXT,
    TYPES,
    Block,
    decompose,
    lint,
    minimal_prompt,
    parse,
    present,
    render,
)

# Text in which the language's own signs are frequent.
WORDS = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(
            [
                "<role>",
                "</role>",
                "<prompt>",
                "</prompt>",
                "<documents>",
                "<document>",
                "</document>",
                "<source>",
                "&amp;",
                "&",
                "<",
                ">",
                "\n",
                "\r\n",
                "\n\n",
                "Input: ",
                "Output: ",
                " ",
                "x",
                "<example>",
                "</examples>",
                "'",
                '"',
            ]
        )
    ).map("".join),
)
BLOCKS = st.one_of(
    st.builds(Block, st.sampled_from([*(kind for kind in TYPES if kind != "document"), TEXT]), WORDS),
    st.builds(Block, st.just("document"), WORDS, WORDS),
)


@given(st.lists(BLOCKS))
def test_what_is_written_is_read_back(blocks: list[Block]) -> None:
    assert parse(render(blocks)) == blocks


@given(WORDS)
def test_no_character_is_lost(text: str) -> None:
    pieces = decompose(text)
    assert "".join(piece.source for piece in pieces) == text
    assert [piece.start for piece in pieces] == [
        sum(len(before.source) for before in pieces[:index]) for index in range(len(pieces))
    ]


@given(st.lists(BLOCKS))
def test_no_character_of_what_is_written_is_lost(blocks: list[Block]) -> None:
    text = render(blocks)
    assert "".join(piece.source for piece in decompose(text)) == text


@given(WORDS)
def test_every_word_of_any_text_is_in_a_block(text: str) -> None:
    words = "".join(piece.source for piece in decompose(text) if piece.block is None)
    assert not words.replace("<prompt>", "").replace("</prompt>", "").replace("</documents>", "").strip()


@given(WORDS)
def test_reading_twice_changes_nothing(text: str) -> None:
    blocks = parse(text)
    assert parse(render(blocks)) == blocks


@given(
    st.lists(
        st.builds(Block, st.sampled_from(TYPES), st.text(st.characters(codec="utf-8", categories=["L", "N", "P"])))
    )
)
def test_it_is_xml(blocks: list[Block]) -> None:
    root = ET.fromstring(render(blocks))  # noqa: S314 - our own text
    assert root.tag == "prompt"


def test_the_sixteen_types() -> None:
    assert len(TYPES) == 16
    assert all(kind in TYPES for kind in ALIASES.values())


@pytest.mark.parametrize(("alias", "kind"), sorted(ALIASES.items()))
def test_every_alias_is_read(alias: str, kind: str) -> None:
    assert parse(f"<{alias}>words</{alias}>") == [Block(kind, "words")]


def test_documents_and_examples_have_their_elements() -> None:
    text = render(
        [
            Block("document", "a < b\nc", "docs/spec.md"),
            Block("document", "plain"),
            Block("examples", "Input: 1\nOutput: 2\n\nInput: 3\nOutput: 4"),
        ]
    )
    assert '<document index="2">' in text
    assert "<source>docs/spec.md</source>" in text
    assert "a &lt; b" in text
    assert text.count("<user_input>") == 2


def test_what_other_tools_write() -> None:
    text = """<prompt>
<documents><document index="1"><source>a.md</source><document_content>Text</document_content></document></documents>
<role>
You are careful.
</role>
Some loose words & more.
<ctx>a && b</ctx>
<examples><example><user_input>1</user_input><ideal_response>2</ideal_response></example></examples>
</prompt>"""
    assert parse(text) == [
        Block("document", "Text", "a.md"),
        Block("role", "You are careful."),
        Block(TEXT, "Some loose words & more."),
        Block("context", "a && b"),
        Block("examples", "Input: 1\nOutput: 2"),
    ]


def test_elements_of_the_same_name_inside() -> None:
    assert parse("<context>a <context>b</context> c</context>") == [Block("context", "a <context>b</context> c")]


def test_present_wants_words() -> None:
    assert present("<role>a</role><constraints> \n</constraints>loose") == {"role", TEXT}


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("<role>a</role><objective>b</objective>", []),
        ("<role></role>\n<objective>b</objective>", ["1 <role> is empty"]),
        ("<role>a</role>", ["1 no <objective>: the agent is not told it"]),
        ("<role>a</role><objective>b</objective>\n\n<context>c", ["3 <context> is never closed"]),
        (
            "<role>a</role><objective>b</objective>\n<constraint_s>c</constraint_s>",
            ["2 <constraint_s> is no block type: did you mean <constraints>?"],
        ),
        ("<role>a</role><objective>b</objective>\nloose", ["2 this text stands outside of every block"]),
    ],
)
def test_lint(text: str, faults: list[str]) -> None:
    assert [f"{fault.line} {fault.message}" for fault in lint(text)] == faults


def test_a_block_of_no_type() -> None:
    with pytest.raises(ValueError, match="'poem' is no block type"):
        Block("poem", "x")
    with pytest.raises(ValueError, match="only a document"):
        Block("role", "x", "y")


def test_the_minimal_prompt() -> None:
    text = minimal_prompt(
        "You are toast.",
        'Fix <sum>, say "it\'s done".',
        polecat="main/toast",
        sidecars=["specs", "scope"],
        more=[Block("context", "c")],
    )
    assert [block.type for block in parse(text)] == ["role", "tools", "context", "objective"]
    assert SIDECAR_FRAME in parse(text)[1].content
    assert 'ask if you need more: gt ask main/toast/specs "your question"' in parse(text)[1].content
    assert "do not open a huge file: gt distill --artifact" in parse(text)[1].content
    assert parse(text)[3].content == 'Fix <sum>, say "it\'s done".'
    assert 'Fix &lt;sum&gt;, say "it\'s done".' in text, "quotes stay quotes"
    assert lint(text) == []


def test_the_minimal_prompt_without_anybody_to_ask() -> None:
    assert [block.type for block in parse(minimal_prompt("r", "o"))] == ["role", "objective"]
