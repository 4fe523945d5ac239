"""Reading what is to be taken into a memory: a memory file, a JSON list of memories, or a markdown list.

The markdown form is that of the older agent memories of BMAD, where each point of a list is something remembered.
"""

from __future__ import annotations

import re
from typing import Any

from sidecars.memory.lenient_reader import parse, read_sidecar
from sidecars.memory.record import RELATIONSHIPS

_POINT = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(.+?)\s*$")
_HEADING = re.compile(r"^#+\s+(.*)$")
# What the points under a heading are, by a word in it.
_TYPES = (("prefer", "preference"), ("decision", "decision"), ("context", "context"), ("knowledge", "context"))


def read_import(data: bytes) -> dict[str, Any]:
    """Read a file that is to be taken into a memory.

    Returns:
        What a ``merge`` takes: memories, relationships and decision_history.

    Raises:
        ValueError: it is none of the three forms.
    """
    try:
        raw = parse(b'{"memories": ' + data + b"}") if data.lstrip().startswith(b"[") else parse(data)
    except ValueError as error:
        points = _points(data)
        if not points:
            raise ValueError(f"neither a memory file, nor a list of memories in JSON or markdown: {error}") from error
        raw = {"memories": points}
    read = read_sidecar(raw, "", "").sidecar
    return {
        # As they stand: each is understood by the rules when it is taken in.
        "memories": raw.get("memories") or [],
        "relationships": {kind: list(read.relationships[kind]) for kind in RELATIONSHIPS},
        "decision_history": [
            {"dr_id": each.dr_id, "role": each.role, "position": each.position, "outcome": each.outcome}
            for each in read.decision_history
        ],
    }


def _points(data: bytes) -> list[dict[str, str]]:
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        return []
    kind, points = "observation", []
    for line in lines:
        if heading := _HEADING.match(line):
            words = heading[1].casefold()
            kind = next((kind for word, kind in _TYPES if word in words), "observation")
        elif point := _POINT.match(line):
            points.append({"type": kind, "content": point[1].replace("**", "")})
    return points
