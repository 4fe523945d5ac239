"""A program's words by its grammar → what it does with them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sidecars.syntax.program_table import Grammar, file_like, grammar, is_path
from sidecars.syntax.words import UNKNOWN, Word, literal

_PATTERN = re.compile(r"[*?\[{]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=(?!=)")
_FOLDERS = frozenset([".", "..", "~", "/", "/tmp"])  # noqa: S108 - names to compare with
_VALUES = frozenset(["x", "r", "f", "w", "@", "form", "p", "q", "cd", "sh", "code", "mod", "run", "to", "put", "lost"])
_MOST_SWITCHES = 4


@dataclass(slots=True)
class Use:
    """What a program does with its words.

    Args:
        opened, written: the files, as spelled.
        command: the command that it runs, its words.
        line: the shell line that it runs.
        arguments: what that line is given.
        folder: where it works, where it is told.
        away: it works in a folder of its own.
        unsure: it may not run its command.
        module: the command is a module of Python.
        placeholder: what is replaced in its command.
        takes_code: it runs what comes by its standard input.
        code: the program that stands in its words, None when it is none or not known.
    """

    opened: list[Word] = field(default_factory=list)
    written: list[Word] = field(default_factory=list)
    command: list[Word] | None = None
    line: Word | None = None
    folder: Word | None = None
    away: bool = False
    unsure: bool = False
    module: bool = False
    placeholder: str = ""
    takes_code: bool = False
    code: str | None = None


class _Reading:
    """One pass over a program's words by one grammar."""

    def __init__(self, name: str, rules: Grammar) -> None:
        self.name = name
        self.rules = rules
        self.use = Use()
        self.plain: list[Word] = []
        self.behind: list[Word] = []
        self.marks: set[str] = set()
        self.target: Word | None = None
        self.switch = ""

    def read(self, words: Sequence[Word]) -> None:
        """Sort flags from words; stops early when a flag names another row."""
        rules = self.rules
        rest = list(words)
        if "bundle" in rules.options and rest and rest[0].text and not rest[0].is_flag:
            rest[0:1] = self._unbundled(rest[0].text)
        index = 0
        while index < len(rest) and not self.switch:
            word = rest[index]
            index += 1
            if word.text == "--":
                (self.behind if rules.after else self.plain).extend(rest[index:])
                return
            name, equals, value = word.head.partition("=")
            if equals and (kind := self._kind(name + equals)):
                self._take(kind, literal(value) if word.text is not None else UNKNOWN)
                continue
            if "plus" in rules.options and word.head.startswith("+"):
                continue
            if "vars" in rules.options and _ASSIGNMENT.match(word.head):
                continue
            if not word.is_flag:
                self.plain.append(word)
                if "+" in rules.options:
                    self.plain += rest[index:]
                    return
                continue
            index += self._flag(word, rest[index:])
            if "stop" in self.marks:
                return

    def _unbundled(self, letters: str) -> list[Word]:
        """``tar czf x``: letters without a dash; those that take a value take the words that follow."""
        last = sorted(letters, key=lambda letter: self._kind("-" + letter) in _VALUES or letter == "f")
        return [literal("-" + letter) for letter in last]

    def _kind(self, flag: str) -> str:
        return self.rules.flags.get(flag, "")

    def _flag(self, word: Word, rest: Sequence[Word]) -> int:
        """Reads one flag.

        Returns:
            How many of the words behind it are its own.
        """
        if word.head.startswith("--") or "1" in self.rules.options:
            flag, equals, value = word.head.partition("=")
            kind = self._kind(flag)
            if not equals:
                return self._separate(kind, rest, listed=flag in self.rules.flags)
            self._take(kind, Word(value, value, spelled=value) if word.text is not None else UNKNOWN)
            return 0
        return self._cluster(word, rest)

    def _cluster(self, word: Word, rest: Sequence[Word]) -> int:
        """Flags of one letter behind one dash; the last may have its value in the same word, or in the next."""
        letters = word.head[1:]
        for place, letter in enumerate(letters, 1):
            kind = self._kind("-" + letter)
            value = letters[place:]
            if kind in ("opt", "in"):
                self._take(kind, literal(value))
                return 0
            if kind in _VALUES or kind in ("xx", "xr"):
                if not value and word.text is not None:
                    return self._separate(kind, rest, listed=True)
                self._take(kind, literal(value.removeprefix("=")) if word.text is not None else UNKNOWN)
                return 0
            if not kind and not value and "?" in self.rules.options:
                return self._separate("", rest, listed=False)
            self._take(kind, UNKNOWN)
        return 0

    def _separate(self, kind: str, rest: Sequence[Word], *, listed: bool) -> int:
        if kind in ("xx", "xr"):
            if kind == "xr" and len(rest) > 1:
                self.use.opened.append(rest[1])
            return 2
        if kind == "code" and rest:
            self._take(kind, rest[0])
            return 1
        if kind in _VALUES:
            if kind in ("mod", "run"):
                self._rest_is_its_own(kind, rest)
                return 0
            self._take(kind, rest[0] if rest else UNKNOWN)
            return 1
        self._take(kind, UNKNOWN)
        doubtful = not listed and "?" in self.rules.options
        return 1 if doubtful and rest and not rest[0].is_flag else 0

    def _rest_is_its_own(self, kind: str, rest: Sequence[Word]) -> None:
        """``python -m MODULE …`` is the command MODULE; ``java -jar FILE …`` reads FILE."""
        self.marks.add("stop")
        if not rest:
            return
        if kind == "run":
            self.use.opened.append(rest[0])
        else:
            self.use.command = list(rest)
            self.use.module = True

    def _take(self, kind: str, value: Word) -> None:
        use = self.use
        if kind.startswith(">"):
            self.switch = kind[1:] if kind[1:] != self.name else ""
        elif kind in ("r", "q", "f", "@", "form"):
            if kind == "q":
                self.marks.add("p")
            if (file := _file_of(kind, value)) is not None:
                use.opened.append(file)
        elif kind == "w":
            use.written.append(value)
        elif kind == "cd":
            use.folder = value
        elif kind == "sh":
            use.line = value
        elif kind == "to":
            self.target = value
        elif kind == "put":
            use.placeholder = value.text or "{}"
        else:
            use.code = value.text if kind == "code" else use.code
            use.unsure |= kind == "maybe"
            use.away |= kind == "away"
            self.marks.add(kind)

    def finish(self) -> None:
        """Say of each word what its kind says."""
        if "stop" in self.marks:
            return
        self._assign(self.plain, self.rules.words)
        if self.behind:
            self._assign(self.behind, self.rules.after)

    def _assign(self, given: list[Word], kinds: tuple[str, ...]) -> None:
        marks = self.marks
        if "lost" in marks or ("staged" in marks and "worktree" not in marks):
            return
        first = kinds[0] if kinds else ""
        if first == "p" and "p" in marks:
            kinds = kinds[1:]
        if "in" in marks and given and given[0].text == "":
            given = given[1:]  # the suffix that some editors in place want
        if first.startswith("cmd"):
            self._command(given, first)
        elif first == "s":
            self._script(given)
        elif kinds[1:] == ("cmd",):
            self._say(given[0], first) if given else None
            self._command(given[1:], "cmd")
        elif kinds[1:] == ("w",) and first.endswith("*"):
            self._transfer(given, first[0])
        else:
            for word, kind in zip(given, _kinds_of(given, kinds), strict=True):
                self._say(word, kind)

    def _command(self, given: list[Word], kind: str) -> None:
        while given and _ASSIGNMENT.match(given[0].head):
            given = given[1:]
        if kind == "cmd/s" and given and given[0].text and given[0].text.endswith(".py"):
            self.use.opened.append(given[0])
        elif given:
            self.use.command = given

    def _script(self, given: list[Word]) -> None:
        if "code" in self.marks or self.use.line is not None:
            return
        if given and given[0].text != "-":
            self.use.opened.append(given[0])
        else:
            self.use.takes_code = True

    def _transfer(self, given: list[Word], kind: str) -> None:
        """Copying and moving: the last word is where the others go, or a folder that is named by a flag."""
        target = self.target
        if target is None:
            if len(given) < 2:
                return
            target = given[-1]
            given = given[:-1]
            several = len(given) > 1 or any(word.many for word in given)
            inside = several or (target.text is not None and (target.text in _FOLDERS or target.text.endswith("/")))
        else:
            inside = True
        if "no" in self.marks:
            return
        for word in given:
            self._say(word, kind)
        if target.text is None or not is_path(target.text):
            return
        if not inside:
            self.use.written.append(target)
            return
        for word in given:
            name = (word.text or "").rstrip("/").rpartition("/")[2]
            if name in ("", ".", ".."):
                continue
            if word.text and word.text.endswith("/") and self.name == "rsync":
                continue
            self.use.written.append(Word(f"{target.text.rstrip('/')}/{name}", quoted=target.quoted))

    def _say(self, word: Word, kind: str) -> None:
        marks, use = self.marks, self.use
        if kind == "t":  # FILE::NAME, the name may hold what the shell takes for a pattern
            name, colons, _ = word.head.partition("::")
            word, kind = literal(name) if colons else word, "f"
        text = word.text
        if text is None or not is_path(text) or "no" in marks:
            return
        if kind in ("f", "F", "v") or (kind == "r" and "dir" in marks):
            if not file_like(text) or _PATTERN.search(text):
                return  # a folder, or a pattern that the program reads itself
            kind = {"F": "m", "v": "w"}.get(kind, "r")
        if kind == "r" and "in" in marks:
            kind = "m"
        if kind in ("m", "w") and "ro" in marks:
            kind = "r"
        if kind in ("r", "m"):
            use.opened.append(word)
        if kind in ("w", "m") and text not in (".", ".."):
            use.written.append(word)


