"""How many lines or records meet what a question asks for: counted by a pattern that is told, or not told at all.

A number that is nearly right is worse than none. So every word of the question has to be accounted for: as a field and
its value, as a word of the lines, or as the name of what is counted. Where it can be meant in two ways, both are told.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from sidecars.distill.errors import TimeoutSpentError, UnreadableError
from sidecars.distill.layout import Layout, Shape, shape_of
from sidecars.distill.question import GLUE, stem, word_set
from sidecars.distill.text import Text
from sidecars.distill.text_pool import TextPool

_BLOCK = 4 << 20
# More than this is not counted: it would take longer than anybody waits for it.
_MOST_BYTES = 512 << 20
_MOST_FILES = 40
_MOST_MATCHES = 2_000_000
_MOST_TOLD = 3
_DISTINCT = 400

_ASKED = re.compile(r"\b(?:how many|how often|number of|count(?: of| the)?)\b(?P<rest>[^?.;]*)", re.IGNORECASE)
_NOT_COUNTED = re.compile(
    r"\b(?:more|less|fewer|greater|above|below|over|under|between|except|without|not|never|other|average|mean|median|"
    r"total|sum|distinct|different|unique|per|left|remain\w*|each|take|takes|took|long|or|but|before|after|since|until)\b|"
    r"n't\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\w$@#./:\-]*\w")
_BORDER = re.compile(
    r"\b(?:were|was|are|is|have|had|has|with|of|in|did|do|does|by|at|from|for|on|to|because|that|which|who|whose|"
    r"there|can|could|be|been|mention|mentions|say|says|hold|holds|contain|contains|show|shows|got|get)\b|[,()]",
    re.IGNORECASE,
)
_PLAIN = word_set(
    """a about all an and any are as at be been because by can could did do does due each exist for from had has
    have how i in into is it its many me number of often count on our out please the their them there they this
    those to us was we were what when where which who whose will with your found contain contains containing
    hold holds say says mention mentions mentioning regarding show shows logged written marked called given
    occur occurred occurs appear appears total altogether"""
)


@dataclass(frozen=True, slots=True)
class Tally:
    """One meaning of what was asked, counted.

    Args:
        number: how many.
        what: what was counted: lines or records.
        pattern: by what; a reader can count again by it.
    """

    number: int
    what: str
    pattern: str

    def __str__(self) -> str:
        return f"{self.what}: {self.number}, by `{self.pattern}`"


def tallies(shelf: TextPool, names: list[str], question: str) -> list[Tally]:
    """The meanings of a "how many", each counted; empty when none can be counted for certain.

    Args:
        shelf: the artifacts.
        names: those of them that were searched.
        question: as it was asked.
    """
    asked = _ASKED.search(question)
    if not asked or not names or len(names) > _MOST_FILES or _NOT_COUNTED.search(asked["rest"]):
        return []
    # What comes after the comma or the "and what" is another question.
    rest = re.split(r",? and (?:what|which|who|where|when|why|how)\b|, (?:which|what|who|where|when)\b", asked["rest"])[
        0
    ]
    try:
        return _counted(shelf, [shelf.text(name) for name in names], rest)
    except (UnreadableError, TimeoutSpentError, csv.Error):
        return []


def _counted(shelf: TextPool, texts: list[Text], rest: str) -> list[Tally]:
    shapes = [shape_of(text) for text in texts]
    if sum(text.size for text in texts) > _MOST_BYTES:
        return []
    if len(texts) == 1 and shapes[0].layout is Layout.TABLE:
        return _of_table(texts[0], shapes[0], rest)
    if len(texts) == 1 and (texts[0].name.lower().endswith(_DATA) or shelf.is_json(texts[0])):
        return _of_pairs(texts[0], rest)
    return _of_lines(texts, shapes, rest) if all(shape.layout is Layout.FLAT for shape in shapes) else []


def _blocks(text: Text) -> Iterator[bytes]:
    """The text in pieces of whole lines; an overlong line is cut."""
    at, kept = 0, b""
    while at < text.size:
        text.deadline.check()
        data = text.read(at, at + _BLOCK)
        if not data:
            return
        at += len(data)
        data = kept + data
        cut = data.rfind(b"\n") + 1
        if not cut:
            cut = max(data.rfind(b"}, {"), data.rfind(b"},{")) + 2 if b"},{" in data or b"}, {" in data else 0
        if at >= text.size or (not cut and len(data) > 4 * _BLOCK):
            cut = len(data)
        kept = data[cut:]
        if cut:
            yield data[:cut]


def _words(rest: str) -> tuple[list[str], str]:
    """The words that must be accounted for, and which of them names what is counted.

    Of "cache misses", both words are what is counted, and no name stands for it: the second is then empty.
    """
    said = re.sub(r"[\"'`“”]", " ", rest)
    border = _BORDER.search(said)
    before = [word for word in _WORD.findall(said[: border.start()] if border else said) if word.lower() not in _PLAIN]
    alone = len(before) == 1 or (before and _is_glue(before[-1]))
    noun = before[-1] if alone else ""
    words = [word for word in _WORD.findall(said) if word.lower() not in _PLAIN]
    return words, noun


def _is_glue(word: str) -> bool:
    return word.islower() and (word in GLUE or stem(word) in GLUE)


# -- tables ------------------------------------------------------------------------------------------------------


def _plain(value: str) -> str:
    return " ".join(re.findall(r"\w+", value.replace("_", " ").lower()))


def _rows(text: Text, shape: Shape) -> Iterator[list[str]]:
    def lines() -> Iterator[str]:
        for block in _blocks(text):
            yield from io.StringIO(block.decode("utf-8", "replace"), newline="")

    return csv.reader(lines(), delimiter=(shape.delimiter or b",").decode())


def _of_table(text: Text, shape: Shape, rest: str) -> list[Tally]:
    words, noun = _words(rest)
    rows = _rows(text, shape)
    header = [name.strip().lstrip("\ufeff") for name in next(rows, [])]
    values: list[Counter[str]] = [Counter() for _ in header]
    for row in rows:
        for number, cell in enumerate(row[: len(header)]):
            if len(values[number]) <= _DISTINCT or cell in values[number]:
                values[number][cell] += 1
    wanted, left = _conditions(header, values, rest, words)
    left = [word for word in left if stem(word.lower()) != stem(noun.lower()) and not _is_glue(word)]
    names = {stem(part) for name in header for part in _plain(name).split()}
    if any(stem(word.lower()) not in names for word in left):
        return []
    if not wanted:
        # "How many deaths": a column that holds numbers is asked for its value and not for its length.
        return [] if stem(noun.lower()) in names or left else [Tally(_count_rows(text, shape, {}), "records", "all")]
    if not _is_glue(noun) and any(_holds_amounts(values[column]) for column in _columns_of(header, noun)):
        return []
    told = []
    for meaning in wanted:
        number = _count_rows(text, shape, meaning)
        pattern = " and ".join(f"{header[column]} = {' | '.join(sorted(cells))}" for column, cells in meaning.items())
        told.append(Tally(number, "records", pattern))
    return told[:_MOST_TOLD]


def _columns_of(header: list[str], noun: str) -> list[int]:
    """The columns whose name is that of what is counted."""
    wanted = stem(noun.lower())
    return [at for at, name in enumerate(header) if any(stem(part) == wanted for part in _plain(name).split())]


def _holds_amounts(values: Counter[str]) -> bool:
    """Whether a column holds what several records share, or numbers, so that its name does not stand for a record."""
    shared = any(times > 1 for times in values.values())
    return shared or all(re.fullmatch(r"-?[\d.,]*", value) for value in values)


def _count_rows(text: Text, shape: Shape, meaning: dict[int, frozenset[str]]) -> int:
    rows = _rows(text, shape)
    next(rows, None)
    return sum(
        all(column < len(row) and row[column] in cells for column, cells in meaning.items()) for row in rows if row
    )


def _conditions(
    header: list[str], values: list[Counter[str]], rest: str, words: list[str]
) -> tuple[list[dict[int, frozenset[str]]], list[str]]:
    """Which columns must hold which values, in each meaning; and the words that none of it accounts for."""
    said = _plain(rest)
    exact = set(words)
    found: dict[str, dict[int, set[str]]] = {}
    for column, counted in enumerate(values):
        for cell in counted:
            plain = _plain(cell)
            if not plain or len(plain) > 60 or (len(plain) <= 3 and cell not in exact):
                continue
            if re.search(rf"\b{re.escape(plain)}\b", said):
                found.setdefault(plain, {}).setdefault(column, set()).add(cell)
    # A value inside a longer one that was found is part of that.
    found = {
        each: columns
        for each, columns in found.items()
        if not any(each != other and re.search(rf"\b{re.escape(each)}\b", other) for other in found)
    }
    meanings: list[dict[int, frozenset[str]]] = [{}] if found else []
    used = " ".join(found).split()
    for plain, columns in found.items():
        named = [column for column in columns if _named(header[column], plain, said)]
        chosen = named or sorted(columns, key=lambda column: len(values[column]))
        meanings = [
            {**meaning, column: frozenset(meaning.get(column, frozenset()) | columns[column])}
            for meaning in meanings
            for column in chosen[:2]
        ]
    left = [word for word in words if not set(_plain(word).split()) <= set(used)]
    return meanings, left


def _named(column: str, value: str, said: str) -> bool:
    """Whether the question puts the column's name beside the value."""
    for name in {_plain(column), *_plain(column).split()}:
        if re.search(
            rf"\b{re.escape(name)}s?\b(?: \w+)?? {re.escape(value)}\b|\b{re.escape(value)} {re.escape(name)}", said
        ):
            return True
    return False


