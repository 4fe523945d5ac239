"""Reading an agent's screen: which of its lines are content, and which completed actions they show.

What blinks, ticks or turns is taken away first: spinners, timers, token counts, cursor and input box, status lines,
bullets. What the client itself, the user or a sidecar has written is no action of the agent, nor is its reasoning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sidecars.observer.observe.plain_text import plain

_BULLETS = "●⏺○◯◉◦•"
_RULE = re.compile(r"^\s*[─━═▔▁╭╰┌└][─━═▔▁╮╯┐┘ ]{8,}\s*$")
_BANNER = re.compile(r"[▐▛▜▌▝▘█▙▟]{2,}")
# A glyph that turns, a word of any language, an ellipsis; or the line that follows when the turn is over.
_SPINNER = re.compile(r"^\s*[^\w\s❯>$#(\[⎿]\s+\S+(?:…|\.\.\.)(?:\s*\(.*)?$")
_DONE = re.compile(r"^\s*[^\w\s❯>$#(\[⎿]\s+\w+ for (?:\d+[hms]\s*)+\s*$")
_STATUS = re.compile(
    r"esc to interrupt|shift\+tab to cycle|\? for shortcuts|tokens? (?:used|left)|context left"
    r"|^\s*⏵⏵|^\s*(?:⎿\s+)?Tip: "
)
_HINT = re.compile(r"\s*\((?:ctrl\+\w|esc)[^()]*(?:\([^()]*\)[^()]*)*\)")
_CLOCK = re.compile(r"\b\d{1,2}:\d{2}:\d{2}\b|\(\s*(?:\d+(?:\.\d+)?[hms]\s*)+[^()]*\)|[↑↓]\s*[\d.,]+k?\s*tokens")
_UNFINISHED = re.compile(r"^\s*(?:⎿\s+)?(?:Running|Waiting|Reading|Searching|Fetching|Thinking|Initializing)\b.*…")
_REASONING = re.compile(r"^\s*(?:∴|✻|✳)\s*Thinking|^\s*Thinking(?:…|\.\.\.)\s*$")
_OWN = re.compile(r"\[sidecar:[\w-]{1,64}\]|QUEUED NUDGE|</?system-reminder>")
_CALL = re.compile(rf"^(?:[{_BULLETS}]\s*|\s{{1,3}})([A-Z]\w*|mcp__\w+|[a-z]\w* - [\w ]+)\((.*)$")
_BULLET = re.compile(rf"^[{_BULLETS}]\s")
_PROMPT = re.compile(r"^\s*[❯>]\s")
_RESULT = re.compile(r"^\s*[⎿└]\s")
# A result's further lines are indented deeper than what the client says between actions ("Read 1 file").
_OUTSIDE = re.compile(r"^ {0,3}[^\s⎿└]")
_ADDED = re.compile(r"^\s*\d+ \+(.*)$")


@dataclass(frozen=True, slots=True)
class Action:
    """One completed tool call as the screen shows it.

    Args:
        tool: as the client names it.
        argument: what stands in the parentheses, possibly cut by the client.
        result: the lines below it.
        added: lines that a shown difference marks as new.
    """

    tool: str
    argument: str
    result: str
    added: str = ""


def content_lines(screen: str) -> list[str]:
    """The screen's lines without everything that changes by itself."""
    lines = []
    for raw in _without_others(_above_input(plain(screen).splitlines())):
        line = _CLOCK.sub("", _HINT.sub("", raw)).rstrip()
        if not any(chrome.search(line) for chrome in (_RULE, _BANNER, _SPINNER, _DONE, _STATUS)):
            lines.append(line)
    return lines


def _above_input(lines: list[str]) -> list[str]:
    """What stands above the input box or dialog: from its upper rule on, everything is the client's own."""
    rules = [at for at, line in enumerate(lines) if _RULE.match(line)]
    if not rules:
        return lines
    last = rules[-1]
    # The box has two rules with the prompt between them; a dialog has one.
    boxed = len(rules) > 1 and any(
        _PROMPT.match(line) or line.strip() in ("❯", ">") for line in lines[rules[-2] : last]
    )
    return lines[: rules[-2] if boxed else last]


def _without_others(lines: list[str]) -> list[str]:
    """Without sidecars' words, reminders and reasoning, each with the lines into which it is wrapped."""
    kept = []
    skipping = False
    for line in lines:
        if _OWN.search(line) or _REASONING.match(line):
            skipping = True
            continue
        if skipping and (not line.strip() or _BULLET.match(line) or _RESULT.match(line) or _PROMPT.match(line)):
            skipping = False
        if not skipping:
            kept.append(line)
    return kept


def is_structured(lines: list[str]) -> bool:
    """Whether the client marks its actions, so that they can be told from prose."""
    return any(_RESULT.match(line) for line in lines) or any(_BULLET.match(line) for line in lines)


def completed_actions(lines: list[str]) -> list[Action]:
    """The tool calls that have a result.

    Args:
        lines: from ``content_lines``.
    """
    actions: list[Action] = []
    header: list[str] = []
    result: list[str] = []
    for line in [*lines, "● "]:
        starts = _CALL.match(line)
        if starts or _BULLET.match(line) or _PROMPT.match(line) or (result and _OUTSIDE.match(line)):
            if header and result and (action := _action(header, result)):
                actions.append(action)
            header, result = ([line] if starts else []), []
        elif header and (result or _RESULT.match(line)):
            result.append(line)
        elif header and line.strip():
            header.append(line)
        elif header:
            header = []  # a call that nothing follows is still running
    return actions


def _action(header: list[str], result: list[str]) -> Action | None:
    if any(_UNFINISHED.match(line) for line in result):
        return None
    found = _CALL.match(header[0])
    assert found is not None  # noqa: S101 - it began the action
    argument = " ".join([found[2], *(line.strip() for line in header[1:])]).rstrip()
    added = [each[1] for line in result if (each := _ADDED.match(line))]
    words = "\n".join(re.sub(r"^\s*[⎿└]\s+", "", line).rstrip() for line in result if line.strip())
    return Action(found[1], argument.removesuffix(")").strip("\"'"), words, "\n".join(added))
