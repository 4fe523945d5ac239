"""How each client wants to be told of our hooks: its events and the form of one entry."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from witness.config.resources import hooks_dir

PROGRAM = "gt_hook.py"
# A hook of ours takes milliseconds; the client gives up on a hung one after this many seconds.
_TIMEOUT = 10
# A watch beside an idle prompt lasts as long as the agent may sit there.
_WATCH = 7 * 24 * 3600
# After this the agent sits at its prompt: a background hook waits beside it and wakes it when a nudge comes. Not after
# SessionStart, where some versions wait for a background hook before they show the prompt.
_RESTING = "Stop"
# The agent waits for a person. Nothing is delivered then; it is only recorded.
_ASKING = ("PermissionRequest", "Notification")

Handler = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Dialect:
    """What stands in one client's settings.

    Args:
        events: its events that we want to hear of.
        matched: those whose entries take a matcher, with it.
        handlers: makes the handlers of an event.
    """

    events: tuple[str, ...]
    matched: Mapping[str, str]
    handlers: Callable[[str], list[Handler]]

    def entries(self, event: str) -> list[dict[str, Any]]:
        """Our entries for an event."""
        entry: dict[str, Any] = {"hooks": self.handlers(event)}
        return [{"matcher": self.matched[event], **entry} if event in self.matched else entry]


def interpreter() -> str:
    """The interpreter that hooks run under: the base one, for hooks need nothing of a virtual environment."""
    return str(getattr(sys, "_base_executable", "") or sys.executable)


def hook_command(argument: str) -> list[str]:
    """The argument list that runs our hook."""
    return [interpreter(), "-S", "-I", str(hooks_dir() / PROGRAM), argument]


def _claude(event: str, as_string: bool = False) -> list[Handler]:
    def handler(argument: str, timeout: int) -> Handler:
        program, *args = hook_command(argument)
        if as_string:
            # Older clients know no args. The shell must not stay between the client and us: who calls is looked at.
            return {"type": "command", "command": f"exec {shlex.join([program, *args])}", "timeout": timeout}
        # The exec form: no shell in between, and none that could be missing or slow.
        return {"type": "command", "command": program, "args": args, "timeout": timeout}

    handlers = [handler(event, _TIMEOUT)]
    if event == _RESTING:
        handlers.append({**handler("Idle", _WATCH), "asyncRewake": True})
    return handlers


def _codex(event: str) -> list[Handler]:
    return [{"type": "command", "command": shlex.join(hook_command(event)), "timeout": _TIMEOUT}]


def _gemini(event: str) -> list[Handler]:
    command = shlex.join(hook_command(event))
    return [{"type": "command", "name": "gt-witness", "command": command, "timeout": _TIMEOUT * 1000}]


def _claude_string(event: str) -> list[Handler]:
    return _claude(event, as_string=True)


DIALECTS = {
    "claude": Dialect(
        events=(
            "PostToolUse",
            "PostToolUseFailure",
            "UserPromptSubmit",
            "SessionStart",
            "Stop",
            "SubagentStop",
            "SessionEnd",
            "PreCompact",
        ),
        matched={"PostToolUse": "*", "PostToolUseFailure": "*"},
        handlers=_claude,
    ),
    "codex": Dialect(
        # It does not tell how long a call took, so what a command did is looked for from its beginning on.
        events=("PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "Stop", "SubagentStop", "PreCompact"),
        matched={"PreToolUse": "Bash", "PostToolUse": "*"},
        handlers=_codex,
    ),
    "gemini": Dialect(
        # Not PreCompress: it comes before every request, compressed or not.
        events=("BeforeTool", "AfterTool", "BeforeAgent", "SessionStart", "AfterAgent", "SessionEnd"),
        matched={"BeforeTool": "run_shell_command", "AfterTool": "*"},
        handlers=_gemini,
    ),
}
# Claude Code of a version that knows no ``args``.
CLAUDE_AS_STRING = replace(
    DIALECTS["claude"],
    # Nor is it known whether they take the newer events.
    events=tuple(event for event in DIALECTS["claude"].events if event not in _ASKING),
    handlers=_claude_string,
)
