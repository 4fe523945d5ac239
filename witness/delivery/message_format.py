"""The words in which nudges reach the agent, and how they are known again in its transcript. No import but the core.

Facts under their sender's name, urgent ones first. The client frames them as its own reminder; command-like text would
trip its defences against injected instructions.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

# How much of a transcript's end is searched for what was just delivered.
TRANSCRIPT_TAIL = 8 << 20
# The longest message: with its frame it stays below what the client hands on, however long it was written.
LONGEST = 9_000


# What marks our own lines and the client's markup. Brackets have look-alikes, and letters can be spelled with blanks,
# dashes, other cases and signs that nobody sees in between; a model reads all of these alike.
_MARKUP = ("systemreminder", "userpromptsubmithook", "command", "localcommand", "functioncalls", "invoke", "antml")
_OWN = ("sidecar", "from", "queue")
_TAGS, _BRACKETS = "<\uff1c\ufe64", "[\uff3b"
_SPELLING = 80


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
    sender = " ".join(defuse(str(nudge.get("sender") or "unknown")).replace("]", ")").split())[:64]
    if sender.startswith("sidecar:") and message.startswith((f"[{sender}]", f"[{sender},")):
        text = message
    else:
        text = f"[from {sender}] {defuse(message)}"
    return f"Urgent: {text}" if nudge.get("priority") == "urgent" else text


def clean(text: str) -> str:
    """A message as it is handed over: no control characters, no sign that nobody sees, nothing that opens or closes the
    client's own markup or another of our lines. The prefix that it begins with is kept; ``line`` knows whose it is."""
    text = _visible(text).strip()
    head = text.find("]") + 1 if text.startswith("[sidecar:") else 0
    return _cut(text[:head] + defuse(text[head:]))


def defuse(text: str) -> str:
    """A text in which no tag and no prefix of ours is spelled; the brackets of such are replaced by look-alikes."""
    text = _visible(text)
    kept, end = [], 0
    for at, sign in enumerate(text):
        if sign in _TAGS and _is_tag(text[at + 1 : at + 1 + _SPELLING]):
            kept += [text[end:at], "\u2039"]
            end = at + 1
        elif sign in _BRACKETS and _letters(text[at + 1 : at + 1 + _SPELLING]).startswith(_OWN):
            kept += [text[end:at], "("]
            end = at + 1
    return "".join(kept) + text[end:]


def _is_tag(rest: str) -> bool:
    return _letters(rest).startswith(_MARKUP)


def _letters(text: str) -> str:
    """The letters by which a word is recognised, however it is spelled."""
    folded = "".join(chr(ord(char) - 0xFEE0) if "\uff01" <= char <= "\uff5e" else char for char in text)
    return "".join(char for char in folded.lower() if char.isalnum())


def _visible(text: str) -> str:
    kept = "".join(char for char in text if ((char >= " " and not "\x7f" <= char <= "\x9f") or char in "\n\t") and not _hidden(char))  # noqa: E501 # fmt: skip
    return kept.encode("utf-8", "replace").decode()


def _hidden(char: str) -> bool:
    """Signs without width, and those that turn the direction of writing."""
    return char > "\x7f" and (
        char in "\u00ad\u061c\u180e\ufeff"
        or "\u200b" <= char <= "\u200f"
        or "\u202a" <= char <= "\u202e"
        or "\u2060" <= char <= "\u206f"
        or "\U000e0000" <= char <= "\U000e007f"
    )


def _cut(text: str) -> str:
    """At most LONGEST of the client's units (those of UTF-16): of more the model would see a preview in a file."""
    units = text.encode("utf-16-le")
    if len(units) <= 2 * LONGEST:
        return text
    return units[: 2 * LONGEST].decode("utf-16-le", "ignore") + f" … [{len(units) // 2 - LONGEST} characters cut]"


def as_written(text: str) -> bytes:
    """Cleaned text as the client writes it into its transcript: JSON without escapes for other scripts."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t").encode()


def in_transcript(path: str, nudge: dict[str, Any]) -> bool:
    """Whether the end of the transcript holds the message as given to the model.

    The client also writes down what a hook printed; that alone proves nothing, so such lines do not count.
    """
    return is_among(tail(path), nudge)


def is_among(lines: list[bytes], nudge: dict[str, Any]) -> bool:
    """``in_transcript`` for lines that were read already."""
    wanted = as_written(clean(nudge["message"]))
    return any(wanted in line and b'"hook_success"' not in line for line in lines)


def tail(path: str) -> list[bytes]:
    """The last lines of a transcript; none where it is no regular file, whatever else it is."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError):
        return []
    try:
        status = os.fstat(file)
        if status.st_mode & 0o170000 != 0o100000:
            return []
        at, end, parts = max(0, status.st_size - TRANSCRIPT_TAIL), status.st_size, []
        while at < end and (part := os.pread(file, min(end - at, 1 << 20), at)):
            parts.append(part)
            at += len(part)
    except OSError:
        return []
    finally:
        os.close(file)
    return b"".join(parts).splitlines()
