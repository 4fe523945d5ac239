"""Guides → rules. A rule is made only of what a sentence plainly says: thing, forbidden or asked for, where, with which
exceptions. What is preferred, allowed, hangs on a condition, or is named by words that nobody here knows makes none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from sidecars.definition.sidecar_type import Confidence, Rule
from sidecars.observer.conventions.places import Places, blanked, places_of
from sidecars.observer.conventions.polarity import ALLOWS, ASKS, FORBIDS, Polarity, polarity_of
from sidecars.observer.conventions.sentences import Sentence, sentences, spans
from sidecars.observer.conventions.spans import Found, rules_of_span
from sidecars.observer.conventions.vocabulary import Concern, vocabulary

# Where projects write down how they work.
GUIDES = (
    "CONVENTIONS.md", "CONTRIBUTING.md", "CLAUDE.md", "AGENTS.md", "GEMINI.md", "STYLE.md", "STYLEGUIDE.md",
    ".claude/CLAUDE.md", "docs/CONVENTIONS.md", "docs/conventions.md", "docs/CONTRIBUTING.md", "docs/contributing.md",
    "docs/style.md", "docs/STYLE.md", ".github/CONTRIBUTING.md", ".github/copilot-instructions.md", ".cursorrules",
    ".cursor/rules/*.md*", ".windsurfrules", "CONTRIBUTING.rst", "CONTRIBUTING", "HACKING.md",
)  # fmt: skip
_QUOTE = 180
_LISTS = frozenset(each.name for each in fields(Rule) if str(each.type).startswith("tuple"))
# Whose consent is asked for: the agent has not got it when it acts by itself.
_CONSENT = re.compile(
    r"\b(?:without|unless)\b.*\b(?:ask|approv|permission|discuss|consent|agree|review|sign-?off|issue|told|instruct|request|confirm|green light|explicit|talk)",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(?:unless|without(?!\s+exception)|until|if|when|whenever|while|as\s+long\s+as|provided|only\s+(?:if|when|for|in|with)|except|other\s+than|apart\s+from|longer\s+than|more\s+than)\b",
    re.IGNORECASE,
)
# "… when you are done", "… before you commit": no condition on the thing.
_NO_CONDITION = re.compile(r"\b(?:when|if)\s+(?:it\s+must\s+change|you(?:['’]re|\s+are)?\s+(?:done|finish\w*|writ\w+|commit\w*|need\s+(?:to\s+log|output))|in\s+doubt)", re.I)
_NEEDS = re.compile(
    r"\b(?:needs?|requires?|carr(?:y|ies)|has|have|must\s+(?:have|carry|include|contain|name|come\s+with|reference|link)|comes?\s+with|takes?|includes?|names?|references?|links?\s+to|with)\b",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"\b(?:ticket|issue|link|reference|owner|number|url|jira|bug\s+id|name|date|author|assignee)\b", re.I)
_PRONOUN = re.compile(
    r"\b(?:(?:do\s+not|don['’]?t|never|must\s+not|must\s+never|should\s+not|nobody)\s+(?:\w+ly\s+)?(?:edit|change|touch|modify|alter|write|hand-edit|patch|commit|delete|rename|remove)s?\s+(?:to\s+)?(?:them|it|these|those|this)\b|\b(?:they|it)\s+(?:must|should|may|are|is)\s+(?:never|not)\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that a sentence says.

    Args:
        name: of the concern.
        polarity: what is said of it.
        rules: the rules that it makes; their words are not there yet.
        sentence: it stands in.
        places: where it holds.
        what: how it is said of a file or a command.
    """

    name: str
    polarity: Polarity
    rules: tuple[Rule, ...]
    sentence: Sentence
    places: Places
    what: str


def read_guide(text: str, title: str, first: int = 1) -> tuple[Rule, ...]:
    """The rules that a guide makes, each with its line and its words.

    Args:
        text: the document.
        title: how it is named, from the workdir; a guide below it holds for its own folder.
        first: the number of its first line.
    """
    said = [each for sentence in sentences(text, first) for each in _said(sentence)]
    # What is allowed somewhere in a guide without a place is not forbidden by it elsewhere.
    free = {each.name for each in said if each.polarity == ALLOWS and not each.places.given}
    rules: list[Rule] = []
    for each in said:
        if each.polarity == ALLOWS or each.name in free:
            continue
        excepted = [
            other.places
            for other in said
            if other.polarity == ALLOWS and other.name == each.name and other.places.given
        ]
        rules += _worded(each, title, excepted, len(rules))
    folder = title.rpartition("/")[0]
    if folder and folder.split("/")[0] not in ("docs", ".github", ".claude", ".cursor"):
        rules = [replace(rule, within=rule.within or (f"{folder}/",)) for rule in rules]
    return tuple(rules)