def _file_of(kind: str, value: Word) -> Word | None:
    """The file that a flag's value names."""
    text = value.text
    if text is None:
        return None
    if kind == "@":
        return literal(text[1:]) if text.startswith("@") else None
    if kind == "form":
        found = re.match(r"[^=]*=[@<]([^;]+)", text)
        return literal(found[1]) if found else None
    return value if kind != "f" or file_like(text) else None


def _kinds_of(given: Sequence[Word], kinds: tuple[str, ...]) -> list[str]:
    """The kind of each word; ``x`` where it cannot be told because a word before or behind may become several."""
    star = next((place for place, kind in enumerate(kinds) if kind.endswith("*")), None)
    front = kinds if star is None else kinds[:star]
    middle = "x" if star is None else kinds[star][:-1]
    found: list[str] = []
    lost = 0
    for place, word in enumerate(given):
        if place < len(front):
            found.append("x" if lost else front[place])
            lost += word.many
        else:
            # a doubtful word among the first may have been none at all
            found.append("x" if lost and (star is None or place < len(front) + lost) else middle)
    return found


def use_of(name: str, words: Sequence[Word]) -> Use:
    """What a program does with its words.

    Args:
        name: the program's, without its folder, or PROGRAM/SUBCOMMAND.
        words: its words, itself left out.
    """
    rules = grammar(name)
    if rules is None:
        return Use()
    reading = _Reading(name, rules)
    reading.read(words)
    for _ in range(_MOST_SWITCHES):
        other = grammar(reading.switch)
        if other is None:
            break
        # The flags of the program stay what they are where the new row does not say otherwise.
        flags = {flag: kind for flag, kind in rules.flags.items() if not kind.startswith(">")}
        options = other.options | (rules.options & {"bundle"})
        rules = Grammar(other.words, other.after, {**flags, **other.flags}, options)
        reading = _Reading(reading.switch, rules)
        reading.read(words)
    if rules.words and rules.words[0].startswith("sub") and reading.plain and "stop" not in reading.marks:
        if rules.words[0] != "sub?" or grammar(f"{name}/{reading.plain[0].text}") is not None:
            return _below(name, words, reading)
        reading.rules = replace(rules, words=rules.words[1:])
    reading.finish()
    return reading.use


def _below(name: str, words: Sequence[Word], reading: _Reading) -> Use:
    """What a subcommand does with the words behind it."""
    first = reading.plain[0]
    kind = reading.rules.words[0]
    inner = f"{name}/{first.text}"
    if grammar(inner) is None:
        if kind == "sub/s" and file_like(first.text or ""):
            reading.use.opened.append(first)
        return reading.use
    place = next(index for index, word in enumerate(words) if word is first)
    use = use_of(inner, words[place + 1 :])
    use.opened += reading.use.opened
    use.written += reading.use.written
    use.folder = use.folder or reading.use.folder
    return use
