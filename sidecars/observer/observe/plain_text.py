"""Taking out of what was seen what the agent did not do itself: our own words, reminders of the client, escapes."""

from __future__ import annotations

import re
import unicodedata

_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL | re.IGNORECASE)
# Our own line ends at the next blank line or at the next line of somebody else's queue block.
_OWN_LINE = re.compile(r"^.*\[sidecar:[A-Za-z0-9_-]{1,64}\].*$\n?", re.MULTILINE)
# CSI and OSC sequences, then any other escape with its one following byte.
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]?")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def without_own_words(text: str) -> str:
    """Remove ``[sidecar:…]`` lines and system reminders."""
    if "<system-reminder" in text.lower():
        text = _REMINDER.sub("", text)
    return _OWN_LINE.sub("", text) if "[sidecar:" in text else text


def plain(text: str) -> str:
    """Remove terminal escapes and control characters, and put composed characters into one form."""
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    text = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def excerpt(text: str, limit: int) -> tuple[str, bool]:
    """Keep the beginning and the end of a text that is too long.

    Returns:
        (text of about ``limit`` characters at most, whether something was left out).
    """
    if len(text) <= limit:
        return text, False
    head = limit * 2 // 3
    return f"{text[:head]}\n… {len(text) - limit} characters left out …\n{text[head - limit :]}", True
