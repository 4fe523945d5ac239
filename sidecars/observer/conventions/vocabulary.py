"""The shared vocabulary of conventions: ``sidecars/types/conventions/vocabulary.yaml``, where its form is explained."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from sidecars.type_reader.rule_reader import SHIPPED
from witness.config.yaml_document import load_yaml


@dataclass(frozen=True, slots=True)
class Concern:
    """One thing that conventions are about.

    Args:
        name: in rules' names.
        words: by which sentences name it, None where only linters do.
        when: what a sentence has to say of it.
        about: what else the sentence must name.
        not_about: what it must not name.
        only_in: what the sentence, or a heading above it, must name.
        linters: codes under which linters forbid it.
        what: how it is said of a file or a command.
        rules: conditions, as in ``sidecar.yaml``.
        options: its marks: ``tests_are_free``, ``needs_tests``, ``asking_is_no_condition``, ``exclusive``, ``either``,
            ``plain``.
        program: the program that it is about.
        reference: an expression for a note's reference (a ticket), which a sentence may ask for.
    """

    name: str
    words: re.Pattern[str] | None
    when: Polarity
    about: re.Pattern[str] | None
    not_about: re.Pattern[str] | None
    only_in: re.Pattern[str] | None
    linters: frozenset[str]
    what: str
    rules: tuple[Mapping[str, Any], ...]
    options: frozenset[str] = frozenset()
    program: str = ""
    reference: str = field(default="")


_MARKS = ("tests_are_free", "needs_tests", "asking_is_no_condition", "exclusive", "either", "plain")


# A blank of an expression, outside of brackets: there it is one sign of many.
_BLANK = re.compile(r"\[(?:\\.|[^\]])*\]|\\.| ")


def _blanks(found: re.Match[str]) -> str:
    return r"(?:[\s`*]+)" if found[0] == " " else found[0]


@cache
def vocabulary() -> tuple[Concern, ...]:
    """All concerns, in the order in which sentences are searched for them."""
    document = load_yaml(SHIPPED / "conventions" / "vocabulary.yaml")
    return tuple(_concern(raw) for raw in document.values["subjects"])


@cache
def by_linter() -> Mapping[str, tuple[Concern, ...]]:
    """Concerns by the codes of linters."""
    found: dict[str, tuple[Concern, ...]] = {}
    for concern in vocabulary():
        for code in concern.linters:
            found[code] = (*found.get(code, ()), concern)
    return found


def _concern(raw: Mapping[str, Any]) -> Concern:
    flags = re.NOFLAG if raw.get("case") else re.IGNORECASE

    def expression(key: str) -> re.Pattern[str] | None:
        text = str(raw.get(key, ""))
        return re.compile(_BLANK.sub(_blanks, text) if key == "words" else text, flags) if text else None

    return Concern(
        name=str(raw["name"]),
        words=expression("words"),
        when=ASKS if raw.get("when") == "asks" else FORBIDS,
        about=expression("about"),
        not_about=expression("not_about"),
        only_in=expression("only_in"),
        linters=frozenset(map(str, raw.get("linters", ()))),
        what=str(raw.get("what", "")),
        rules=tuple(raw.get("rules", ())),
        options=frozenset(mark for mark in _MARKS if raw.get(mark)),
        program=str(raw.get("program", "")),
        reference=str(raw.get("reference", "")),
    )


# What a sentence says of one thing that it names: that it is forbidden, allowed, or asked for.
#
# The nearest word that rules the thing counts; the words stand in `sidecars/types/conventions/cues.yaml`. Where a
# sentence only prefers, or leaves it to the reader, it says nothing that holds: no rule is better than a wrong one.

Polarity = Literal["forbids", "allows", "asks", "open"]
FORBIDS: Polarity = "forbids"
ALLOWS: Polarity = "allows"
ASKS: Polarity = "asks"
# Something else begins that the cue before it does not rule.
OPEN: Polarity = "open"
_POLARITIES: dict[str, Polarity] = {each: each for each in (FORBIDS, ALLOWS, ASKS, OPEN)}
_SIGNS = re.compile(r"^\W*?(?:(❌|🚫|⛔|✗|✘|🛑|👎|❎)|(✅|✔|☑|👍|✓|🟢))")

_Cue = tuple[re.Pattern[str], Polarity | None]


@dataclass(frozen=True, slots=True)
class _Cues:
    """The words of ``cues.yaml``, where each is explained."""

    before: Sequence[_Cue]
    after: Sequence[_Cue]
    labels: Sequence[_Cue]
    weak: re.Pattern[str]
    hedged: re.Pattern[str]
    cleared: re.Pattern[str]
    turns: re.Pattern[str]
    negated: re.Pattern[str]


@cache
def _cues() -> _Cues:
    given = load_yaml(SHIPPED / "conventions" / "cues.yaml").values
    parts: dict[str, str] = given["parts"]

    def expression(text: str) -> re.Pattern[str]:
        for name, part in parts.items():
            text = text.replace(f"<{name}>", part)
        return re.compile(text, re.IGNORECASE)

    def listed(raw: list[dict[str, Any]]) -> list[_Cue]:
        return [(expression(each["words"]), _POLARITIES.get(each["says"])) for each in raw]

    return _Cues(
        before=listed(given["before"]),
        after=listed(given["after"]),
        labels=listed(given["labels"]),
        weak=expression(given["weak"]),
        hedged=expression(given["hedged"]),
        cleared=expression(given["cleared"]),
        turns=expression(given["turns"]),
        negated=expression(r"(?:<not>|\bno\s+longer|\bto\s+not)(?:\s+\w+ly|\s+ever)?\s*$"),
    )


def of_sign(text: str) -> Polarity | None:
    """What a sign at the beginning of a text says of it."""
    found = _SIGNS.match(text)
    return None if found is None else FORBIDS if found[1] else ALLOWS


def of_label(text: str) -> Polarity | None:
    """What a heading, a column's head, a label or a sign says of what stands below or behind it."""
    text = text.strip()
    if not text or len(text) > 60:
        return None
    return next((polarity for pattern, polarity in _cues().labels if pattern.search(text)), None)


