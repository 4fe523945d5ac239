"""Answers that a carrier offered to a client without knowing whether they were used.

A command hook knows: what it printed is taken. A server that answers the mod does not, so the ledger says ``offered``
with the call's mark before the answer is sent and ``drained`` after. Here is what follows when it turns out that an
offer was not used, or when the carrier died in between. No import but the core, as in ``queue_files``.
"""

# pathlib and contextlib cost milliseconds at each tool call of each agent:
# ruff: noqa: PTH104
from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from witness.delivery import queue_files
else:
    import queue_files  # loaded by its path, as this file is

# How much of the ledger's end is searched for an offer; the call that it was made to is a moment old.
_OFFERS_TAIL = 1 << 20


def take_back(folder: str, call: str, reason: str) -> list[str]:
    """Let what was handed over under a mark wait again; it is known that it never arrived.

    Args:
        folder: the queue, whose lock the caller holds.
        call: the mark in the ledger (``tool_use_id``).
        reason: how it is known.

    Returns:
        The names of the files that wait again.
    """
    back: dict[str, dict[str, Any]] = {}
    for fact in _offers(folder):
        if fact["stage"] == "offered" and fact.get("tool_use_id") == call:
            back[fact["file"]] = fact
        elif fact["stage"] == "put-back":
            back.pop(fact["file"], None)
    found = [name for name in back if _wait_again(folder, name)]
    queue_files.log_all(folder, "put-back", [(name, back[name]) for name in found], reason, tool_use_id=call)
    return found


def _wait_again(folder: str, name: str) -> bool:
    for claimed in queue_files.claims(folder):
        if claimed.startswith(f"{name}{queue_files.CLAIM}"):
            return queue_files.put_back(folder, claimed)
    try:
        os.rename(f"{folder}/{queue_files.DONE}/{name}", f"{folder}/{name}")
    except FileNotFoundError:
        return False
    return True


def settle_offers(folder: str, taken: Iterable[str], delivered: Callable[[str, dict[str, Any]], bool]) -> None:
    """Decide about what a carrier had offered when it died, before it could say that it was drained.

    Args:
        folder: the queue, whose lock the caller holds: so a process that holds a claim is dead.
        taken: marks of the answers that the client has used.
        delivered: ``delivered(transcript, nudge)``, whether the agent has it according to its transcript.
    """
    used = frozenset(taken)
    offers = {fact["file"]: fact for fact in _offers(folder)}
    for claimed in queue_files.claims(folder):
        fact = offers.get(claimed.partition(queue_files.CLAIM)[0])
        if fact is not None and fact["stage"] == "drained":
            queue_files.finish(folder, claimed)
        if fact is None or fact["stage"] != "offered":
            continue
        nudge = queue_files.read(folder, claimed)
        if nudge is None:
            continue
        transcript, call = str(fact.get("transcript", "")), str(fact.get("tool_use_id", ""))
        if call in used or (transcript and delivered(transcript, nudge)):
            queue_files.log(
                folder, "drained", claimed, nudge, "used; its carrier died", transcript=transcript, tool_use_id=call
            )
            queue_files.finish(folder, claimed)
        elif queue_files.put_back(folder, claimed):
            queue_files.log(
                folder, "put-back", claimed, nudge, "its carrier died before the client used it", tool_use_id=call
            )


def _offers(folder: str) -> list[dict[str, Any]]:
    """The ledger's latest facts about offers, oldest first."""
    try:
        file = os.open(f"{folder}/{queue_files.LEDGER}", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return []
    with os.fdopen(file, "rb") as lines:
        lines.seek(max(0, os.fstat(file).st_size - _OFFERS_TAIL))
        found = []
        for line in lines:
            if b'"tool_use_id"' in line:
                try:
                    fact = queue_files.parse(line.strip())
                except (ValueError, StopIteration, RecursionError):
                    continue
                if isinstance(fact, dict) and isinstance(fact.get("file"), str) and fact.get("stage"):
                    found.append(fact)
        return found
