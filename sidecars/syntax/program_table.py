"""What a program does with its words: a table of argument grammars (``programs.txt``) and the reading by it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

# What is spelled like a file: a name with an ending, or one of the names that projects give to files without an ending.
_FILE_LIKE = re.compile(
    r"(?:.*/)?(?:[^/]*[^/.][^/]*\.[A-Za-z][\w+~-]{0,11}|[A-Z][A-Z_-]+|\.env|(?:Make|Docker|Gem|Rake|Proc|Pip|Jenkins|Vagrant|Brew|Just)file)"
)
# Host:path, scheme://…
_ELSEWHERE = re.compile(r"[\w.@-]+:(?:[^:]|$)")
_DEVICES = ("/dev/", "/proc/self/fd/")
_LONGEST_PATH = 1024


@dataclass(frozen=True, slots=True)
class Grammar:
    """How a program reads its words; ``programs.txt`` explains the kinds.

    Args:
        words: the kinds of its words, in order; one of them may end in ``*``.
        after: the kinds of those behind ``--``, where they differ.
        flags: what its flags take.
        options: of the row: ``+``, ``1``, ``?``, ``bundle``.
    """

    words: tuple[str, ...]
    after: tuple[str, ...]
    flags: dict[str, str]
    options: frozenset[str]


@lru_cache(maxsize=1)
def _rows() -> dict[str, str]:
    rows: dict[str, str] = {}
    for line in Path(__file__).with_name("programs.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            names, _, grammar = line.partition(" : ")
            rows.update(dict.fromkeys(names.split(), grammar))
    return rows


@lru_cache(maxsize=256)
def grammar(name: str) -> Grammar | None:
    """The row of a program, or of PROGRAM/SUBCOMMAND; None when the table has none."""
    row = _rows().get(name)
    if row is None:
        return None
    words, _, rest = row.partition(" : ")
    before, _, after = words.partition("--")
    flags: dict[str, str] = {}
    options: set[str] = set()
    for part in rest.split():
        flag, equals, kind = part.partition("=")
        if equals:
            flags[flag if flag.startswith("-") else flag + "="] = kind or "0"
        else:
            options.add(part)
    return Grammar(tuple(before.split()), tuple(after.split()), flags, frozenset(options))


def file_like(path: str) -> bool:
    """Whether a path is spelled as files are, and folders are not."""
    return _FILE_LIKE.fullmatch(path) is not None


def is_path(text: str) -> bool:
    """Whether a word can be the path of a file here, and of one that is no device."""
    return (
        0 < len(text) < _LONGEST_PATH
        and text != "-"
        and "\n" not in text
        and "\0" not in text
        and not text.startswith(_DEVICES)
        and not _ELSEWHERE.match(text)
    )


def names() -> list[str]:
    """The programs that the table knows."""
    return sorted(_rows())
