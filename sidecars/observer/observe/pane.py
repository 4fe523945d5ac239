"""The pane as a fallback for agents without hooks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from sidecars.observer.observe.events import EventReader
from sidecars.observer.observe.screen import Action, completed_actions, content_lines, is_structured
from sidecars.type_reader.sidecar_type import SidecarType
from witness.clock import Clock
from witness.errors import TmuxError
from witness.judging.observation import Observation

# What Claude Code shows for a tool, and which of the tool's arguments it shows.
_SHOWN = {
    "Bash": ("Bash", "command"),
    "Update": ("Edit", "file_path"),
    "Edit": ("Edit", "file_path"),
    "MultiEdit": ("Edit", "file_path"),
    "Write": ("Write", "file_path"),
    "Create": ("Write", "file_path"),
    "Read": ("Read", "file_path"),
    "NotebookEdit": ("NotebookEdit", "notebook_path"),
    "Search": ("Grep", "pattern"),
    "Fetch": ("WebFetch", "url"),
}
_STRETCH = 1.5
_LONGEST_STRETCH = 6.0


class PaneWatch:
    """Looks at a pane now and then, seldom while nothing changes.

    Args:
        kind: says how many lines, how often, and what share must change.
        capture: gives the screen's last lines; TmuxError means that nothing is known.
        workdir: where the agent works.
        clock: where the time comes from.
        patience: seconds before the first look, in which hooks may show that no screen is needed.
    """

    def __init__(
        self, kind: SidecarType, capture: Callable[[int], str], workdir: str, clock: Clock, patience: float = 0.0
    ) -> None:
        self._kind, self._capture, self._clock = kind, capture, clock
        self._reader = EventReader(workdir)
        self._lines: list[str] = []
        self._content = ""
        self._interval = kind.poll
        self._due = clock.monotonic() + patience
        self._seen: set[str] = set()

    @property
    def due(self) -> float:
        """Seconds until the next look."""
        return max(0.0, self._due - self._clock.monotonic())

    def look(self) -> list[Observation]:
        """The completed actions that are new, if the pane's content has changed enough; else nothing."""
        try:
            screen = self._capture(self._kind.pane_lines)
        except TmuxError:  # nothing is known, so nothing is concluded
            self._rest()
            return []
        lines = content_lines(screen)
        content = squeeze(lines)
        if changed_share(self._content, content) < max(self._kind.change, 1e-9):
            self._rest()
            return []
        self._interval = self._kind.poll
        self._due = self._clock.monotonic() + self._interval
        found = self._observations(lines)
        self._lines, self._content = lines, content
        return found

    def _rest(self) -> None:
        self._interval = min(self._interval * _STRETCH, self._kind.poll * _LONGEST_STRETCH)
        self._due = self._clock.monotonic() + self._interval

    def _observations(self, lines: list[str]) -> list[Observation]:
        if not is_structured(lines):
            text = "\n".join(new_lines(self._lines, lines))
            return [self._named(Observation("", self._clock.wall(), "pane", output=text))] if text else []
        found = []
        for action in completed_actions(lines):
            observation = self._named(self._observation(action))
            # What stands on the screen still was seen before.
            if observation.id not in self._seen:
                self._seen.add(observation.id)
                found.append(observation)
        return found

    def _observation(self, action: Action) -> Observation:
        tool, key = _SHOWN.get(action.tool, (action.tool, "argument"))
        event = {
            "hook_event_name": "PostToolUse",
            "tool_name": tool,
            "tool_input": {key: action.argument, "content": action.added},
            "tool_response": action.result,
        }
        seen = self._reader.read(event, time=self._clock.wall())
        assert seen is not None  # noqa: S101 - it is a completed call
        return replace(seen, source="pane")

    def _named(self, observation: Observation) -> Observation:
        digest = hashlib.sha256(replace(observation, time=0.0).rendered().encode("utf-8", "replace")).hexdigest()
        return replace(observation, id=f"pane-{digest[:16]}")


# How much of a screen's content is new.


def squeeze(lines: Sequence[str]) -> str:
    """A screen's content as one text that does not depend on where its lines are wrapped.

    A client that repaints leaves whole frames in the history: a long line counts once.
    """
    seen: set[str] = set()
    kept = []
    for line in lines:
        text = "".join(line.split())
        if len(text) > 20:
            if text in seen:
                continue
            seen.add(text)
        kept.append(text.lstrip("●⏺○◯◉◦•"))
    return "".join(kept)


def changed_share(before: str, after: str) -> float:
    """The share of ``after`` that does not stand in ``before`` in the same order; what scrolled away does not count.

    Args:
        before, after: from ``squeeze``.

    Returns:
        From 0 (nothing is new) to 1.
    """
    if before == after or not after:
        return 0.0
    from rapidfuzz.distance import LCSseq

    return 1.0 - LCSseq.similarity(before, after) / len(after)


def new_lines(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The lines of ``after`` that are not in ``before``, in their order."""
    matcher = SequenceMatcher(None, [line.strip() for line in before], [line.strip() for line in after], autojunk=False)
    found: list[str] = []
    for kind, _, _, start, end in matcher.get_opcodes():
        if kind in ("insert", "replace"):
            found += after[start:end]
    return [line for line in found if line.strip()]