def _worded(said: Said, title: str, excepted: Iterable[Places], count: int) -> Iterator[Rule]:
    quote = " ".join(said.sentence.text.split())
    if len(quote) < 25 and said.sentence.whole:
        quote = said.sentence.whole
    quote = (quote[: _QUOTE - 1] + "…" if len(quote) > _QUOTE else quote).replace("{", "(").replace("}", ")")
    source = f"{title}:{said.sentence.line}"
    for index, rule in enumerate(said.rules):
        placed = said.places.put_on(rule)
        for places in excepted:
            placed = replace(placed, but_not=(*placed.but_not, *places.only, *places.files))
        subject = "{path}" if placed.writes or placed.creates or placed.changes or placed.adds_dependency else "'{ran}'"
        if subject == "'{ran}'" and not placed.runs:
            placed = replace(placed, writes=("**",))
            subject = "{path}"
        what = said.what
        yield replace(
            placed,
            name=f"{said.name}-{count + index}",
            say=f"{subject} {what}; {source} says: “{quote}”",
            source=source,
        )


def _said(sentence: Sentence) -> Iterator[Said]:
    text = sentence.text
    if not text or len(text) > 1_500:
        return
    marks = spans(text)
    places = places_of(sentence)
    taken: list[tuple[int, int]] = list(places.spots)
    for concern in vocabulary():
        if concern.words is None:
            continue
        for found in concern.words.finditer(text):
            start, end = found.span()
            if end == start or any(start < stop and begin < end for begin, stop in places.spots):
                continue
            told = _of_concern(concern, sentence, found, places)
            if told is not None:
                taken.append((start, end))
                yield told
                break
            if concern.when == FORBIDS:
                break
    for start, end, inner in (*marks, *_unmarked(text)):
        if any(start < stop and begin < end for begin, stop in taken):
            continue
        if any(start < stop and begin < end for begin, stop, _ in marks) and (start, end, inner) not in marks:
            continue
        taken.append((start, end))
        polarity = _polarity(sentence, start, end)
        if polarity is None or (polarity == ASKS):
            if (needed := _needed(sentence, start, end, inner, marks)) is not None:
                yield replace(needed, places=places)
            continue
        made = rules_of_span(inner, text, start, end)
        if made is not None and (polarity == ALLOWS or _unconditional(sentence, end, places, consent=False)):
            yield _from_span(made, polarity, sentence, places, marks)
    if _PRONOUN.search(text) and sentence.before:
        yield from _of_pronoun(sentence, places)


def _from_span(
    made: Found, polarity: Polarity, sentence: Sentence, places: Places, marks: list[tuple[int, int, str]]
) -> Said:
    rules = made.rules
    # "Run Python with `uv run`, never `python`": what is started by the program that is asked for is as it should be.
    carriers = [
        inner.split()[0]
        for start, end, inner in marks
        if " " in inner and inner.split()[0].isalnum() and _polarity(sentence, start, end) == ASKS
    ]
    if carriers:
        rules = tuple(
            replace(rule, runs=tuple(f"{run} {' '.join('!by:' + each for each in carriers)}" for run in rule.runs))
            for rule in rules
        )
    return Said(made.name, polarity, rules, sentence, places, made.what)


def _unmarked(text: str) -> list[tuple[int, int, str]]:
    """What is code by its form though nobody has put it into backquotes: ``console.log``, ``eval()``."""
    return [
        (found.start(), found.end(), found[0])
        for found in re.finditer(r"(?<![\w`./@:-])(?:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\(\))?|[A-Za-z_]\w+\(\))(?![\w`/-])", text)
        if not re.fullmatch(r"(?i)(?:e\.g|i\.e|a\.k\.a|etc\..*|[\w.-]+\.(?:md|txt|org|com|io|net|dev))", found[0])
    ]


def _polarity(sentence: Sentence, start: int, end: int) -> Polarity | None:
    text = blanked(sentence.text, [(a, b) for a, b, _ in spans(sentence.text) if not (a < end and start < b)])
    return polarity_of(text, start, end, sentence.around)


