"""A stand-in for a coding agent: no model, but real work in a real pane, and the same hooks with the same JSON.

    scripted_agent.py        (reads GT_WITNESS_SETTINGS, the settings file that the client would be given)

It works off a fixed list of steps in its working directory. After each tool call it runs the hooks that the settings
name, as Claude Code does: the event as JSON on standard input, one JSON object or nothing on standard output. What a
hook adds is shown, and acted on: an edit that turns out to be out of scope is taken back before the next step.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Long enough for a person to follow; the tests set it to nothing.
_PAUSE = float(os.environ.get("SCRIPTED_AGENT_PAUSE", "2.5"))
_HOOK_SECONDS = 10
_BEFORE = 'check_between(len(lines), 1, 50, "lines_count", "lines")\n'
_AFTER = (
    _BEFORE
    + """    for at, line in enumerate(lines):
        check_between(line.get("quantity"), 1, 99, "quantity_range", f"lines.{at}.quantity")
"""
)


@dataclass
class Agent:
    """One session of the stand-in.

    Args:
        settings: the client's settings, with the hooks.
        transcript: where the session is recorded, as the client does it.
    """

    settings: dict[str, Any]
    transcript: Path
    session: str = field(default_factory=lambda: str(uuid.uuid4()))
    told: list[str] = field(default_factory=list)

    def fire(self, event: str, **payload: Any) -> None:
        """Run the hooks of an event and keep what they add."""
        whole = {
            "session_id": self.session,
            "transcript_path": str(self.transcript),
            "cwd": str(Path.cwd()),
            "permission_mode": "acceptEdits",
            "hook_event_name": event,
            **payload,
        }
        for entry in self.settings.get("hooks", {}).get(event, []):
            for handler in entry["hooks"]:
                self._take(event, _run_hook(handler, whole))

    def _take(self, event: str, output: str) -> None:
        if not output.strip():
            return
        added = json.loads(output).get("hookSpecificOutput", {}).get("additionalContext", "")
        if not added:
            return
        self.told.append(added)
        self._record({"type": "attachment", "attachment": {"type": "hook_additional_context", "content": [added],
                                                           "hookEvent": event}})  # fmt: skip
        for line in added.splitlines():
            if "[sidecar:" in line:
                _say(f"  ⎿  {line.strip()}", "33")

    def _record(self, entry: dict[str, Any]) -> None:
        with self.transcript.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"sessionId": self.session, **entry}, ensure_ascii=False) + "\n")

    def tool(self, name: str, shown: str, given: dict[str, Any], act: Callable[[], str]) -> bool:
        """Do one tool call and fire its hooks; True when a sidecar spoke up."""
        time.sleep(_PAUSE)
        _say(f"● {name}({shown})", "36")
        call = f"toolu_{uuid.uuid4().hex[:20]}"
        before = len(self.told)
        try:
            result, event = act(), "PostToolUse"
        except (OSError, subprocess.CalledProcessError) as error:
            result, event = str(error), "PostToolUseFailure"
        for line in result.splitlines()[:3]:
            _say(f"  ⎿  {line}", "2")
        outcome = {"tool_response": {"stdout": result}} if event == "PostToolUse" else {"error": result}
        self.fire(event, tool_name=name, tool_input=given, tool_use_id=call, **outcome)
        return len(self.told) > before


def _run_hook(handler: dict[str, Any], payload: dict[str, Any]) -> str:
    argv = [handler["command"], *handler["args"]] if "args" in handler else ["sh", "-c", handler["command"]]
    done = subprocess.run(
        argv, input=json.dumps(payload), capture_output=True, text=True, timeout=_HOOK_SECONDS, check=False
    )
    return done.stdout


def _say(text: str, colour: str = "0") -> None:
    sys.stdout.write(f"\x1b[{colour}m{text}\x1b[0m\n")
    sys.stdout.flush()


def _read(agent: Agent, name: str) -> None:
    path = Path(name)
    agent.tool("Read", name, {"file_path": str(path.resolve())}, lambda: f"Read {len(path.read_text())} characters")


def _edit(agent: Agent, name: str, old: str, new: str) -> bool:
    path = Path(name)

    def act() -> str:
        path.write_text(path.read_text().replace(old, new, 1))
        return f"Updated {name}"

    given = {"file_path": str(path.resolve()), "old_string": old, "new_string": new}
    return agent.tool("Edit", name, given, act)


def _bash(agent: Agent, command: list[str], shown: str) -> None:
    def act() -> str:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        return (done.stdout + done.stderr).strip()[-400:]

    agent.tool("Bash", shown, {"command": shown}, act)


def main() -> int:
    """Work the steps off; 0 when all were done."""
    settings = json.loads(Path(os.environ["GT_WITNESS_SETTINGS"]).read_text())
    agent = Agent(settings, Path(os.environ["GT_WITNESS_SETTINGS"]).with_name("transcript.jsonl"))
    _say("scripted agent: no model, the same hooks", "1")
    agent.fire("SessionStart", source="startup")
    agent.fire("UserPromptSubmit", prompt=" ".join(sys.argv[1:]) or "fix the issue")
    _read(agent, "docs/issue.md")
    _read(agent, "orders/service.py")
    _edit(agent, "orders/service.py", _BEFORE, _AFTER)
    invoice = "billing/invoice.py"
    if _edit(agent, invoice, '"""Invoices as text."""', '"""Invoices as plain text."""'):
        _say("● That file is not mine to change: I take the edit back.", "0")
        _edit(agent, invoice, '"""Invoices as plain text."""', '"""Invoices as text."""')
    _bash(agent, [sys.executable, "-m", "unittest", "-q"], "python3 -m unittest -q")
    agent.fire("Stop", stop_hook_active=False, last_assistant_message="done")
    if not os.environ.get("SCRIPTED_AGENT_STAYS"):
        _bash(agent, ["gt", "done"], "gt done")
    # The client would sit at its prompt now; the Witness ends it.
    signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
