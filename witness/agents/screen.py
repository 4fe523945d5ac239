"""What the bottom of a client's screen shows: an idle prompt, a half-typed one, work, or a dialog and what it asks.

The one recogniser: typing goes by it, and so does the town's state. What is not known for certain is UNKNOWN,
for the answer that lets somebody act must never be the default.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from witness.agents.clients import Client

_STYLE = re.compile(r"\x1b\[([0-9;:]*)m")
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_RULE = re.compile(r"^[─━═-]{20,}")
_FOOT = 15
# A line that says that something is under way: a word with an ellipsis behind it, and counters after that at most. Each
# client has other words for it and other glyphs before them.
_UNDER_WAY = re.compile(r"\w(?:…|\.\.\.)(?:\s*\([^()]*\))?\s*$")
# A spinner turns while something runs, whatever stands beside it.
_SPINNER = re.compile(r"^\s*[\u2801-\u28ff✢✽✶✻✳]\s|^[·*]\s")
# A numbered choice, and the one that is pointed at.
_CHOICE = re.compile(r"^[\s│┃|]*(?P<mark>[❯›▶➤●>*]?)\s*\d{1,2}[.)]\s+\S")
_DIALOG_LINES = 40
_QUESTION_LONGEST = 300
_TITLE_LINES = 4
_BOXES = ("☐", "☒", "☑", "✔")


class PromptState(StrEnum):
    """What the bottom of a screen shows."""

    IDLE = "idle"
    BUSY = "busy"
    TYPED = "half-typed"
    DIALOG = "dialog"
    UNKNOWN = "unknown"


class WaitsFor(StrEnum):
    """What an agent waits for a person to decide or to mend."""

    TRUST = "trust"
    LOGIN = "login"
    ONBOARDING = "onboarding"
    PERMISSION = "permission"
    QUESTION = "question"
    MCP = "mcp"
    LIMIT = "limit"
    NETWORK = "network"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What was read from a screen.

    Args:
        state: what it shows.
        typed: what stands in the prompt.
        waits_for: of a dialog: what is to be decided.
        question: of a dialog: what it asks, in one line.
    """

    state: PromptState
    typed: str = ""
    waits_for: WaitsFor | None = None
    question: str = ""


# What a dialog is about, by the words of its text; the first row that matches. A dialog without any of them is a
# question. The words of a command that is asked about must not decide, so the question itself is looked at first.
_WORDS = {
    WaitsFor.LIMIT: r"\blimit (reached|to reset|resets)|usage limit|rate limit|out of (credits?|quota|extra usage)"
    r"|hit your .{0,20}limit|quota (exceeded|reached)",
    WaitsFor.MCP: r"\bMCP servers?\b",
    WaitsFor.LOGIN: r"log ?in (method|with|to\b)|logged out|\bsign in\b|\blogin\b|API key|paste (the )?code"
    r"|auth(entication|enticate|orization code)\b",
    WaitsFor.TRUST: r"\btrust\b|accessing workspace",
    WaitsFor.ONBOARDING: r"text style|\btheme\b|let.s get started|terminal setup|security notes|\bI accept\b|terms of",
    WaitsFor.NETWORK: r"unable to connect|connection (error|refused|lost)|network error|\boffline\b",
    WaitsFor.PERMISSION: r"(?<!what )do you want to\b|would you like to (run|make|apply|allow|execute)"
    r"|requires? approval|needs? permission|\bpermission\b|\ballow\b|\bapprove\b|waiting for user confirmation"
    r"|yes, and don.t ask again",
}
_KINDS = tuple((kind, re.compile(words, re.IGNORECASE)) for kind, words in _WORDS.items())
# Trouble that a client shows while it has no dialog up, and that it does not get over by itself.
_TROUBLE: tuple[tuple[WaitsFor, re.Pattern[str]], ...] = (
    (WaitsFor.LOGIN, re.compile(r"(please run /login|invalid api key|not logged in)", re.IGNORECASE)),
    (WaitsFor.LIMIT, re.compile(r"(usage|session|weekly|\d-hour) limit reached|hit your .{0,20}limit", re.IGNORECASE)),
    (WaitsFor.NETWORK, re.compile(r"unable to connect|connection (error|refused)|retrying in \d", re.IGNORECASE)),
)


def read_prompt(screen: str, client: Client) -> Prompt:
    """What the bottom of a screen shows.

    Args:
        screen: the visible screen with its styles, as ``Tmux.screen`` gives it.
        client: whose screen it is.
    """
    styled = screen.rstrip().split("\n")
    lines = [_ESCAPE.sub("", line) for line in styled]
    foot = "\n".join(lines[-_FOOT:])
    if any(sign in foot for sign in client.busy) and not _is_menu(lines[-_FOOT:]):
        return Prompt(PromptState.BUSY)
    place = _find_prompt(lines, client)
    if place < 0:
        if _is_menu(lines[-_FOOT:]) or any(sign in foot for sign in client.dialog):
            return _dialog(lines)
        return Prompt(PromptState.UNKNOWN)
    typed = _typed(styled, lines, place, client)
    if typed:
        return Prompt(PromptState.TYPED, typed)
    return Prompt(PromptState.IDLE if _at_rest(lines, place, client) else PromptState.UNKNOWN)


