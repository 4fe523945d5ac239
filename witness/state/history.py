"""The town's history in people's words, one line a happening."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from witness.journal import Event
from witness.state.records import rfc3339

# What each kind says; braces are filled from the event's data, and what is missing there is left out.
_WORDS: Mapping[str, str] = {
    "spawn-began": "it is being spawned",
    "sidecar-lacks": "{member}: {reason}",
    "sidecar-speaks-again": "{member} can speak again",
    "sidecar-found": "{member} holds it to: {reason}",
    "channel-silent": "its client works, and its {channel} gave no sign of life: its screen only is seen: gt doctor",
    "polecat-started": "its agent has started (pid {pid})",
    "sidecar-started": "{member} has started (pid {pid})",
    "member-running": "{member} runs",
    "member-backoff": "{member} ended, and is tried again: {note}",
    "member-failed": "{member} failed too often: {note}",
    "member-stopping": "{member} is asked to end",
    "member-stopped": "{member} has ended",
    "member-lost": "{member} is gone: {note}",
    "member-spawning": "{member} is being started",
    "group-running": "it runs, with all of its sidecars",
    "group-degraded": "it runs; a sidecar does not",
    "group-done": "its work is done",
    "group-zombie": "its agent is gone",
    "group-nuking": "it is being ended",
    "group-nuked": "it has ended",
    "zombie": "found as {zombie}: {agent}",
    "recovered": "it gives signs of life again",
    "done": "it says that it is done: {status}",
    "late-done": "a done of a run that is over was dropped",
    "nuke-began": "it is being ended: {reason}",
    "limits-met": "{words}",
    "paused": "it is paused: {processes} processes stopped",
    "resumed": "it goes on",
    "restarted": "it is the run {before} begun again{how}",
    "worktree-kept": "its worktree {path} is kept: {reason}: gt diff {polecat}",
    "worktree-removed": "its worktree is removed: {reason}",
    "nuked": "ended {ended} processes in {seconds} s, none survived ({reason})",
    "nuke-failed": "still alive after its end: {survivors}",
    "told": "{message}",
    "notice": "told by {way}: {message}",
    "notice-failed": "nobody could be told by {way}: {reason}",
    "ending": "pid {pid} is ended: {reason}",
    "swept": "swept what was old: spools and logs of {emptied} runs, all of {forgotten}; {freed} bytes freed",
    "settings-read": "settings read anew: {changed}",
    "witness-started": "the Witness has started (pid {pid}, version {version})",
    "witness-stopped": "the Witness has stopped (pid {pid})",
}


def event_words(event: Event) -> str:
    """What happened, in words; a kind that has none here is told by its own name and data."""
    words = _WORDS.get(event.kind)
    data = {**event.data, "member": event.member}
    if words is None:
        more = " ".join(f"{key}={value}" for key, value in event.data.items() if value not in ("", None, []))
        text = f"{event.kind} {event.member} {more}"
    else:
        text = words.format_map(_Given({key: value for key, value in data.items() if value not in ("", None, [])}))
    return " ".join("".join(each if each.isprintable() else " " for each in text).split()).rstrip(": (")


class _Given(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return ""


def event_line(event: Event, address: str = "") -> str:
    """One line of a log: when, who, what."""
    when = datetime.fromtimestamp(event.time).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    return " ".join(filter(None, (when, address, event_words(event))))


def event_json(event: Event, address: str) -> dict[str, Any]:
    """The same for programs."""
    return {
        "time": rfc3339(event.time),
        "address": address or None,
        "run": event.run or None,
        "kind": event.kind,
        "member": event.member or None,
        "words": event_words(event),
        "data": dict(event.data),
    }
