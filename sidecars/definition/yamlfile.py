"""Reading a YAML file so that each value can be named by file, line and key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from witness.errors import DeclarationError, Problem


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


@lru_cache(maxsize=32)
def parse_yaml(text: str, path: str, first_line: int = 1) -> Document:
    """Read a mapping from YAML text.

    The same text gives the same document, which nobody may change: a fork finds what its nursery has read.

    Args:
        text: the YAML.
        path: named in errors.
        first_line: the line of ``path`` at which ``text`` begins.

    Raises:
        DeclarationError: it is not YAML, holds a key twice, or is not a mapping.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)  # the one in C where there is one
    try:
        node = loader.get_single_node()
        values = loader.construct_document(node) if node else None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + first_line if mark else 0
        raise DeclarationError(
            [Problem(f"not YAML: {getattr(error, 'problem', None) or error}", path, line)]
        ) from error
    finally:
        loader.dispose()
    if values is None:
        return Document(path, {})
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise DeclarationError([Problem("must hold a mapping of names to values", path, first_line)])
    document = Document(path, values)
    problems: list[Problem] = []
    for key, line in _keys(node, "", first_line):
        if key in document.lines:
            problems.append(Problem(f"stands twice, first in line {document.lines[key]}", path, line, key))
        document.lines[key] = line
    if problems:
        raise DeclarationError(problems)
    return document


def _keys(node: Any, key: str, first: int) -> Iterator[tuple[str, int]]:
    """Every key below a node, dotted, with its line."""
    import yaml

    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            inner = f"{key}.{name.value}" if key else str(name.value)
            yield inner, name.start_mark.line + first
            yield from _keys(value, inner, first)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield f"{key}.{index}", value.start_mark.line + first
            yield from _keys(value, f"{key}.{index}", first)


def load_yaml(path: Path) -> Document:
    """Read a YAML file; a missing one is an empty document.

    Raises:
        DeclarationError: as ``parse_yaml``, or the file cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return Document(str(path), {})
    except (OSError, UnicodeDecodeError) as error:
        raise DeclarationError([Problem(f"cannot be read: {error}", str(path))]) from error
    return parse_yaml(text, str(path))
