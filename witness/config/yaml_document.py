"""YAML, read so that each value can be named by file, line and key, and so that no document can hurt its reader.

A document comes from a repository as often as from its user, so it is looked at before anything is built from it: its
size, how deep it is nested, how many values it has with every alias counted as what it stands for. An alias within
what it stands for, and a key that stands twice (YAML lets the second win, in silence), are faults.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from witness.errors import DeclarationError, Problem, did_you_mean
from witness.files import read_text

# People's own files are a hundredth of this.
BYTES = 1 << 20
# Values, each alias counted as all that it stands for; a long text counts as one for every so many characters.
_VALUES = 100_000
_TEXT_UNIT = 32
_DEPTH = 32
# Within a number of YAML 1.1 (octal, of base sixty, …); longer ones cost more than their length.
_NUMBER = re.compile(r"[-+.0-9][-+.:_0-9a-fA-FxXeE]{100,}")


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML mapping and where its parts stand.

    Args:
        path: the file, or whatever else it came from.
        values: the mapping.
        lines: one-based line by dotted key, as ``rules.0.tools``.
    """

    path: str
    values: dict[str, Any]
    lines: dict[str, int] = field(default_factory=dict)

    def problem(self, message: str, key: str) -> Problem:
        """A fault at a key of this file; the line is the key's own or its nearest parent's."""
        at = key
        while at and at not in self.lines:
            at = at.rpartition(".")[0]
        return Problem(message, self.path, self.lines.get(at, 0), key)

    def unknown(self, key: str, known: Iterable[str], what: str = "unknown key") -> Problem:
        """The fault of a key (the last part of ``key``) that is not known: the near one, or all."""
        names = list(known)
        return self.problem(
            f"{what}; {did_you_mean(key.rpartition('.')[2], names) or 'known are ' + ', '.join(names)}", key
        )


@lru_cache(maxsize=32)
def parse_yaml(text: str, path: str, first_line: int = 1) -> Document:
    """Read a mapping from YAML text.

    The same text gives the same document, which nobody may change: a fork finds what its parent has read.

    Args:
        text: the YAML.
        path: named in errors.
        first_line: the line of ``path`` at which ``text`` begins.

    Raises:
        DeclarationError: it is not YAML, is beyond the limits, holds a key twice, or is not a mapping.
    """
    values, lines = _read(text, path, first_line)
    if values is None:
        return Document(path, {})
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise DeclarationError([Problem("the file must hold a mapping of names to values", path, first_line)])
    return Document(path, values, lines)


def parse_yaml_value(text: str, path: str) -> Any:
    """Read any YAML value: a list as well as a mapping; None for an empty text.

    Raises:
        DeclarationError: as ``parse_yaml``.
    """
    return _read(text, path, 1)[0]


def load_yaml(path: Path, owners: Collection[int] | None = ()) -> Document:
    """Read a YAML file; a missing one is an empty document.

    Args:
        path: the file; it may be a link, as people link their settings, and must lead to a regular file.
        owners: user ids whose files are accepted, None for our own and root's; everybody's by default.

    Raises:
        DeclarationError: as ``parse_yaml``, or the file cannot be read.
    """
    try:
        text = read_text(path, BYTES, follow=True, owners=owners)
    except (FileNotFoundError, NotADirectoryError):
        return Document(str(path), {})
    except OSError as error:
        raise DeclarationError([Problem(f"cannot be read: {error.strerror or error}", str(path))]) from error
    except ValueError as error:
        raise DeclarationError([Problem(f"cannot be read: {error}", str(path))]) from error
    return parse_yaml(text, str(path))


def _read(text: str, path: str, first_line: int) -> tuple[Any, dict[str, int]]:
    import yaml

    make = _loader()
    line = 0
    try:
        if len(text) > BYTES:
            raise ValueError(f"longer than {BYTES} characters")
        survey = _Survey(path)
        for event in yaml.parse(text, Loader=make):
            line = event.start_mark.line + first_line if event.start_mark else line
            survey.take(event, line)
        if survey.problems:
            raise DeclarationError(survey.problems)
        line = 0
        loader = make(text)
        try:
            return loader.get_single_data(), survey.lines
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or error
        raise DeclarationError([_unreadable(what, path, mark.line + first_line if mark else 0)]) from error
    except (ValueError, OverflowError, RecursionError) as error:  # beyond a limit, or a date that is none
        raise DeclarationError([_unreadable(error, path, line)]) from error