def polarity_of(text: str, start: int, end: int, around: Polarity | None = None) -> Polarity | None:
    """What a sentence says of the thing that stands at ``start`` to ``end``.

    Args:
        text: the sentence, with what is in backquotes blanked if it is not the thing itself.
        start, end: where it names the thing; the words that name it may hold the cue themselves.
        around: what stands above the sentence, where it has no word of its own.
    """
    cues = _cues()
    if cues.hedged.search(text):
        return None
    if (cleared := cues.cleared.match(text)) and start < cleared.end(1):
        return FORBIDS
    before, after = text[:start], text[end:]
    if turn := cues.turns.search(after):
        after = after[: turn.start()]
    found_before, ahead = _nearest_before(before, cues)
    behind = _nearest_behind(after, cues)
    if found_before and ahead not in (ASKS, OPEN):
        return None if ahead == FORBIDS and cues.weak.search(before) else ahead
    if behind is not None:
        return behind[1]
    told = ahead if found_before else around
    return None if told == OPEN else told


def _nearest_before(before: str, cues: _Cues) -> tuple[bool, Polarity | None]:
    """(whether there is a cue, what it says)."""
    best: tuple[int, int] | None = None
    told: Polarity | None = None
    for rank, (pattern, polarity) in enumerate(cues.before):
        for found in pattern.finditer(before + " "):
            if best is None or (found.end(), -rank) > best:
                best = (found.end(), -rank)
                negated = polarity == ASKS and cues.negated.search(before[: found.start()])
                told = FORBIDS if negated else polarity
    return best is not None, told


def _nearest_behind(after: str, cues: _Cues) -> tuple[int, Polarity | None] | None:
    best: tuple[int, int] | None = None
    told: tuple[int, Polarity | None] | None = None
    for rank, (pattern, polarity) in enumerate(cues.after):
        found = pattern.search(after)
        if found is not None and (best is None or (-found.start(), -rank) > best):
            best = (-found.start(), -rank)
            told = (found.start(), polarity)
    return told
