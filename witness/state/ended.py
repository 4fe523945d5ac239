"""What is left of a run that is over: how its agent ended, who ended it, and its last screen."""

from __future__ import annotations

import signal
from datetime import datetime
from pathlib import Path

from witness.agents.screen import plain
from witness.config.town import Town
from witness.files import read_bytes
from witness.journal import Event, Group, GroupState, Journal
from witness.launch.pane import LAST_LINES, LAST_SCREEN
from witness.process.exits import agent_exit
from witness.state.records import Ended, rfc3339

_SCREEN_LIMIT = 1 << 20
_LINE = 200
_BY = {
    "nuke": ("nuke", "by gt polecat nuke"),
    "done": ("done", "after gt done"),
    "hung": ("hung", "as hung: it gave no sign of life"),
    "session-gone": ("session", "because its tmux session was gone"),
    "session-end": ("session", "because its session had ended"),
    "spawn-failed": ("spawn", "because its spawn failed"),
    "done-stuck": ("done", "after gt done: it did not end by itself"),
}


def last_screen(town: Town, run: str, lines: int = LAST_LINES) -> str:
    """The last lines of the screen that a run left, without colours; empty when it left none."""
    folder = town.run_dir(run)
    try:
        data = read_bytes(folder / LAST_SCREEN, _SCREEN_LIMIT, below=folder.parent)
    except OSError:
        return ""
    return "\n".join(plain(data.decode("utf-8", "replace")).rstrip().split("\n")[-lines:])


def ended_state(town: Town, journal: Journal, group: Group) -> Ended:
    """How a run whose agent has ended came to its end.

    Args:
        town, journal: where it was.
        group: the run.
    """
    history = journal.history(group.id.run, 100)
    found = agent_exit(town.run_dir(group.id.run))
    number = found.code - 128 if found.code is not None and found.reason.startswith("signal ") else None
    status = found.code if number is None else None
    by, words = _who(group, history, exited=found.code is not None)
    nuked = next((event.time for event in reversed(history) if event.kind == "nuked"), None)
    at = _exit_time(town.run_dir(group.id.run)) or nuked
    tail = [line.strip() for line in last_screen(town, group.id.run).split("\n") if line.strip()]
    last = tail[-1][:_LINE] if tail else ""
    parts = [f"ended {_clock(at)} {words}" if at else f"ended {words}"]
    if by == "itself" or status not in (None, 0):
        parts += [f"exit status {status}"] if status is not None else []
    if number is not None and by in ("itself", "unknown"):
        parts.append(f"signal {number} ({_signal_name(number)})")
    if by == "unknown":
        parts.append("no exit status was left")
    if group.run_state.limits_met:
        parts.append(group.run_state.limits_met)
    sentence = ", ".join(parts) + (f"; last line: {last}" if last else "")
    return Ended(rfc3339(at) if at else None, by, status, number, last, sentence)


def _who(group: Group, history: list[Event], *, exited: bool) -> tuple[str, str]:
    reason = group.intent_note if group.state in (GroupState.NUKED, GroupState.NUKING) else ""
    done = next((event for event in reversed(history) if event.kind == "done"), None)
    if reason == "done" and done:
        return "done", f"after gt done ({done.data.get('status', 'COMPLETED')})"
    if reason in _BY:
        return _BY[reason]
    # Found dead, or not found yet by anybody.
    return ("itself", "by itself") if exited else ("unknown", "for a reason that nobody saw")


def _exit_time(run_dir: Path) -> float | None:
    try:
        return (run_dir / "exit.json").lstat().st_mtime
    except OSError:
        return None


def _clock(wall: float) -> str:
    when = datetime.fromtimestamp(wall).astimezone()
    today = when.date() == datetime.now().astimezone().date()
    return when.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
