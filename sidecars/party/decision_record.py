"""Decision records, ``mdan_output/decisions/DR-NNN.json``: numbered, written once, never overwritten."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from witness.errors import UsageError

FOLDER = Path("mdan_output") / "decisions"
_ID = re.compile(r"DR-(\d{3,9})")


def is_decision_id(value: Any) -> bool:
    """Whether it may name a record: it becomes a file name, so nothing else may stand in it."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def write_decision(root: Path, content: Mapping[str, Any], given: str = "") -> str:
    """Write a record.

    Args:
        root: the project's root.
        content: the record without its id.
        given: the id that it must have; the next free one when empty.

    Returns:
        Its id.

    Raises:
        UsageError: ``given`` is no id, or another record has it.
    """
    if given and not is_decision_id(given):
        raise UsageError(f"{given!r} is not the id of a decision record: write it like DR-001")
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    # The end of a party that crashed is told again: what it has written already is not written twice.
    if not given and (known := _same(folder, content)):
        return known
    while True:
        name = given or _next(folder)
        path = folder / f"{name}.json"
        data = (json.dumps({"id": name, **content}, ensure_ascii=False, indent=2) + "\n").encode()
        try:
            _create(path, data)
        except FileExistsError:
            if not given:
                continue  # somebody took the number meanwhile
            if path.read_bytes() == data:
                return name
            raise UsageError(f"{path} is another decision: leave the id out to get the next free one") from None
        return name


def _next(folder: Path) -> str:
    taken = [
        int(match[1]) for path in folder.iterdir() if (match := _ID.fullmatch(path.stem)) and path.suffix == ".json"
    ]
    return f"DR-{max(taken, default=0) + 1:03d}"


def _same(folder: Path, content: Mapping[str, Any]) -> str:
    for path in sorted(folder.glob("DR-*.json")):
        try:
            raw = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(raw, dict) and {**raw, "id": ""} == {"id": "", **content}:
            return path.stem
    return ""


def _create(path: Path, data: bytes) -> None:
    # Whole or not at all: a link fails where the name is taken, a rename would overwrite it.
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
