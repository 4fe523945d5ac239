"""One sentence → what it says of the things that it names, and the rules that come of it.

A rule is made only of what the sentence plainly says: thing, forbidden or asked for, where, with which exceptions. What
is preferred, allowed, hangs on a condition, or is named by words that nobody here knows makes none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sidecars.observer.conventions.places import Places, blanked, places_of, without_keywords
from sidecars.observer.conventions.polarity import ALLOWS, ASKS, FORBIDS, Polarity, polarity_of
from sidecars.observer.conventions.sentences import Sentence, spans
from sidecars.observer.conventions.spans import Found, rules_of_span
from sidecars.observer.conventions.vocabulary import Concern, rules_for, vocabulary
from sidecars.type_reader.sidecar_type import Rule

_LONGEST = 1_500
_TESTS = re.compile(r"\btests?\b|\bspecs?\b|\bfixtures?\b", re.IGNORECASE)
_BARE = re.compile(r"\b(?:without|unless|only\s+with|bare|naked|blanket|unexplained|plain)\b", re.IGNORECASE)
_BARE_IS = re.compile(r"\b(?:bare|naked|blanket|unexplained|plain|unqualified)\W*$", re.IGNORECASE)
_CHOICE = re.compile(r"\b(?:or|either)\b", re.IGNORECASE)
# Whose consent is asked for: the agent has not got it when it acts by itself.
_CONSENT = re.compile(
    (
        r"\b(?:without|unless)\b.*\b(?:ask|approv|permission|discuss|consent|agree|review|"
        r"sign-?off|issue|told|instruct|request|confirm|green light|explicit|talk)"
    ),
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(?:unless|without(?!\s+exception)|until|if|when|whenever|while|as\s+long\s+as|provided|only\s+(?:if|when|for|in|with)|except|other\s+than|apart\s+from|longer\s+than|more\s+than)\b",
    re.IGNORECASE,
)
# "… when you are done", "… before you commit": no condition on the thing.
_NO_CONDITION = re.compile(
    r"\b(?:when|if)\s+(?:it\s+must\s+change|you(?:['’]re|\s+are)?\s+(?:done|finish\w*|writ\w+|commit\w*|need\s+(?:to\s+log|output))|in\s+doubt)",
    re.I,
)
_NEEDS = re.compile(
    r"\b(?:needs?|requires?|carr(?:y|ies)|has|have|must\s+(?:have|carry|include|contain|name|come\s+with|reference|link)|comes?\s+with|takes?|includes?|names?|references?|links?\s+to|with)\b",
    re.IGNORECASE,
)
_REFERENCE = re.compile(
    r"\b(?:ticket|issue|link|reference|owner|number|url|jira|bug\s+id|name|date|author|assignee|"
    r"code|rule|reason|explanation|justification|comment|description|why)s?\b",
    re.IGNORECASE,
)
_ASKED_FOR = re.compile(
    r"\b(?:needs?|requires?|must\s+(?:be|have))\b.*\b(?:approv|issue|discuss|permission|consent|agree|sign-?off|ask|review)",
    re.IGNORECASE,
)
# A place or a purpose that is none of those known: it is forbidden there, and nobody here can tell where that is.
_PURPOSE = re.compile(
    r"^[`'\")\]]*\s*(?:calls?|statements?|types?|comments?|usages?|blocks?|expressions?|keywords?|functions?|methods?|clauses?)?\s*"
    r"(?:in|inside|on|onto|from|for|at|within|during|to|with|by|as|under|over|of|between|across|into|per|near|around|against|inline|longer|that|which|whose|other|deeper|"
    r"(?:global|local|blind|needless|unnecessari|casual|excessive|gratuitous|light)ly|system-?wide)\b"
    r"(?!\s+(?:anything|everything|anywhere|everywhere)(?:$|[.;,!]))",
    re.IGNORECASE,
)
# What it is always done for.
_WAY_ROUND = re.compile(
    r"^[`'\")\]]*\s*(?:comments?\s+)?(?:just\s+)?to\s+(?:silence|suppress|bypass|hide|get\s+(?:a)?round|work\s+around|fix|skip|"
    r"ignore|shut|make|circumvent|avoid|quiet|debug|disable)\b|^[`'\")\]]*\s*(?:for\s+debugging|as\s+a\s+(?:work-?around|shortcut|quick\s+fix))\b",
    re.IGNORECASE,
)
# "Only X may …": whoever is no X must not.
_ONLY_WHO = re.compile(r"\W*only\s.*?\b(?:may|can|should|must|(?:is|are)\s+allowed\s+to)\b", re.IGNORECASE)
_ANSWER = re.compile(r"\W*(?:A(?:nswer)?\W+)?(?:(yes|sure|yep)|no|never|nope)\b\s*(?:[.,!;]|$)", re.IGNORECASE)
# "`schema.sql` is generated (`make schema`)": the command is how it is made, and not what is spoken of.
_HOW_MADE = re.compile(
    r"\b(?:re)?(?:generated|made|built|created|produced|written)\W+(?:(?:by|with|via|using|from|run)\W+)*$", re.I
)
# What makes a question of a thing that it names.
_ASKED = re.compile(
    r"^\W*(?:Q\w*\W+)?(?:(?:may|can|should|do|could|is|are|am)\s+(?:I|we|you|one|it)\s+)?(?:allowed\s+to\s+)?(?:still\s+)?(?:use\s+)?",
    re.I,
)
# What is said of the sentence before holds for this one.
_LIKEWISE = re.compile(r"\W*(?:so\s+(?:is|are|does|do)|(?:the\s+)?same\b|likewise|ditto|neither|nor)\b", re.IGNORECASE)
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


def said_in(sentence: Sentence) -> Iterator[Said]:
    """What a sentence says of the things that it names."""
    text = sentence.text
    if not text or len(text) > _LONGEST or text.endswith("?"):
        return
    if (answer := _ANSWER.match(text)) and sentence.before.endswith("?"):
        asked = _ASKED.sub("", sentence.before.rstrip("?"))
        yield from said_in(replace(sentence, text=asked, around=ALLOWS if answer[1] else FORBIDS, before=""))
        return
    sentence = _likewise(sentence)
    places = places_of(sentence)
    if _ONLY_WHO.match(text) and not places.but:
        return
    marks = spans(text)
    taken: list[tuple[int, int]] = []
    for concern in vocabulary():
        for found in concern.words.finditer(text) if concern.words else ():
            start, end = found.span()
            if end == start or any(begin <= start < stop for begin, stop in places.spots):
                continue
            if (concern.program or "exclusive" in concern.options) and _is_part(text, start, end, marks):
                continue
            if concern.reference and re.match(concern.reference, text[start : start + 40]):
                continue  # "`TODO(name)` is fine" says nothing of a bare one
            told = _of_concern(concern, sentence, found, places)
            if told is not None:
                taken.append((start, end))
                yield told
            if told is not None or concern.when == FORBIDS:
                break
    if not taken:
        yield from _of_places(sentence, places)
    yield from _of_spans(sentence, places, [*taken, *places.spots])
    if _PRONOUN.search(text) and sentence.before:
        yield from _of_pronoun(sentence, places)


def _likewise(sentence: Sentence) -> Sentence:
    """A sentence with what the one before it says, where it says the same of another thing."""
    before = sentence.before
    if sentence.around is not None or not before or not _LIKEWISE.match(sentence.text):
        return sentence
    return replace(sentence, around=polarity_of(before, 0, 0) or polarity_of(before, len(before), len(before)))


def _is_part(text: str, start: int, end: int, marks: list[tuple[int, int, str]]) -> bool:
    """Whether a program is named as a part of a longer command in backquotes: that command is what is meant."""
    return any(
        a < end and start < b and len(inner.split()) > len(text[max(a, start) : end].replace("`", " ").split())
        for a, b, inner in marks
    )


def _of_spans(sentence: Sentence, places: Places, taken: list[tuple[int, int]]) -> Iterator[Said]:
    """What is said of that which stands in backquotes, or is code by its form, and that no concern has taken."""
    marks = spans(sentence.text)
    unmarked = [each for each in _unmarked(sentence.text) if not any(_meet(each, mark) for mark in marks)]
    for start, end, inner in (*marks, *unmarked):
        if any(start < stop and begin < end for begin, stop in taken):
            continue
        taken.append((start, end))
        polarity = _polarity(sentence, start, end)
        if polarity not in (FORBIDS, ALLOWS):
            if (needed := _needed(sentence, start, end, inner, marks)) is not None:
                yield replace(needed, places=places)
            continue
        made = rules_of_span(inner, sentence.text, start, end)
        if made is None:
            continue
        commands = all(rule.runs for rule in made.rules)
        if commands and _HOW_MADE.search(sentence.text[:start]):
            continue
        free = _unconditional(sentence, end, places, consent=commands) and not _elsewhere(sentence, end, places)
        if polarity == ALLOWS or free:
            yield _from_span(made, polarity, sentence, places, marks)


def _meet(one: tuple[int, int, str], other: tuple[int, int, str]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _from_span(
    made: Found, polarity: Polarity, sentence: Sentence, places: Places, marks: list[tuple[int, int, str]]
) -> Said:
    rules = made.rules
    # "Run Python with `uv run`, never `python`": what is started by the program that is asked for is as it should be.
    carriers = [
        words[0]
        for start, end, inner in marks
        if len(words := inner.split()) > 1 and words[0].isalnum() and _polarity(sentence, start, end) == ASKS
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
        for found in re.finditer(
            r"(?<![\w`./@:-])(?:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\(\))?|[A-Za-z_]\w+\(\))(?![\w`/-])", text
        )
        if not re.fullmatch(r"(?i)(?:e\.g|i\.e|a\.k\.a|etc\..*|[\w.-]+\.(?:md|txt|org|com|io|net|dev))", found[0])
    ]


def _polarity(sentence: Sentence, start: int, end: int) -> Polarity | None:
    text = blanked(sentence.text, [(a, b) for a, b, _ in spans(sentence.text) if not (a < end and start < b)])
    return polarity_of(text, start, end, sentence.around, first=not sentence.before)


def _of_concern(concern: Concern, sentence: Sentence, found: re.Match[str], places: Places) -> Said | None:
    end = found.end()
    rules = rules_for(concern, {name: value or "" for name, value in found.groupdict().items()})
    if not rules or not _is_meant(concern, sentence, places):
        return None
    said = Said(concern.name, FORBIDS, rules, sentence, places, _filled(concern.what, found))
    polarity = _polarity(sentence, found.start(), end)
    # The words may hold the cue themselves: "name the exception", "never sleep".
    if polarity is None and concern.when == FORBIDS and sentence.around is None:
        polarity = _polarity(sentence, end, end)
    if polarity != ALLOWS and _wants_reference(concern, sentence.text, found.start(), end):
        wanted = tuple(replace(rule, unless=concern.reference) for rule in rules)
        return replace(said, rules=wanted, what="has one without a reference")
    if concern.when == ASKS:
        return said if _is_asked(concern, sentence, end, places, polarity) else None
    asking = "asking_is_no_condition" in concern.options
    if asking and polarity != ALLOWS and _ASKED_FOR.search(sentence.text[end:]):
        return said
    if polarity == ALLOWS or (polarity == FORBIDS and _is_forbidden(concern, sentence, end, places, rules)):
        return replace(said, polarity=polarity, places=_narrowed(concern, places))
    return None


def _is_forbidden(concern: Concern, sentence: Sentence, end: int, places: Places, rules: tuple[Rule, ...]) -> bool:
    """Whether a thing is forbidden without a condition, and in places that are known."""
    if "plain" in concern.options:
        return True
    commands = all(rule.runs for rule in rules)
    consent = commands or "asking_is_no_condition" in concern.options
    if not _unconditional(sentence, end, places, consent=consent):
        return False
    return commands or "needs_tests" in concern.options or not _elsewhere(sentence, end, places)


def _is_meant(concern: Concern, sentence: Sentence, places: Places) -> bool:
    """Whether what the words name is meant, by what else the sentence and the headings above it name."""
    context = " ".join((*sentence.headings, sentence.text))
    if concern.only_in and not (concern.only_in.search(context) or places.languages):
        return False
    if concern.about and not concern.about.search(context):
        return False
    if "needs_tests" in concern.options and not _TESTS.search(context):
        return False
    return not (concern.not_about and concern.not_about.search(sentence.text))


def _wants_reference(concern: Concern, text: str, start: int, end: int) -> bool:
    """Whether a note may stay if it names a ticket: "a TODO carries a ticket", "no TODO without an issue"."""
    if concern.reference and _BARE_IS.search(text[:start]):
        return True
    if not concern.reference or not _REFERENCE.search(text):
        return False
    return _NEEDS.search(text[end:]) is not None or _BARE.search(text) is not None


def _is_asked(concern: Concern, sentence: Sentence, end: int, places: Places, polarity: Polarity | None) -> bool:
    """Whether a sentence plainly asks for a thing."""
    if polarity == ALLOWS or (polarity == FORBIDS and "either" not in concern.options):
        return False
    if "exclusive" in concern.options and _CHOICE.search(sentence.text):
        return False
    return _unconditional(sentence, end, places, consent=False)


def _narrowed(concern: Concern, places: Places) -> Places:
    if "needs_tests" in concern.options:
        return replace(places, tests=True)
    if "tests_are_free" in concern.options and not places.tests:
        return replace(places, but_tests=True)
    return places


def _needed(sentence: Sentence, start: int, end: int, inner: str, marks: list[tuple[int, int, str]]) -> Said | None:
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
    wanted = following[2].strip("() ")
    if wanted.startswith(inner):  # "`X` must name its code, as in `X[y]`"
        wanted = wanted[: len(inner) + 1]
    wanted = re.escape(wanted)
    rules = tuple(replace(rule, unless=wanted) for rule in made.rules)
    return Said(made.name, FORBIDS, rules, sentence, Places(), f"has one without {following[2].replace('{', '(')}")


def _of_places(sentence: Sentence, places: Places) -> Iterator[Said]:
    """``Migrations in `migrations/` must not be changed``: the place is what it is about."""
    for start, end, inner in spans(sentence.text):
        if _polarity(sentence, start, end) != FORBIDS or not _unconditional(sentence, end, Places(), consent=False):
            continue
        made = rules_of_span(inner, sentence.text, start, end)
        if made is not None and made.is_path:
            yield Said(made.name, FORBIDS, made.rules, sentence, Places(but=places.but), made.what)


def _of_pronoun(sentence: Sentence, places: Places) -> Iterator[Said]:
    """``Files under `gen/` are generated. Do not edit them by hand.``"""
    before = sentence.before
    for _, _, inner in spans(before):
        joined = f"{sentence.text.rstrip('.')}: `{inner}`"
        at = joined.rindex("`" + inner)
        made = rules_of_span(inner, joined, at, len(joined))
        if made is not None and made.is_path:
            yield Said(made.name, FORBIDS, made.rules, sentence, places, made.what)


def _unconditional(sentence: Sentence, end: int, places: Places, *, consent: bool) -> bool:
    """Whether a sentence forbids without a condition that nobody can look up."""
    text = blanked(without_keywords(sentence.text), places.spots)
    rest = _NO_CONDITION.sub(" ", text[min(end, len(text)) :])
    if consent and _CONSENT.search(rest):
        return True
    return _CONDITION.search(rest) is None


def _elsewhere(sentence: Sentence, end: int, places: Places) -> bool:
    """Whether a place or purpose follows that nobody here knows."""
    rest = blanked(sentence.text, places.spots)[end:]
    return _PURPOSE.match(rest) is not None and _WAY_ROUND.match(rest) is None


def _filled(what: str, found: re.Match[str]) -> str:
    for name, value in found.groupdict().items():
        if value:
            what = what.replace("{" + name.rstrip("2") + "}", value)
    return what
