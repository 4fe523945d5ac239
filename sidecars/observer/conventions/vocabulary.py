"""The shared vocabulary of conventions: ``sidecars/types/conventions/vocabulary.yaml``, where its form is explained."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from sidecars.observer.conventions.polarity import ASKS, FORBIDS, Polarity
from sidecars.type_reader.rule_reader import SHIPPED
from sidecars.type_reader.sidecar_type import Confidence, Rule
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


_LISTS = frozenset(each.name for each in fields(Rule) if str(each.type).startswith("tuple"))
# A place of a condition that nothing was put in for.
_EMPTY = re.compile(r"\{(?:length2?|more|branch|word)\}")
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


def rule_for(**conditions: object) -> Rule:
    """A rule of ours that surely holds; name and words are put in later."""
    return Rule(name="x", say="x", confidence=Confidence.HIGH, shipped=True, **conditions)  # type: ignore[arg-type]


def rules_for(concern: Concern, values: Mapping[str, str]) -> tuple[Rule, ...]:
    """A concern's rules; none where one of its places stays empty.

    Args:
        concern: its conditions.
        values: what a sentence or a configuration has named, put in for ``{name}``.
    """
    named = {name: value for name, value in values.items() if value}
    length = named.get("length") or named.get("length2") or ""
    if length.isdecimal() and len(length) < 6:  # lines of a function, signs of a line
        named |= {"length": length, "more": str(int(length) + 1)}
    made = []
    for raw in concern.rules:
        given: dict[str, Any] = {key: _put_in(value, named) for key, value in raw.items()}
        if any(_EMPTY.search(text) for value in given.values() for text in _texts(value)):
            return ()
        if "function_over" in given:
            given["function_over"] = int(given["function_over"])
        made.append(
            rule_for(
                **{key: (each,) if key in _LISTS and isinstance(each, str) else each for key, each in given.items()}
            )
        )
    return tuple(made)


def _texts(value: object) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value if isinstance(value, tuple) else ()


def _put_in(value: Any, named: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _put(value, named)
    return tuple(_put(each, named) for each in value) if isinstance(value, list) else value


def _put(text: str, named: Mapping[str, str]) -> str:
    for name, value in named.items():
        text = text.replace("{{" + name + "}", "{" + value).replace("{" + name + "}", value.lower())
    return text
