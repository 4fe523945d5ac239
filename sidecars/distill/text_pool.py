"""The texts of the declared artifacts, opened when they are needed and a few at a time."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import Self

from sidecars.distill.answer import Lines, Place
from sidecars.distill.artifact import Artifacts
from sidecars.distill.cache import IndexCache
from sidecars.distill.errors import TimeoutSpentError, UnreadableError
from sidecars.distill.layout import LONGEST_LINE
from sidecars.distill.pointer import JsonMap, NotJsonError, is_json
from sidecars.distill.request import Deadline
from sidecars.distill.text import Text

# Descriptors are few; of a folder of 20,000 files nearly all are read once.
_MOST_OPEN = 32


class TextPool:
    """Gives out texts by name. A context manager.

    Args:
        artifacts: what was declared.
        deadline: until when it may be worked on.
        cache: what is known of large files, None for nothing.
    """

    def __init__(self, artifacts: Artifacts, deadline: Deadline, cache: IndexCache | None = None) -> None:
        self.artifacts = artifacts
        self.deadline = deadline
        self._cache = cache
        self._texts: OrderedDict[str, Text] = OrderedDict()
        self._gaps: dict[str, None] = {}
        self._maps: dict[str, JsonMap] = {}
        self._is_json: dict[str, bool] = {}
        self.unreadable: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for text in self._texts.values():
            text.close()

    def extend(self, seconds: float) -> None:
        """Give a little more time, to check what was found."""
        self.deadline = Deadline(seconds)
        for text in self._texts.values():
            text.deadline = self.deadline

    @property
    def names(self) -> list[str]:
        """The names of all texts."""
        return [entry.name for entry in self.artifacts.entries()]

    def text(self, name: str) -> Text:
        """The text of that name, opened.

        Raises:
            UnreadableError: it is none of the artifacts, or cannot be read.
            TimeoutSpentError: unfolding it takes too long.
        """
        if name in self._texts:
            self._texts.move_to_end(name)
            return self._texts[name]
        try:
            text = Text(self.artifacts, name, self.deadline, self._cache)
        except UnreadableError as error:
            self.unreadable[name] = error.reason
            raise
        self._texts[name] = text
        while len(self._texts) > _MOST_OPEN:
            self._retire(self._texts.popitem(last=False)[1])
        return text

    def meant(self, name: str) -> Text:
        """The text that a model means by ``name``; with a single artifact any name for it will do.

        Raises:
            UnreadableError: it means none of them.
        """
        names = self.names
        try:
            return self.text(self.artifacts.resolve(name))
        except UnreadableError:
            if len(names) == 1 and name.rstrip("/").rpartition("/")[2] in ("", names[0].rpartition("/")[2]):
                return self.text(names[0])
            raise

    def json(self, text: Text) -> JsonMap:
        """The pointers of a text; it may turn out to have none."""
        if text.name not in self._maps:
            self._maps[text.name] = JsonMap(text)
        return self._maps[text.name]

    def place(self, text: Text, start: int, end: int) -> str:
        """The locator of the bytes from ``start`` to ``end``: a document's own, a JSON pointer, else lines."""
        if text.places:
            first, last = text.line_at(start), text.line_at(max(start, end - 1))
            return str(Place(text.places[first - 1], text.places[min(last, len(text.places)) - 1]))
        if self.is_json(text) and (text.lines < 3 or text.size > LONGEST_LINE * text.lines):
            # Without the time for it, lines are a place as well.
            with suppress(NotJsonError, TimeoutSpentError):
                # The whole document is no place in it.
                if pointer := str(self.json(text).around(start, end)):
                    return pointer
        return str(Lines(text.line_at(start), text.line_at(max(start, end - 1))))

    def is_json(self, text: Text) -> bool:
        """Whether the text is one JSON document, as far as its beginning tells."""
        if text.name not in self._is_json:
            self._is_json[text.name] = is_json(text)
        return self._is_json[text.name]

    def _retire(self, text: Text) -> None:
        for gap in (*text.gaps, text.changed()):
            if gap:
                self._gaps[f"{text.name}: {gap}"] = None
        self._maps.pop(text.name, None)
        text.close()

    def gaps(self) -> list[str]:
        """What could not be read, and what changed under the reading."""
        for text in self._texts.values():
            for gap in (*text.gaps, text.changed()):
                if gap:
                    self._gaps[f"{text.name}: {gap}"] = None
        found = list(self._gaps) + [f"{name}: {why}" for name, why in self.unreadable.items()]
        left_out = self.artifacts.left_out
        found += [f"{name} was not read: it {why}" for name, why in left_out[:3]]
        if len(left_out) > 3:
            found.append(f"{len(left_out) - 3} more files were not read")
        return found
