"""The words in which nudges reach the agent, and how they are known again in its transcript. No import but the core.

Facts under their sender's name, urgent ones first. The client frames them as its own reminder; command-like text would
trip its defences against injected instructions.
"""

# ruff: noqa: PTH123, PTH202 - loaded by hooks, where pathlib costs milliseconds
from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

# How much of a transcript's end is searched for what was just delivered.
TRANSCRIPT_TAIL = 8 << 20


def compose(nudges: Iterable[dict[str, Any]], dropped: int = 0) -> str:
    """The lines for the model: urgent ones first, and how many had to make room.

    Args:
        nudges: in the order of the queue.
        dropped: how many the agent never saw because too many waited.
    """
    lines = [line(nudge) for nudge in sorted(nudges, key=lambda nudge: nudge.get("priority") != "urgent")]
    if dropped:
        lines.append(f"[queue] {dropped} dropped: older notes made room because too many waited.")
    return "\n".join(lines)


def line(nudge: dict[str, Any]) -> str:
    """One nudge under its sender's name, unless it says itself whose it is."""
    message = clean(str(nudge["message"]))
    sender = clean(str(nudge.get("sender") or "unknown")).replace("\n", " ")[:64]
    text = message if message.startswith(f"[{sender}]") else f"[from {sender}] {message}"
    return f"Urgent: {text}" if nudge.get("priority") == "urgent" else text


def clean(text: str) -> str:
    """A message as it is handed over: no control characters, nothing that opens or closes the client's own markup."""
    kept = "".join(char for char in text if (char >= " " and not "\x7f" <= char <= "\x9f") or char in "\n\t")
    kept = kept.encode("utf-8", "replace").decode()
    for word in ("system-reminder", "user-prompt-submit-hook", "command-name"):
        kept = kept.replace(f"<{word}", f"‹{word}").replace(f"</{word}", f"‹/{word}")
    return kept.strip()


def as_written(text: str) -> bytes:
    """Cleaned text as the client writes it into its transcript: JSON without escapes for other scripts."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t").encode()


def in_transcript(path: str, nudge: dict[str, Any]) -> bool:
    """Whether the end of the transcript holds the message as given to the model.

    The client also writes down what a hook printed; that alone proves nothing, so such lines do not count.
    """
    wanted = as_written(clean(nudge["message"]))
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - TRANSCRIPT_TAIL))
            return any(wanted in line and b'"hook_success"' not in line for line in file)
    except OSError:
        return False
