"""The paths that an issue's prose names as allowed or forbidden, for a person to confirm: words can be misread.

Only what exists in the project, or is plainly a path, is a name; only a sentence that speaks of changing things, or of
what is in scope, says anything of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sidecars.observer.conventions.sentences import Sentence, sentences, spans
from witness.files import is_glob

_DEED = (
    r"(?:touch|chang\w*|edit\w*|modif\w+|alter\w*|writ\w+|open\w*|read|mov\w+|renam\w+|delet\w+|remov\w+|refactor\w*|"
    r"rewrit\w+|fix\w*|updat\w+|work(?:ing)?|look|go|mess|commit\w*|add)"
)
_NOT = r"(?:do(?:es)?\s+not|don['’]?t|must\s*n[o'’]t|should\s*n[o'’]t|shall\s+not|may\s+not|can\s*(?:not|['’]t)|never|please\s+no)"  # noqa: E501 # fmt: skip
_FORBIDS = re.compile(
    rf"{_NOT}\s+(?:\w+ly\s+|ever\s+|even\s+)?{_DEED}\b|\bwithout\s+{_DEED}\b|\bavoid\s+{_DEED}\b|\bno\s+(?:changes?|edits?)\b"
    r"|\b(?:leave|keep)\b.*\b(?:alone|untouched|unchanged|as\s+(?:it|they)\s+(?:is|are)|out\s+of\s+(?:it|this))\b"
    r"|\bleave\s+(?:alone|untouched)\b|\b(?:keep|stay)\s+(?:away|out|clear)\b|\bhands?\s*[- ]?off\b|\boff[- ]limits\b"
    r"|\b(?:out\s+of|not\s+in|not\s+part\s+of\s+(?:the|this))\s+(?:scope|task|issue)\b|\bread[- ]only\b|^\W*not\b"
    r"|\b(?:must|should|has\s+to|have\s+to|is\s+to|are\s+to)\s+(?:stay|remain)\s+(?:unchanged|untouched|as)\b"
    r"|\bnon[- ]goals?\b",
    re.IGNORECASE,
)
_ALLOWS = re.compile(
    rf"\bonly\s+{_DEED}\b|{_DEED}\s+(?:\w+\s+){{0,3}}only\b|\bonly\b.*\b(?:be\s+)?{_DEED}\b|\bin\s+scope\b|\bscope\s*:"
    rf"|\b(?:limit\w*|restrict\w*|confin\w+|stick|keep|stay)\b.*\b(?:to|in|inside|within)\b|\bfiles?\s+to\s+{_DEED}\b"
    r"|^\W*(?:in\s+)?scope\W*$",
    re.IGNORECASE,
)
# Behind these it is the other way round.
_EXCEPT = re.compile(
    r"\b(?:except(?:\s+(?:for|in|inside|under))?|outside(?:\s+of)?|other\s+than|apart\s+from|but)\b(?!\s+(?:not|do|never|leave|keep))",
    re.IGNORECASE,
)
# What stands behind a comma or a conjunction may say the opposite of what stands before it.
_CLAUSES = re.compile(
    rf"\s+(?=without\b)|(?:,\s*(?:and\s+|but\s+)?|\s+(?:and|but)\s+)(?={_NOT}\b|not\b|never\b|leave\b|keep\b|stay\b|only\b|avoid\b)",
    re.IGNORECASE,
)
# A glob that was not put in backquotes would be read as emphasis.
_BARE_GLOB = re.compile(r"(?<![`\w./*-])[\w.-][\w./-]*/\*[\w./*{}-]*(?!`)")
_TOKEN = re.compile(r"[\w.@~*-]*[/*][\w./@*{}\[\]-]*|[\w-]+\.\w{1,5}\b|[\w-]+")
_STOP = frozenset(
    ["and", "or", "the", "it", "in", "to", "of", "a", "is", "are", "only", "not", "alone", "this", "that"]
)


@dataclass(frozen=True, slots=True)
class NamedPath:
    """A path that the prose names.

    Args:
        glob: of it and of what lies below it.
        forbidden: it is named as out of scope; else as the only thing in scope.
        line: of the issue.
    """

    glob: str
    forbidden: bool
    line: int


def paths_in_prose(text: str, workdir: Path, first: int = 1) -> tuple[NamedPath, ...]:
    """What an issue's prose names, each path once; the first that is said of it counts.

    Args:
        text: the issue without its front matter.
        workdir: the project.
        first: the number of the text's first line.
    """
    found: dict[str, NamedPath] = {}
    label: bool | None = None
    for sentence in sentences(_BARE_GLOB.sub(r"`\g<0>`", text), first):
        named = 0
        for glob, forbidden in _said(sentence, label, workdir):
            found.setdefault(glob, NamedPath(glob, forbidden, sentence.line))
            named += 1
        said = _polarity(sentence.text)
        if said is not None and not named and sentence.text.rstrip().endswith(":"):
            label = said
        elif not named:
            label = None
    return tuple(found.values())


def _polarity(text: str) -> bool | None:
    """Whether a clause forbids; None when it says nothing of scope."""
    if _FORBIDS.search(text):
        return True
    return False if _ALLOWS.search(text) else None


def _said(sentence: Sentence, label: bool | None, workdir: Path) -> Iterator[tuple[str, bool]]:
    heading = next((said for each in reversed(sentence.headings) if (said := _polarity(each)) is not None), None)
    above = label if label is not None else heading
    for clause in _CLAUSES.split(sentence.text):
        said = _polarity(clause)
        if said is None:
            # A bare list below a label or a heading; a sentence of its own says what it likes.
            said = above if len(clause.split()) <= 4 or clause.lstrip().startswith("`") else None
        if said is None:
            continue
        turn = _EXCEPT.search(clause)
        before, behind = (clause[: turn.start()], clause[turn.end() :]) if turn else (clause, "")
        yield from ((glob, said) for glob in _globs(before, workdir))
        yield from ((glob, not said) for glob in _globs(behind, workdir))


def _globs(text: str, workdir: Path) -> Iterator[str]:
    marked = spans(text)
    for _, _, inner in marked:
        if glob := _glob(inner, workdir, marked=True):
            yield glob
    for start, end, _ in reversed(marked):
        text = text[:start] + " " + text[end:]
    for token in _TOKEN.findall(text):
        if glob := _glob(token.rstrip(".,;:"), workdir, marked=False):
            yield glob


def _glob(name: str, workdir: Path, *, marked: bool) -> str:
    """The glob that a word means; empty when it is no path."""
    bare = name.strip().removeprefix("./").strip("/")
    if not bare or " " in name or name.startswith(("/", "~", "-", "@")) or ".." in bare or bare.lower() in _STOP:
        return ""
    if is_glob(bare):
        return bare if "/" in bare or "." in bare else ""
    path = workdir / bare
    if path.is_dir():
        return f"{bare}/**"
    if path.is_file():
        return bare
    # Not there (yet): then it has to look like one.
    if name.endswith("/"):
        return f"{bare}/**"
    return bare if marked and "/" in bare and "." in bare.rpartition("/")[2] else ""