def _of_concern(concern: Concern, sentence: Sentence, found: re.Match[str], places: Places) -> Said | None:
    text = sentence.text
    context = " ".join((*sentence.headings, text))
    if concern.only_in and not (concern.only_in.search(context) or places.languages):
        return None
    if concern.about and not concern.about.search(context):
        return None
    start, end = found.span()
    polarity = _polarity(sentence, start, end)
    # The words may hold the cue themselves: "name the exception", "never sleep".
    if polarity is None and concern.when == FORBIDS:
        polarity = _polarity(sentence, end, end) if sentence.around is None else None
        if polarity == ASKS:
            polarity = None
    rules = tuple(_rule(raw, found) for raw in concern.rules)
    if concern.reference and polarity != ALLOWS and _REFERENCE.search(text) and (
        _NEEDS.search(text[end:]) or re.search(r"\b(?:without|unless|only\s+with|no\s+bare|no\s+naked)\b", text, re.I)
    ):
        wanted = tuple(replace(rule, unless=concern.reference) for rule in rules)
        return Said(concern.name, FORBIDS, wanted, sentence, places, "has one without a reference")
    if concern.when == ASKS:
        if polarity == ALLOWS or (polarity == FORBIDS and "either" not in concern.options):
            return None
        if "exclusive" in concern.options and re.search(r"\b(?:or|either)\b", text):
            return None
        if not _unconditional(sentence, end, places, consent=False):
            return None
        return Said(concern.name, FORBIDS, rules, sentence, places, _filled(concern.what, found))
    if polarity not in (FORBIDS, ALLOWS):
        return None
    consent = "asking_is_no_condition" in concern.options or all(rule.runs for rule in rules)
    if polarity == FORBIDS and not _unconditional(sentence, end, places, consent=consent):
        return None
    if "tests_are_free" in concern.options and not places.tests:
        places = replace(places, but_tests=True)
    if "needs_tests" in concern.options:
        if not re.search(r"\btests?\b|\bspecs?\b|\bfixtures?\b", context, re.I):
            return None
        places = replace(places, tests=True)
    return Said(concern.name, polarity, rules, sentence, places, _filled(concern.what, found))


def _needed(
    sentence: Sentence, start: int, end: int, inner: str, marks: list[tuple[int, int, str]]
) -> Said | None:
    """``X` needs `Y``: X without Y is forbidden."""
    following = next(((a, b, other) for a, b, other in marks if a >= end), None)
    if following is None or not _NEEDS.search(sentence.text[end : following[0]]):
        return None
    if re.search(r"\b(?:not|n['’]t|never|no|prefer)\b", sentence.text[end : following[0]], re.I):
        return None
    if not re.search(r"\b(?:needs?|requires?|must|carr|always|takes?)\b", sentence.text[end : following[0]], re.I):
        return None
    made = rules_of_span(inner, sentence.text, start, end)
    if made is None:
        return None
    wanted = re.escape(following[2].strip("() "))
    rules = tuple(replace(rule, unless=wanted) for rule in made.rules)
    return Said(made.name, FORBIDS, rules, sentence, Places(), f"has one without {following[2].replace('{', '(')}")


def _of_pronoun(sentence: Sentence, places: Places) -> Iterator[Said]:
    """``Files under `gen/` are generated. Do not edit them by hand.``"""
    before = sentence.before
    for start, end, inner in spans(before):
        joined = f"{sentence.text.rstrip('.')}: `{inner}`"
        at = joined.rindex("`" + inner)
        made = rules_of_span(inner, joined, at, len(joined))
        if made is not None and made.is_path:
            yield Said(made.name, FORBIDS, made.rules, sentence, places, made.what)


def _unconditional(sentence: Sentence, end: int, places: Places, *, consent: bool) -> bool:
    """Whether a sentence forbids without a condition that nobody can look up."""
    text = blanked(sentence.text, places.spots)
    rest = _NO_CONDITION.sub(" ", text[min(end, len(text)) :])
    if consent and _CONSENT.search(rest):
        return True
    return _CONDITION.search(rest) is None


def _rule(raw: Mapping[str, Any], found: re.Match[str]) -> Rule:
    return rule_of(raw, {name: value for name, value in found.groupdict().items() if value})


def rule_of(raw: Mapping[str, Any], values: Mapping[str, str]) -> Rule:
    """A rule of the vocabulary.

    Args:
        raw: its conditions.
        values: what a sentence has named, put in for ``{name}``.
    """
    named = dict(values)
    length = named.pop("length", "") or named.pop("length2", "")
    if length:
        named["more"] = str(int(length) + 1)
    given: dict[str, Any] = {"name": "x", "confidence": Confidence.HIGH, "say": "x", "shipped": True}
    for key, value in raw.items():
        if isinstance(value, str):
            value = _put(value, named)
        elif isinstance(value, list):
            value = tuple(_put(each, named) for each in value)
        given[key] = (value,) if key in _LISTS and isinstance(value, str) else value
    return Rule(**given)


def _put(text: str, named: Mapping[str, str]) -> str:
    for name, value in named.items():
        text = text.replace("{{" + name + "}", "{" + value).replace("{" + name + "}", value.lower())
    return text


def _filled(what: str, found: re.Match[str]) -> str:
    for name, value in found.groupdict().items():
        if value:
            what = what.replace("{" + name.rstrip("2") + "}", value)
    return what
