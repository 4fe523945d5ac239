"""Regular expressions that others wrote: a repository's rules, a molecule's patterns.

Python's ``re`` can be made to run for years by twenty characters, so these go through RE2, whose time grows with the
text alone, and within a budget, since it also grows with the expression. RE2 is an extra; where it is not installed a
foreign expression is refused as it is declared, and our own ones (``re``) work all the same.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

EXTRA = "gt-witness[re2]"
LONGEST = 2000
_MEMORY = 1 << 20
# Instructions of the compiled expression; `\b(a|b|…)\b` of fifty words has 300.
_LARGEST_PROGRAM = 3000
# Instructions times characters: at its slowest RE2 needs 15 ns for each.
_BUDGET = 16_000_000


class Found(Protocol):
    """What an expression found."""

    def __getitem__(self, group: int, /) -> str: ...


class Expression(Protocol):
    """Something that can be searched for."""

    def search(self, text: str, /) -> Found | None: ...


@lru_cache(maxsize=256)
def foreign(pattern: str, *, multiline: bool = False) -> Expression:
    """Compile an expression that somebody else wrote.

    Of a long text only so much of the beginning is searched as the budget allows: 50,000 characters for an expression
    of 300 instructions.

    Args:
        pattern: in RE2's syntax: no lookaround and no backreferences.
        multiline: ``^`` and ``$`` match at every line.

    Raises:
        ValueError: it is too long or too large, not RE2, or RE2 is not installed.
    """
    if len(pattern) > LONGEST:
        raise ValueError(f"an expression of more than {LONGEST} characters")
    try:
        import re2
    except ImportError:
        raise ValueError(f"expressions of a project or a town need RE2: pip install '{EXTRA}'") from None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        compiled = re2.compile(f"(?m){pattern}" if multiline else pattern, options)
    except re2.error as error:
        why = error.args[0] if error.args else error
        why = why.decode("utf-8", "replace") if isinstance(why, bytes) else why
        raise ValueError(f"not an RE2 expression ({why}): RE2 has no lookaround and no backreferences") from error
    if compiled.programsize > _LARGEST_PROGRAM:
        raise ValueError("too large an expression: fewer or smaller repetitions")
    return _Bounded(compiled, compiled.programsize)


class _Bounded:
    """Searches as much of a text as the budget allows."""

    def __init__(self, compiled: Expression, size: int) -> None:
        self._compiled, self._room = compiled, _BUDGET // max(size, 1)

    def search(self, text: str, /) -> Found | None:
        return self._compiled.search(text[: self._room])
