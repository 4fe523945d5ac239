"""The archive of an agent's memory: what its file no longer holds.

A memory leaves the file when there are too many, when it has faded, or when a newer one replaced it. Each becomes one
line of ``{agent}.archive.jsonl`` before the file is written without it, so a crash in between leaves it in both places
and never in none. A memory that stands in the file again is no longer shown as archived, whatever the archive says;
one that is restored or purged is taken out of it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sidecars.memory.lenient_reader import read_memory
from sidecars.memory.record import Dropped, memory_to_json, sameness
from witness.errors import NotFoundError
from witness.files import parse_json


def to_lines(dropped: Iterable[Dropped]) -> bytes:
    """Dropped memories as the archive holds them, each between two newlines: a torn line spoils only itself."""
    return b"".join(f"\n{json.dumps(_to_json(each))}\n".encode() for each in dropped)


def _to_json(each: Dropped) -> dict[str, Any]:
    return {"at": each.at, "why": each.why, "memory": memory_to_json(each.memory)}


def of_lines(data: bytes, live: Collection[str] = ()) -> tuple[Dropped, ...]:
    """Read an archive; what is written twice is there once, the later line counts.

    Args:
        data: its bytes; lines that cannot be read are passed over, conflict marks of git among them.
        live: what stands in the memory file itself, as ``sameness`` of the contents.
    """
    found: dict[str, Dropped] = {}
    for line in data.splitlines():
        try:
            raw = parse_json(line)
        except ValueError:
            continue
        memory = read_memory(raw.get("memory"), "", 1 << 31, "", []) if isinstance(raw, dict) else None
        if memory is not None and sameness(memory.content) not in live:
            key = sameness(memory.content)
            found.pop(key, None)
            found[key] = Dropped(memory, str(raw.get("why") or ""), str(raw.get("at") or ""))
    return tuple(found.values())


def find(archive: Iterable[Dropped], given: str) -> Dropped:
    """The archived memory whose id is, or alone begins with, what was given.

    Raises:
        NotFoundError: none, or several.
    """
    archive = tuple(archive)
    exact = [each for each in archive if each.memory.id == given]
    found = exact or [each for each in archive if given and each.memory.id.startswith(given)]
    if len(found) != 1:
        raise NotFoundError("memory in the archive", given, "several begin so" if found else "")
    return found[0]


def view(each: Dropped) -> Mapping[str, Any]:
    """An archived memory for people and programs."""
    return {**memory_to_json(each.memory), "archived_at": each.at, "why": each.why}