# -- keys and values ---------------------------------------------------------------------------------------------


_DATA = (".json", ".jsonl", ".ndjson", ".yaml", ".yml", ".toml", ".ipynb", ".geojson")


def _of_pairs(text: Text, rest: str) -> list[Tally]:
    """Members ``"key": value`` of JSON, YAML and TOML."""
    words, noun = _words(rest)
    conditions: dict[str, Counter[tuple[str, str]]] = {}
    for word in words:
        if word == noun or _is_glue(word):
            continue
        keys: Counter[tuple[str, str]] = Counter()
        for block in _blocks(text):
            keys.update(_keys_of(block, word.encode()))
        conditions[word] = keys
    said = {stem(each) for word in words for each in (word.lower(), *re.split(r"[_\W]+", word.lower()))}
    named = {word: keys for word, keys in conditions.items() if keys}
    if len(named) != 1:
        return []
    (word, keys) = next(iter(named.items()))
    # A word that is no value must be the name of what the value is of.
    needed = {stem(each.lower()) for each in conditions if each != word}
    fitting = [each for each in keys if needed <= {stem(part) for name in each for part in _split(name)}]
    nearer = [each for each in fitting if any(stem(part) in said for part in _split(each[1]))]
    return [
        Tally(keys[each], "places", f"{'.'.join(filter(None, each))}: {word}")
        for each in (nearer or fitting)[:_MOST_TOLD]
    ]


