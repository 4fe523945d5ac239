"""Memory files as other writers leave them, and what the tests about memory share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastjsonschema

_SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schemas"


def validator(name: str) -> Any:
    """The published schema of that name, compiled."""
    return fastjsonschema.compile(json.loads((_SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8")))


# As the template of the format shows it, before any program of ours or MDAN's wrote to it.
TEMPLATE: dict[str, Any] = {
    "agent": "architect",
    "displayName": "Ada Architect",
    "created_at": "2026-01-02T03:04:05Z",
    "last_updated": "2026-02-03T04:05:06Z",
    "sessions_participated": 3,
    "memories": [
        {
            "type": "preference",
            "content": "prefers a modular monolith over microservices",
            "source_session": "2026-02-03",
            "confidence": 0.8,
        },
        {"type": "context", "content": "the API is versioned by path", "source_session": "s-2", "confidence": 0.6},
    ],
    "relationships": {"agrees_with": ["dev"], "disagrees_with": [], "complements": ["ux"]},
    "decision_history": [
        {"dr_id": "DR-001", "role": "proponent", "position": "one repository", "outcome": "won"},
    ],
}

# As MDAN's own program writes it.
MDAN: dict[str, Any] = {
    **TEMPLATE,
    "memories": [
        {
            "id": "a1b2c3d4",
            "type": "observation",
            "content": "the queue drops messages above 64 KB",
            "confidence": 0.7,
            "tags": ["queue"],
            "source_session": "2026-03-01T10:00:00.000Z",
            "created_at": "2026-03-01T10:00:00.000Z",
            "last_reinforced_session": 2,
        },
    ],
}


def write(root: Path, agent: str, content: Any) -> Path:
    """Put a file where an agent's memory belongs."""
    path = root / "_mdan" / "state" / "sidecars" / f"{agent}.sidecar.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(data)
    return path
