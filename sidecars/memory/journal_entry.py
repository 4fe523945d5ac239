"""One line of an agent's journal, and what it makes of a memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sidecars.memory.record import Memory, Sidecar
from witness.errors import UsageError


class RuleError(UsageError):
    """What was asked for breaks a rule of the memory protocol; nothing was written."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the journal.

    Args:
        id: unique; an entry is applied once.
        at: ISO date.
        session: in which session it happened.
        op: one of ``OPERATIONS``.
        data: what the operation needs.
    """

    id: str
    at: str
    session: str
    op: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Applied:
    """What an entry made of a memory.

    Args:
        sidecar: the memory after it.
        note: one line about what happened, for the person or agent that asked.
        memory: the memory that was added or reinforced, if the entry was about one.
        refused: what of several things broke a rule and was left out, one line each.
    """

    sidecar: Sidecar
    note: str = ""
    memory: Memory | None = None
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """An entry of the journal that no longer fits the memory, and why."""

    entry: Entry
    reason: str


def entry_to_line(entry: Entry) -> bytes:
    """The entry as the journal holds it: between two newlines, so that a torn line spoils only itself.

    Plain ASCII: what a shell hands over need not be UTF-8, and half a character must not stop an addition.
    """
    return f"\n{json.dumps(asdict(entry))}\n".encode()


def entries_of(data: bytes) -> tuple[Entry, ...]:
    """Read a journal; lines that were torn by a crash are skipped."""
    entries = []
    for line in data.splitlines():
        try:
            raw = json.loads(line)
            entries.append(Entry(raw["id"], raw["at"], raw["session"], raw["op"], dict(raw.get("data") or {})))
        except (ValueError, KeyError, TypeError):
            continue
    return tuple(entries)
