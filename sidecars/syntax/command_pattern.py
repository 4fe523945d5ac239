"""Patterns over commands that ran: a program, its subcommands, flags and words, whatever stands around them.

A pattern is words with blanks between (quoted where a word holds one); ``a|b`` means one of them, ``*`` and ``?`` are
wildcards, case does not matter:

- the first is the program's base name; ``!a|b`` is any other program,
- a plain word is the next of the command's words that is no flag and no flag's value (its subcommand),
- ``-f|--force`` is a flag, alone, in a bundle (``-xfv``) or with a value (``--force=yes``),
- ``@*.env|*drop table*`` is any further word, a flag's value too, or the text on the standard input,
- ``+`` is any further word that is no flag and no flag's value,
- ``!`` before one of the three last: there is none such,
- ``by:uv``, ``!by:uv``: it was, or was not, started by that runner.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from fnmatch import translate
from functools import lru_cache

from sidecars.syntax.program_table import grammar
from witness.judging.observation import Ran

# Kinds of flags in the table of programs that take the next word.
_VALUES = frozenset(["x", "r", "f", "w", "@", "form", "p", "q", "cd", "sh", "code", "mod", "run", "to", "put", "lost"])
_PAIRS = frozenset(["xx", "xr"])
_SHORT = re.compile(r"-[A-Za-z0-9]+")


class CommandPattern:
    """One pattern.

    Args:
        text: as above.

    Raises:
        ValueError: it names no program.
    """

    def __init__(self, text: str) -> None:
        words = shlex.split(text)
        if not words or words[0].lstrip("!")[:1] in ("", "-", "@", "+"):
            raise ValueError(f"{text!r} begins with no program")
        self._other = words[0].startswith("!")
        self._program = _any_of(words[0].lstrip("!"))
        self._plain: list[re.Pattern[str]] = []
        self._tests: list[tuple[bool, str]] = []
        for word in words[1:]:
            bare = word.removeprefix("!")
            if bare[:1] in ("-", "@", "+") or bare.startswith("by:"):
                self._tests.append((bare is word, bare))
            else:
                self._plain.append(_any_of(word))

    def matches(self, ran: Ran) -> bool:
        """Whether a command is of this kind."""
        if (self._program.fullmatch(ran.words[0]) is not None) is self._other:
            return False
        flags, plain = _sorted(ran.words)
        if len(plain) < len(self._plain) or not all(
            wanted.fullmatch(word) for wanted, word in zip(self._plain, plain, strict=False)
        ):
            return False
        rest = plain[len(self._plain) :]
        # What a word that is not known may be, nobody can say: it may be the one that there must not be.
        return all(
            (wanted or ran.whole or not test.startswith(("@", "+"))) and self._holds(test, ran, flags, rest) is wanted
            for wanted, test in self._tests
        )

    def _holds(self, test: str, ran: Ran, flags: tuple[str, ...], rest: tuple[str, ...]) -> bool:
        if test.startswith("by:"):
            return any(_any_of(test[3:]).fullmatch(name) for name in ran.by)
        if test == "+":
            return bool(rest)
        if test.startswith("@"):
            wanted = _any_of(test[1:])
            known = frozenset(_sorted(ran.words)[1][: len(self._plain)])
            further = [word for word in ran.words[1:] if word not in known]
            return any(wanted.fullmatch(" ".join(word.split())) for word in (*further, ran.given) if word)
        return any(_is_flag(flag, given) for flag in test.split("|") for given in flags)


def _is_flag(wanted: str, given: str) -> bool:
    if given == wanted or given.startswith(wanted + "="):
        return True
    return len(wanted) == 2 and wanted[1] != "-" and _SHORT.fullmatch(given) is not None and wanted[1] in given[1:]


@lru_cache(maxsize=256)
def _sorted(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(flags, words that are neither flags nor their values) of a command."""
    flags: list[str] = []
    plain: list[str] = []
    name = words[0]
    table = dict(_flags_of(name))
    waiting = 0
    only_words = False
    for word in words[1:]:
        if waiting:
            waiting -= 1
        elif only_words or not word.startswith("-") or word == "-":
            if not plain and word.startswith("+"):  # cargo +nightly
                continue
            if not plain:
                table.update(_flags_of(f"{name}/{word}"))
            plain.append(word)
        elif word == "--":
            only_words = True
        else:
            flags.append(word)
            kind = table.get(word) or (table.get("-" + word[-1], "") if _SHORT.fullmatch(word) else "")
            waiting = 1 if kind in _VALUES else 2 if kind in _PAIRS else 0
    return tuple(flags), tuple(plain)


def _flags_of(name: str) -> Iterator[tuple[str, str]]:
    rules = grammar(name)
    if rules is not None:
        yield from rules.flags.items()


@lru_cache(maxsize=4096)
def _any_of(globs: str) -> re.Pattern[str]:
    return re.compile("|".join(translate(glob) for glob in globs.split("|")), re.IGNORECASE)