@lru_cache(maxsize=1)
def _loader() -> Any:
    """A loader to which a key is a name, also if it is ``on``."""
    import yaml

    # libyaml's parser where PyYAML was built with it: ten times as fast.
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
                if key.tag == "tag:yaml.org,2002:bool":  # YAML 1.1 takes on, off, yes and no for truth values
                    key.tag = "tag:yaml.org,2002:str"
            return super().construct_mapping(node, deep)

    return Loader


def _unreadable(what: object, path: str, line: int) -> Problem:
    return Problem(f"not YAML: {' '.join(str(what).split())[:300]}", path, line)


@dataclass
class _Open:
    """A mapping or a list whose end has not come yet."""

    mapping: bool
    key: str
    anchor: str | None
    weight_before: int
    index: int = 0
    name: str | None = None
    seen: dict[str, int] = field(default_factory=dict)


class _Survey:
    """Takes in the parser's events: finds lines and double keys, and stops at the first thing that is beyond a limit.

    Attributes:
        lines: one-based line by dotted key.
        problems: the keys that stand twice.
    """

    def __init__(self, path: str) -> None:
        self.lines: dict[str, int] = {}
        self.problems: list[Problem] = []
        self._path = path
        self._open: list[_Open] = []
        self._weight = 0
        self._anchors: dict[str, int | None] = {}  # None: still open

    def take(self, event: Any, line: int) -> None:
        """One event.

        Raises:
            ValueError: the document is beyond a limit.
        """
        import yaml

        if isinstance(event, yaml.CollectionEndEvent):
            ended = self._open.pop()
            if ended.anchor:
                self._anchors[ended.anchor] = self._weight - ended.weight_before
        elif isinstance(event, yaml.NodeEvent):
            scalar = event.value if isinstance(event, yaml.ScalarEvent) else None
            key = self._place(scalar, line)
            before = self._weight
            self._weigh(event, scalar)
            if isinstance(event, yaml.CollectionStartEvent):
                if len(self._open) >= _DEPTH:
                    raise ValueError(f"nested deeper than {_DEPTH} levels")
                self._open.append(_Open(isinstance(event, yaml.MappingStartEvent), key, event.anchor, before))

    def _weigh(self, event: Any, scalar: str | None) -> None:
        import yaml

        if isinstance(event, yaml.AliasEvent):
            stands_for = self._anchors.get(event.anchor or "", 0)
            if stands_for is None:
                raise ValueError(f"the alias *{event.anchor} stands within what it stands for")
            self._weight += max(stands_for, 1)
        else:
            weight = 1 + len(scalar or "") // _TEXT_UNIT
            self._weight += weight
            if event.anchor:
                self._anchors[event.anchor] = weight if scalar is not None else None
        if self._weight > _VALUES:
            raise ValueError(f"more than {_VALUES} values, aliases counted as what they stand for")
        if scalar and event.implicit[0] and _NUMBER.match(scalar):
            raise ValueError("a number of more than a hundred digits: put it in quotes if it is text")

    def _place(self, scalar: str | None, line: int) -> str:
        """The dotted key of the node that begins; it is noted where it is."""
        if not self._open:
            return ""
        parent = self._open[-1]
        if not parent.mapping:
            key = f"{parent.key}.{parent.index}"
            parent.index += 1
            self.lines[key] = line
            return key
        if parent.name is not None:
            key = f"{parent.key}.{parent.name}" if parent.key else parent.name
            parent.name = None
            return key
        parent.name = scalar if scalar is not None else "?"
        if scalar is None:
            return f"{parent.key}.?"
        key = f"{parent.key}.{scalar}" if parent.key else scalar
        if scalar in parent.seen:
            self.problems.append(Problem(f"stands twice, first in line {parent.seen[scalar]}", self._path, line, key))
        parent.seen.setdefault(scalar, line)
        self.lines[key] = line
        return key