_KEY_BEFORE = re.compile(rb"[\"']?([A-Za-z_][\w.\-]*)[\"']?\s*[:=]\s*[\"']?\Z")
_PARENT = re.compile(rb"\"([\w.\-]+)\"\s*:\s*\{[^{}]*\Z")


def _keys_of(block: bytes, value: bytes) -> Iterator[tuple[str, str]]:
    """The key of each member that has this value, after the key of the object that it is in, as far as that is near."""
    for found in re.finditer(rb"(?<![\w.\-])" + re.escape(value) + rb"(?=[\"']?\s*(?:[,}\]#\r\n]|\Z))", block):
        before = block[max(0, found.start() - 600) : found.start()]
        if key := _KEY_BEFORE.search(before, max(0, len(before) - 120)):
            parent = _PARENT.search(before[: key.start()])
            yield parent[1].decode() if parent else "", key[1].decode()


def _split(key: str) -> list[str]:
    return [part.lower() for part in re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", key) if part]


# -- lines -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Condition:
    """One word of the lines: the strictest way to mean it first."""

    word: str
    patterns: tuple[bytes, ...]


def _condition(word: str) -> _Condition:
    raw = re.escape(word).encode()
    alone = rb"(?<![\w.])" + raw + rb"(?![\w]|\.\d)"
    if word.isdigit():
        status = rb"\" " + raw + rb" " if len(word) == 3 else b""
        return _Condition(word, (*([status] if status else []), alone))
    if word.isupper() and len(word) > 1:
        # A level stands among the first fields of a line; the same word in a message is only a word.
        return _Condition(word, (rb"^[^\n]{0,60}?(?<![\w\"'=:(])" + raw + rb"(?=[\]\s:|]| *\[)", rb"\b" + raw + rb"\b"))
    own = re.escape(stem(word.lower())).encode()
    tag = rb"(?i)[\[<(]" + raw + rb"[\])>:]"
    return _Condition(word, (tag, rb"(?i)\b" + own))


def _of_lines(texts: list[Text], shapes: list[Shape], rest: str) -> list[Tally]:
    words, noun = _words(rest)
    needed = [word for word in dict.fromkeys(words) if not _is_glue(word)]
    optional = noun if noun in needed and len(needed) > 1 and noun.islower() else ""
    conditions = [_condition(word) for word in needed if word != optional]
    if not conditions:
        return []
    if len(conditions) == 1 and not conditions[0].word.isupper() and not conditions[0].word.isdigit():
        # A single word is meant in any form; what it is told with says so.
        own = re.escape(stem(conditions[0].word.lower())).encode()
        conditions = [_Condition(conditions[0].word, (rb"(?i)" + own,))]
    strict = [each.patterns[0] for each in conditions]
    loose = [each.patterns[-1] for each in conditions]
    meanings: list[tuple[bytes, ...]] = []
    chosen = []
    for each in conditions:
        # The strict form of a word counts where the artifact has it at all.
        some = [pattern for pattern in each.patterns if _count(texts, (pattern,))[0]]
        chosen.append(some[0] if some else each.patterns[-1])
    for meaning in (tuple(chosen), tuple(loose)):
        if meaning not in meanings:
            meanings.append(meaning)
    named = rb"(?i)\b" + re.escape(stem(optional.lower())).encode() if optional else b""
    label = " and ".join(each.word if each.word.isupper() else stem(each.word.lower()) for each in conditions)
    told: list[Tally] = []
    for meaning in meanings:
        number, kinds = _count(texts, meaning)
        if not number and len(conditions) > 1:
            continue
        counted = Tally(number, f"lines with {label}", _shown(meaning))
        if named:
            with_noun, kinds_with = _count(texts, (*meaning, named))
            if with_noun and with_noun != number:
                label_with = f"lines with {label} and {stem(optional.lower())}"
                told.append(Tally(with_noun, label_with, _shown((*meaning, named))))
                kinds = kinds_with
        # Where something else than lines is asked for, lines of many kinds do not say how many there are.
        unlike_lines = number > 2 and kinds.most_common(1)[0][1] < 0.9 * kinds.total()
        explicit = any(shape.head for shape in shapes) and (strict[0] in meaning or len(meaning) > 1)
        if unlike_lines and not explicit and not _lines_asked(noun):
            continue
        told.append(counted)
    unlike: dict[int, Tally] = {}
    for one in told:
        # Of two patterns that come to the same, the plainer one.
        unlike[one.number] = min(one, unlike.get(one.number, one), key=lambda tally: len(tally.pattern))
    return list(unlike.values())[:_MOST_TOLD]


def _lines_asked(noun: str) -> bool:
    return not noun or _is_glue(noun) or noun.isupper()


def _shown(patterns: tuple[bytes, ...]) -> str:
    return " & ".join(pattern.decode("utf-8", "replace") for pattern in patterns)


# What is left of a line when what varies is taken out tells of which kind it is: mostly its first word and its last.
_VARIES = re.compile(rb"\S*[\d:/_\"'=]\S*|\([^)]*\)|, .*")


def _count(texts: list[Text], patterns: tuple[bytes, ...]) -> tuple[int, Counter[bytes]]:
    """How many lines match all patterns, and of which kinds they are."""
    first, *others = [re.compile(pattern, re.MULTILINE) for pattern in patterns]
    number, kinds = 0, Counter[bytes]()
    for text in texts:
        for block in _blocks(text):
            end = -1
            for found in first.finditer(block):
                if found.start() < end:
                    continue
                start = block.rfind(b"\n", 0, found.start()) + 1
                end = block.find(b"\n", found.start())
                end = len(block) if end < 0 else end
                line = block[start:end]
                if all(each.search(line) for each in others):
                    number += 1
                    if len(kinds) < 1000:
                        kinds[_VARIES.sub(b"#", line[:200])] += 1
                if number > _MOST_MATCHES:
                    raise TimeoutSpentError(text.deadline.seconds)
    return number, kinds
