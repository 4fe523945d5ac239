"""The shared vocabulary of conventions: ``sidecars/types/conventions/vocabulary.yaml``, where its form is explained."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sidecars.observer.conventions.polarity import ASKS, FORBIDS, Polarity
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
