"""The names that a project's files define, and those that an agent's new text defines anew."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from sidecars.syntax.languages import (
    code_only,
    comments_only,
    definitions,
    is_document,
    is_generated,
    is_test,
    language_of,
)
from sidecars.syntax.source_parts import Definition

# Names that every program has of its own.
_COMMON = frozenset(
    """
    main init setup teardown run start stop close open test handler error config get set put add log map sum max min new
    all any pop end app foo bar
    """.split()  # noqa: SIM905 - a list of words
)
_SHORTEST = 3
_WORD = re.compile(r"[^\W\d][\w$]*")


def fold(name: str) -> str:
    """One spelling for ``formatPrice``, ``format_price`` and ``FormatPrice``."""
    return name.replace("_", "").replace("$", "").casefold()


def _told(found: Sequence[Definition] | None) -> Iterator[Definition]:
    """Those that say enough to be recognised. A method stands for nothing without its object."""
    for each in found or ():
        private = each.name.startswith(("_", "test", "Test"))
        if each.kind != "method" and len(each.name) >= _SHORTEST and not private and fold(each.name) not in _COMMON:
            yield each


def _kin(path: str, text: str) -> str:
    """Whose functions a file can call: those of its language, and of what is compiled to it."""
    language = language_of(path, text) or ""
    return "script" if language in ("javascript", "typescript", "tsx") else language


def offered(path: str, text: str) -> dict[str, str]:
    """What a file offers to others of its language: LANGUAGE:folded name → NAME in PATH.

    Args:
        path: of the file, as it is told.
        text: of the file.
    """
    found = [each for each in _told(definitions(path, text)) if each.public]
    kin = _kin(path, text)
    return {f"{kin}:{fold(each.name)}": f"{each.name} in {path}" for each in found}


def defined_anew(written: tuple[str, ...], text: str, names: Mapping[str, str]) -> Iterator[tuple[Definition, str]]:
    """What a new text defines though the project offers it elsewhere, with where that is.

    Documents, tests and generated files define nothing; where a name is at home it may be edited, and what is built on
    the one that there is does not repeat it.

    Args:
        written: the files that the text went into.
        text: as far as it is new.
        names: from ``offered``.
    """
    kin = _kin(written[0], text) if written else ""
    if names.keys().isdisjoint(f"{kin}:{fold(word)}" for word in _WORD.findall(text)):
        return
    for each in _told(new_definitions(written, text)):
        home = names.get(f"{kin}:{fold(each.name)}")
        if home and home.rpartition(" in ")[2] not in written and not _calls(written, text, each, home):
            yield each, home


def _calls(written: tuple[str, ...], text: str, found: Definition, home: str) -> bool:
    """Whether a definition is built on the one that it seems to repeat: ``return prices.parse_cents(text)``."""
    name, _, path = home.partition(" in ")
    place = PurePosixPath(path)
    module = "|".join(re.escape(part) for part in (place.stem, place.parent.name) if part)
    code = code_of(written, text) or ""
    if re.search(rf"^[ \t]*(?:from\b.*\bimport|import|use)\b.*\b{re.escape(found.name)}\b", code, re.MULTILINE):
        return True  # "try: from lib.text import slugify", and what stands in where that fails
    body = code.splitlines()[found.first - 1 : found.last]
    return re.search(rf"\b(?:{module})\s*(?:\.|::)\s*{re.escape(name)}\b", "\n".join(body)) is not None


@lru_cache(maxsize=4)
def new_definitions(written: tuple[str, ...], text: str) -> tuple[Definition, ...]:
    """What a new text defines in code of the project; nothing when it is not known of what language it is.

    Args:
        written: the files that it went into.
        text: as far as it is new.
    """
    if not _one_language(written, text):
        return ()
    if any(is_document(path) or is_test(path) or is_generated(path, text) for path in written):
        return ()
    return definitions(written[0], text) or ()


@lru_cache(maxsize=4)
def code_of(written: tuple[str, ...], text: str) -> str | None:
    """The code of a new text, all else blanked; None when it is not known of what language it is."""
    return code_only(written[0], text) if _one_language(written, text) else None


@lru_cache(maxsize=4)
def comments_of(written: tuple[str, ...], text: str) -> str | None:
    """The comments of a new text, all else blanked; None when it is not known of what language it is."""
    return comments_only(written[0], text) if _one_language(written, text) else None


def _one_language(written: Sequence[str], text: str) -> bool:
    return len({language_of(path, text) or path for path in written}) == 1
