"""What is known at one place of a shell line, and what was found up to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from posixpath import normpath
from typing import TYPE_CHECKING

from sidecars.syntax.program_table import is_path
from sidecars.syntax.words import Word
from witness.judging.observation import Ran

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass(slots=True)
class Found:
    """What the line was seen to do so far, and the number of commands."""

    opened: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    ran: list[Ran] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)
    commands: int = 0

    def copy(self) -> Found:
        return replace(
            self,
            opened=list(self.opened),
            written=list(self.written),
            tools=list(self.tools),
            ran=list(self.ran),
            texts=list(self.texts),
        )

    def put_back(self, known: Found) -> None:
        """Forget what was found since ``known`` was copied."""
        self.opened, self.written, self.tools, self.texts = known.opened, known.written, known.tools, known.texts
        self.ran = known.ran


@dataclass(slots=True)
class Scope:
    """What the shell knows at one place of the line.

    Args:
        folder: where it is, relative to where the line began; None when that is not known.
        before: where it was before the last change.
        stack: of ``pushd``.
        functions: defined so far; a name that stands for none of them any more is None.
        variables: those that were given a value so far, None when it is not known.
        ended: what follows does not run.
        sure: what follows does run.
        searched: ``cd`` may search for its folder elsewhere.
    """

    folder: str | None = ""
    before: str | None = None
    stack: tuple[str | None, ...] = ()
    functions: dict[str, tuple[Node, bytes] | None] = field(default_factory=dict)
    variables: dict[str, str | None] = field(default_factory=dict)
    ended: bool = False
    sure: bool = True
    searched: bool = False

    def copy(self, *, sure: bool = True) -> Scope:
        return replace(self, functions=dict(self.functions), variables=dict(self.variables), sure=self.sure and sure)

    def join(self, other: Scope) -> None:
        """What is known when either this or ``other`` has happened."""
        if other.ended:
            return
        if self.ended:
            self._become(other)
            return
        if self.folder != other.folder:
            self.folder = None
        if self.stack != other.stack:
            self.stack = ()
            self.before = None
        for name in self.functions.keys() | other.functions.keys():
            if self.functions.get(name) is not other.functions.get(name):
                self.functions[name] = None
        self.forget_changes(other.variables)
        self.searched |= other.searched

    def forget_changes(self, before: Mapping[str, str | None]) -> None:
        """Of variables that are not what they were, nothing is known any more."""
        for name in self.variables.keys() | before.keys():
            if self.variables.get(name) != before.get(name):
                self.variables[name] = None

    def shell(self) -> Scope:
        """Where a new shell begins; what is exported to it is passed over."""
        return replace(self, functions={}, variables={})

    def _become(self, other: Scope) -> None:
        self.folder, self.before, self.stack = other.folder, other.before, other.stack
        self.functions, self.variables = other.functions, other.variables
        self.ended, self.searched = other.ended, other.searched

    def move(self, folder: str | None) -> None:
        """Change the folder, to None when it is not known which."""
        self.before, self.folder = self.folder, folder

    def path(self, word: Word) -> str | None:
        """Where a word leads from where the line began; None when that is not known."""
        text = word.text
        if text is None or not is_path(text):
            return None
        if text.startswith("~") and not word.quoted:
            return normpath(text)
        if text.startswith("/"):
            return normpath(text)
        if self.folder is None:
            return None
        if text.startswith("~"):
            text = "./" + text
            return text if not self.folder else f"{self.folder}/{text}"
        return normpath(f"{self.folder}/{text}" if self.folder else text)

    def folder_of(self, word: Word) -> str | None:
        """The folder that ``cd`` goes to, None when it is not known."""
        text = word.text
        if text is None or (self.searched and not text.startswith(("/", "./", "../", "~"))):
            return None
        folder = self.path(word)
        return "" if folder == "." else folder

    def one_of(self, ways: Sequence[Scope]) -> None:
        """Go on after one of several ways was taken; what follows is sure only if none of them ends here."""
        sure = self.sure and not any(way.ended for way in ways)
        self._become(ways[0])
        for way in ways[1:]:
            self.join(way)
        self.sure = sure

    def files(self, found: Found, opened: Iterable[Word], written: Iterable[Word]) -> None:
        """Note the files that a command surely touches."""
        if self.sure:
            found.opened += [path for word in opened if (path := self.path(word))]
            found.written += [path for word in written if (path := self.path(word))]

    def text(self, found: Found, word: Word, text: str | None) -> None:
        """Note what goes into a file."""
        if self.sure and text and (path := self.path(word)):
            found.texts.append((path, text))

    def in_folder(self, word: Word) -> Scope:
        """The same place in another folder, for one command."""
        return replace(self, folder=self.folder_of(word))
