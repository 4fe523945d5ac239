"""What the agent's client does for the memory by itself: fold before compaction, save at the end, tell it anew after.

The client's context is rebuilt at a compaction, so what the prompt said of the memory is lost there unless it is told
again. The three events run one command, ``gt memory hook``.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from typing import Any

from sidecars.memory.briefing import polecat_briefing
from sidecars.memory.sessions import SessionId, save
from sidecars.memory.store import MemoryStore

# Seconds; the client allows 1.5 s for all hooks of SessionEnd unless an entry asks for more.
_TIMEOUT = 20
# After these a client's session goes on under another name.
_GOES_ON = ("clear", "resume")
# At these the context is new and the prompt that held the memory is gone.
_STARTS_ANEW = ("compact", "clear")


def memory_hooks(agent: str) -> dict[str, list[dict[str, Any]]]:
    """Entries for the ``hooks`` of a client's settings, by event.

    Args:
        agent: the agent's checked name.
    """
    handler = {
        "type": "command",
        # One line, which a client of any version runs; old ones know no "args". -P: the agent's working directory must
        # not be able to put its own modules in front of ours.
        "command": shlex.join([sys.executable, "-P", "-m", "witness.cli", "memory", "hook", agent]),
        "timeout": _TIMEOUT,
    }
    return {
        "SessionStart": [{"matcher": "|".join(_STARTS_ANEW), "hooks": [handler]}],
        "PreCompact": [{"hooks": [handler]}],
        "SessionEnd": [{"hooks": [handler]}],
    }


def with_memory_hooks(settings: Mapping[str, Any], agent: str) -> dict[str, Any]:
    """A client's settings with the memory's entries after those that it has."""
    hooks = {event: list(entries) for event, entries in settings.get("hooks", {}).items()}
    for event, entries in memory_hooks(agent).items():
        hooks[event] = [*hooks.get(event, []), *entries]
    return {**settings, "hooks": hooks}


def on_event(store: MemoryStore, agent: str, session: SessionId, event: Mapping[str, Any]) -> str:
    """Do what one of the client's events asks for.

    Args:
        store: the project's memories.
        agent: whose memory.
        session: the session that the client runs.
        event: the hook's input.

    Returns:
        What the agent is to be told; empty for nothing.
    """
    name = event.get("hook_event_name")
    if name == "SessionStart":
        return polecat_briefing(store.fold(agent)) if event.get("source") in _STARTS_ANEW else ""
    if name == "SessionEnd" and event.get("reason") not in _GOES_ON:
        save(store, agent, session)
    elif name in ("PreCompact", "SessionEnd"):
        store.fold(agent)
    return ""
