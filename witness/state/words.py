"""A polecat's state in a few words, for every view."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from witness.state.records import wall_of

# What an agent waits at, in words.
PLACES = {
    "trust": "waits at the folder dialog",
    "login": "waits for a login",
    "onboarding": "waits at the first-start dialogs",
    "permission": "waits for a permission",
    "question": "waits for an answer",
    "mcp": "waits at the dialog of an MCP server",
    "limit": "waits: its limit is reached",
    "network": "waits for the network",
}


def activity_words(state: Mapping[str, Any]) -> str:
    """What an agent does, in a few words."""
    if state.get("paused"):
        return f"paused for {length(time.time() - wall_of(state['paused']))}: gt polecat resume {state['polecat']}"
    waiting = state["waiting"]
    if waiting:
        since = f" for {length(time.time() - wall_of(waiting['since']))}" if waiting["since"] else ""
        return f"{PLACES.get(waiting['for'], 'waits')}{since}" + (
            f": {waiting['question']}" if waiting["question"] else ""
        )
    if state["activity"] == "unknown":
        return f"unknown: {state['why']}"
    since = f" for {length(time.time() - wall_of(state['since']))}" if state["since"] else ""
    return str(state["activity"]) + since + (f": {state['why']}" if state["activity"] == "stuck" else "")


def length(seconds: float) -> str:
    """A length of time in its two largest units."""
    whole = max(int(seconds), 0)
    for unit, size, below, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit}" + (f" {rest} {below}" if rest else "")
    return f"{whole} s"
