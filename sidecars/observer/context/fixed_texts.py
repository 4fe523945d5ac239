"""The project's texts that a sidecar's context was made of when it first started: a respawned one is given the same.

An agent can write its issue and its guides, and can end its sidecars. So what these said at the start is kept in the
journal, by its hash, like the type's definition; a later change is one line of the history and changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from witness.assignment import Assignment
from witness.errors import DeclarationError
from witness.files import parse_json
from witness.journal import Journal

_Found = TypeVar("_Found", str, list[str])
_TEXT = "text "
_NOW: ContextVar[FixedTexts | None] = ContextVar("fixed texts", default=None)


class FixedTexts:
    """What was found at the first start, by what was asked for.

    Args:
        found: of an earlier start; empty for the first one.
    """

    def __init__(self, found: dict[str, str | list[str]] | None = None) -> None:
        self._found = found or {}

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Answer ``found`` from these for as long as ``with`` lasts."""
        token = _NOW.set(self)
        try:
            yield
        finally:
            _NOW.reset(token)

    def answer(self, key: str, look: Callable[[], _Found]) -> _Found:
        if key not in self._found:
            self._found[key] = look()
        return self._found[key]  # type: ignore[return-value]  # one key is asked for in one way

    def to_json(self) -> str:
        """The text that the journal keeps."""
        return json.dumps(self._found, ensure_ascii=False)

    def changed(self, read: Callable[[Path], str]) -> list[str]:
        """The files that say something else now, or are gone.

        Args:
            read: reads a file of the project, raising a ``DeclarationError`` where it cannot.
        """
        return [
            key.removeprefix(_TEXT)
            for key, text in self._found.items()
            if key.startswith(_TEXT) and text != _now(key, read)
        ]


@contextmanager
def fixed_texts(assignment: Assignment) -> Iterator[FixedTexts]:
    """Those of a sidecar's run, in use for as long as ``with`` lasts; at its first start they are kept at the end.

    Raises:
        JournalError: they cannot be read or kept. The files as they stand now are no substitute: an agent writes them.
    """
    run, name = assignment.group.run, f"context of {assignment.name}"
    with Journal(Path(assignment.journal)) as journal:
        kept = journal.definitions.of(run, name)
        texts = FixedTexts(parse_json(kept) if kept else None)
        with texts.in_use():
            yield texts
        if not kept:
            body = texts.to_json()
            journal.definitions.fix(run, name, sha256(body.encode()).hexdigest(), body)


def found(key: str, look: Callable[[], _Found]) -> _Found:
    """What was found when the sidecar first started, or, where nobody keeps that, what is found now.

    Args:
        key: what is asked for.
        look: finds it.
    """
    texts = _NOW.get()
    return texts.answer(key, look) if texts else look()


def text_of(path: Path, read: Callable[[Path], str]) -> str:
    """``found`` for a file's text."""
    return found(f"{_TEXT}{path}", lambda: read(path))


def _now(key: str, read: Callable[[Path], str]) -> str | None:
    try:
        return read(Path(key.removeprefix(_TEXT)))
    except DeclarationError:
        return None
