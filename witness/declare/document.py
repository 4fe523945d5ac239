"""A formula file as it stands on the disk: its keys and values, and the line of each."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from witness.declare.source import Place, Source, dotted, json_lines, line_of, toml_lines
from witness.errors import DeclarationError, Problem

# The largest formula that Gas Town ships has 60 KB; past this it is some other file, named by mistake.
MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Document:
    """What a formula file holds.

    Args:
        path: the file.
        raw: its keys and values, unchecked.
        lines: the line of each place in it.
        json: whether it is a JSON formula; there a variable must be an object.
    """

    path: Path
    raw: Mapping[str, Any]
    lines: Mapping[Place, int]
    json: bool = False

    def source(self, *place: str | int) -> Source:
        """Where ``place`` stands, as ``source("vars", "sidecars")``."""
        return Source(str(self.path), line_of(self.lines, place), dotted(place))


def read_document(path: Path) -> Document:
    """Read a TOML or JSON formula; a byte order mark and CRLF line ends are accepted.

    Raises:
        DeclarationError: it cannot be read, is neither TOML nor JSON, or holds no table.
    """
    text = _read_text(path)
    if path.suffix == ".json":
        raw, lines = _load_json(path, text), json_lines
    else:
        raw, lines = _load_toml(path, text), toml_lines
    if not isinstance(raw, dict):
        raise DeclarationError([Problem("not a formula: a JSON object is expected", str(path), 1)])
    return Document(path, raw, lines(text), path.suffix == ".json")


def _read_text(path: Path) -> str:
    try:
        if path.is_file() and path.stat().st_size > MAX_BYTES:
            raise DeclarationError([Problem(f"not a formula: larger than {MAX_BYTES} bytes", str(path))])
        data = path.read_bytes()
    except OSError as error:
        raise DeclarationError([Problem(f"cannot be read: {error.strerror}", str(path))]) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DeclarationError([Problem("not UTF-8 text: save the file as UTF-8", str(path), line)]) from error


def _load_toml(path: Path, text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+)", str(error))
        line = int(found.group(1)) if found else text.count("\n") + 1
        reason = str(error).partition(" (at ")[0]
        raise DeclarationError([Problem(f"not TOML: {reason}", str(path), line)]) from error
    except RecursionError as error:
        raise DeclarationError([Problem("not TOML: nested too deeply", str(path))]) from error


def _load_json(path: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DeclarationError([Problem(f"not JSON: {error.msg}", str(path), error.lineno)]) from error
    except RecursionError as error:
        raise DeclarationError([Problem("not JSON: nested too deeply", str(path))]) from error