def read_trouble(screen: str) -> Prompt | None:
    """What an agent that is not at work complains of: no login, no quota, no network; None when it does not.

    Args:
        screen: the visible screen, with or without styles.
    """
    lines = [line for line in map(str.strip, plain(screen).split("\n")) if line]
    for line in reversed(lines[-_FOOT:]):
        for kind, words in _TROUBLE:
            if words.search(line):
                return Prompt(PromptState.UNKNOWN, waits_for=kind, question=_bounded(line.lstrip("⎿●✗×⚠ \u00a0")))
    return None


def plain(screen: str) -> str:
    """A screen as text: without styles, other escapes and control characters."""
    return _CONTROL.sub("", _ESCAPE.sub("", screen))


def _is_menu(lines: Sequence[str]) -> bool:
    """Whether numbered choices stand there of which one is pointed at."""
    choices = [found for line in lines if (found := _CHOICE.match(line))]
    return len(choices) > 1 and any(found["mark"] for found in choices)


def _dialog(lines: list[str]) -> Prompt:
    tail = lines[-_DIALOG_LINES:]
    # Its own frame, where it has one, keeps what the agent has said before out of it.
    rules = [place for place, line in enumerate(tail) if _RULE.match(line.strip("╭╮╰╯│ "))]
    choice = next((place for place, line in enumerate(tail) if _CHOICE.match(line)), len(tail))
    above = [place for place in rules if place < choice]
    own = tail[above[-1] + 1 :] if above else tail
    text = [line.strip(" │┃|\u00a0") for line in own if line.strip(" │┃|\u00a0")]
    first = next((place for place, line in enumerate(text) if _CHOICE.match(line)), len(text))
    asked = [line for line in text[:first] if line.endswith(("?", "？"))]
    question = core = asked[-1] if asked else (text[first - 1] if first else "")
    if above and asked and not _says_what(core):
        question = " · ".join([*text[: text.index(core)][:_TITLE_LINES], core])
    return Prompt(PromptState.DIALOG, waits_for=_kind(core, text), question=_bounded(question))


def _says_what(question: str) -> bool:
    """Whether a question can be understood by itself; 'Do you want to proceed?' needs the dialog's title."""
    return len(question.split()) > 6


def _kind(question: str, text: Sequence[str]) -> WaitsFor:
    # What the agent itself asks is headed by boxes, and may be about anything.
    if any(line.startswith(_BOXES) for line in text):
        return WaitsFor.QUESTION
    for passage in (question, "\n".join(text)):
        for kind, words in _KINDS:
            if words.search(passage):
                return kind
    return WaitsFor.QUESTION


def _bounded(text: str) -> str:
    text = " ".join(_CONTROL.sub("", text).split())
    return text if len(text) <= _QUESTION_LONGEST else f"{text[: _QUESTION_LONGEST - 1]}…"


def _at_rest(lines: list[str], place: int, client: Client) -> bool:
    """Whether an empty prompt shows that its agent rests: a known sign of it, and nothing above that is under way."""
    top = place - 1 if client.framed else place
    above = next((line for line in reversed(lines[:top]) if line.strip()), "")
    if client.done and client.done.search(above):
        return True
    if _UNDER_WAY.search(above) or _SPINNER.match(above):
        return False
    return not client.rest or any(sign in line for line in lines[place + 1 :] for sign in client.rest)


def _find_prompt(lines: list[str], client: Client) -> int:
    if client.prompt is None:
        return -1
    for place in range(len(lines) - 1, -1, -1):
        if not client.prompt.match(lines[place]):
            continue
        if not client.framed:
            # A choice that is pointed at looks like a prompt in which a number was typed.
            return -1 if _CHOICE.match(lines[place]) and _is_menu(lines[-_FOOT:]) else place
        above = place > 0 and _RULE.match(lines[place - 1])
        return place if above and any(_RULE.match(line) for line in lines[place + 1 :]) else -1
    return -1


def _typed(styled: list[str], lines: list[str], place: int, client: Client) -> str:
    assert client.prompt is not None  # noqa: S101
    bare = _ESCAPE.sub("", _without_dim(styled[place]))
    found = client.prompt.match(bare)
    parts = [found[1] if found else ""]
    if client.framed:
        for line in lines[place + 1 :]:
            if _RULE.match(line):
                break
            parts.append(line)
    typed = " ".join(part.replace("\u00a0", " ").strip() for part in parts).strip()
    return "" if typed in client.placeholders else typed


def _without_dim(line: str) -> str:
    """The line without what is drawn dim: hints that nobody typed."""
    kept, dim, end = [], False, 0
    for found in _STYLE.finditer(line):
        if not dim:
            kept.append(line[end : found.start()])
        end = found.end()
        for code in (found[1] or "0").split(";"):
            if code == "2":
                dim = True
            elif code in ("0", "22", ""):
                dim = False
    if not dim:
        kept.append(line[end:])
    return "".join(kept)
