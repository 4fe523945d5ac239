"""The check of how injected text is written."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import sidecars
from sidecars.observer.context import Context
from sidecars.observer.inject.deliver import address, compose
from sidecars.observer.judge.model_prompt import system_prompt
from sidecars.observer.judge.verdict import Verdict
from sidecars.style import INJECTION_LIMIT, STYLE_BLOCK, trim
from sidecars.type_reader.sidecar_type import SidecarType


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("Sure! The spec wants ISO dates.", "The spec wants ISO dates."),
        ("Great question! Let me explain. Use `rg`.", "Use `rg`."),
        ("I'm happy to help with that. Use pnpm.", "Use pnpm."),
        ("Just a quick reminder: tests live in tests/.", "Tests live in tests/."),
        ("Please note that the API returns 404.", "The API returns 404."),
        ("Please keep in mind that retries are capped at 3.", "Retries are capped at 3."),
        ("I noticed that you edit src/gen, which is generated.", "You edit src/gen, which is generated."),
        ("Hi there, just wanted to let you know that main is frozen.", "Main is frozen."),
        ("Please use tabs.", "Use tabs."),
        ("Please remember to run make check.", "Remember to run make check."),
        ("Please keep in mind the limit of 4 MB.", "Keep in mind the limit of 4 MB."),
        ("I wanted to point out that main is frozen.", "Main is frozen."),
        ("It's worth noting that retries are capped.", "Retries are capped."),
        ("Heads-up: line 3 of docs/api.md says POST.", "Line 3 of docs/api.md says POST."),
        ("Of course! parse_duration reads seconds.", "parse_duration reads seconds."),
        ("The spec says POST. Let me know if you need anything else!", "The spec says POST."),
        ("The spec says POST. Hope this helps! Happy coding!", "The spec says POST."),
        ("Use tabs 🎉🚀 here.", "Use tabs here."),
        ("👍🏽 Done ✅", "Done"),
    ],
)
def test_filler_goes_and_the_fact_stays(said: str, left: str) -> None:
    assert trim(said) == left


@pytest.mark.parametrize(
    "text",
    [
        "So far three of five endpoints match the spec.",
        "Right click is not bound in docs/ui.md.",
        "Note the size limit in config.yaml is 4 MB.",
        "Well-known ports are reserved by docs/net.md.",
        "Hello.py is generated; edit hello.tmpl.",
        "Good point releases are tagged v1.x.",
        "OK is the exit text that the spec wants.",
        "In short mode the CLI prints one line.",
        "Clearly typed errors are required by the conventions.",
        "Thanks page is out of scope.",
        "Sorry state machines need a table.",
        "The spec lists ✓, ✗ and → as output marks.",
        "Print `🎉 done` as docs/cli.md asks.",
        "Let me fail loudly is rule 3 of the conventions.",
        "It looks like src/gen is generated.",
        "It seems that the spec wants POST.",
        "Thanks to the cache, the second run takes 3 s.",
        "The billing folder has an owner. Feel free to contact @ann about it.",
        "I wanted to flag the missing test.",
    ],
)
def test_a_text_without_filler_is_left_as_it_is(text: str) -> None:
    assert trim(text) == text


def test_emoji_stay_where_they_were_asked_for() -> None:
    assert trim("Done 🎉", emoji=True) == "Done 🎉"


def test_a_text_of_nothing_but_filler_leaves_nothing_to_say() -> None:
    assert trim("Sure! Happy to help! Let me know if you need anything.") == ""


def test_an_over_long_text_ends_with_its_last_whole_sentence() -> None:
    text = "First fact. " + "word " * 20 + "end. " + "x" * 600
    left = trim(text, 200)
    assert left == "First fact. " + "word " * 20 + "end."


def test_a_long_text_without_sentences_ends_at_a_word() -> None:
    left = trim("lorem ipsum " * 100, 50)
    assert len(left) <= 50
    assert left.endswith("ipsum…")


@given(st.text(max_size=900), st.integers(min_value=10, max_value=700))
def test_it_never_exceeds_the_limit_and_twice_is_once(text: str, limit: int) -> None:
    once = trim(text, limit)
    assert len(once) <= limit
    assert trim(once, limit) == once


@given(
    st.lists(
        st.sampled_from(["Sure!", "Note that", "let me see.", "x_y", "Thanks!", "so,", "it is.", "👍", "Hi"]),
        max_size=8,
    )
)
def test_chains_of_filler_come_to_rest(words: list[str]) -> None:
    once = trim(" ".join(words))
    assert trim(once) == once


def test_the_style_block_keeps_its_own_rules() -> None:
    assert trim(STYLE_BLOCK) == STYLE_BLOCK
    assert len(STYLE_BLOCK) < INJECTION_LIMIT


def test_what_a_sidecar_says_is_trimmed() -> None:
    polite = Verdict(
        True, message="Great catch! Just a heads-up: docs/api.md says POST. It wants JSON. Hope this helps! 🎉"
    )
    assert compose(polite, {}) == "docs/api.md says POST. It wants JSON."
    assert compose(Verdict(True, message="Sure! Happy to help!"), {}) == ""
    assert compose(Verdict(True, snippet="s"), {"s": "Please note that main is frozen."}) == "Main is frozen."
    assert address("specs", "First fact. " * 100).endswith("First fact.")


def test_every_model_judge_is_asked_for_the_style() -> None:
    assert STYLE_BLOCK in system_prompt(SidecarType(name="specs", judge="model"), Context())


@pytest.mark.parametrize(
    "path",
    sorted((Path(sidecars.__file__).parent / "types").glob("*/snippets.yaml")),
    ids=lambda path: "/".join(path.parts[-2:]),
)
def test_the_shipped_snippets_keep_the_rules(path: Path) -> None:
    snippets = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert snippets
    for text in snippets.values():
        assert trim(text) == text.strip()
