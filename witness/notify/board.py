"""From states to notices: which condition a polecat has come into, and whether it may be told now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from witness.config.notices import Telling
from witness.state.records import ActivityKind

# An end that somebody wanted is no death.
_WANTED_ENDS = ("done", "nuke")
# Seconds after which a death that was told is let go of, and after which nothing is remembered of what is over.
_OLD, _KEPT = 3600.0, 86400.0


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to be told.

    Args:
        kind: one of ``witness.config.notices.KINDS``.
        run: of the polecat.
        address: its name.
        about: what tells this condition from another of its kind.
        words: one line for people.
        state: the polecat's state, as ``gt state --json`` has it.
    """

    kind: str
    run: str
    address: str
    about: str
    words: str
    state: Mapping[str, Any]

    @property
    def key(self) -> str:
        return f"{self.run} {self.kind} {self.about}"


def notices_of(state: Mapping[str, Any]) -> list[Notice]:
    """The conditions that a polecat (the JSON form of its state) is in and that somebody may want to know of."""
    who, found = state["address"], []

    def note(kind: str, about: str, words: str) -> None:
        found.append(Notice(kind, state["run"], who, about, f"{who} {words}", state))

    ended = state["ended"]
    if ended:
        if ended["by"] not in _WANTED_ENDS:
            note("died", "", ended["sentence"])
        return found
    waiting = state["waiting"]
    if waiting:
        kind = "limit" if waiting["for"] == "limit" else "waiting"
        asked = waiting["question"] or waiting["for"]
        note(kind, f"{waiting['for']} {waiting['question']}", f"waits ({waiting['for']}): {asked}")
    if state["activity"] == ActivityKind.STUCK:
        note("stuck", "", f"is stuck: {state['why']}")
    elif state["zombie"] == "hung":
        note("stuck", "hung", "gives no sign of life")
    for each in state["sidecars"]:
        if each["state"] == "FAILED":
            note(
                "failed", each["name"], f"has lost its sidecar {each['name']}: {each['mute'] or 'it failed too often'}"
            )
    return found


@dataclass
class NoticeBoard:
    """What holds, and what of it was told.

    Args:
        told: by ``Notice.key`` and way, the wall clock second at which it was told, while it holds.
        last: by run and kind, when something of it was told last.
    """

    told: dict[str, float] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)
    _holds: dict[str, Notice] = field(default_factory=dict)

    def see(self, states: Iterable[Mapping[str, Any]], *, whole: bool = False) -> None:
        """Take in polecats' states; ``whole``: these are all that live, so what is not there has gone."""
        states = list(states)
        fresh = {notice.key: notice for state in states for notice in notices_of(state)}
        seen = {state["run"] for state in states}
        over = [
            key
            for key, notice in self._holds.items()
            if notice.kind != "died" and key not in fresh and (whole or notice.run in seen)
        ]
        for key in over:
            del self._holds[key]
            self.told = {name: at for name, at in self.told.items() if not name.startswith(f"{key} ")}
        self._holds |= fresh

    def due(
        self, wanted: Mapping[str, tuple[Telling, ...]], now: float, minute: int
    ) -> list[tuple[Notice, Telling, str]]:
        """What is to be told now, each way it is wanted, with the name under which it is told.

        Args:
            wanted: ``on:`` of the settings.
            now: wall clock.
            minute: of the day, in local time.
        """
        found = []
        for key, notice in self._holds.items():
            for number, telling in enumerate(wanted.get(notice.kind, ())):
                name = f"{key} {number}"
                soon = now - self.last.get(f"{notice.run} {notice.kind} {number}", 0.0) < telling.every
                if name not in self.told and not soon and not telling.is_quiet(minute):
                    found.append((notice, telling, name))
        return found

    def was_told(self, notice: Notice, name: str, now: float) -> None:
        """It was told, or tried as often as it is worth."""
        self.told[name] = now
        self.last[f"{notice.run} {notice.kind} {name.rpartition(' ')[2]}"] = now

    def forget(self, now: float) -> None:
        """Let go of deaths that are old, and of when what is long over was told."""
        for key, notice in list(self._holds.items()):
            if notice.kind == "died" and any(now - at > _OLD for name, at in self.told.items() if name.startswith(key)):
                del self._holds[key]
        self.last = {name: at for name, at in self.last.items() if now - at < _KEPT}
        self.told = {
            name: at for name, at in self.told.items() if name.rpartition(" ")[0] in self._holds or now - at < _KEPT
        }
