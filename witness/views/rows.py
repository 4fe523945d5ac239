"""From states to the rows of ``gt top``: which section a polecat stands in, in what order, in what words."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from witness.state.records import wall_of
from witness.state.words import activity_words, length

#: In the order in which somebody wants to know.
SECTIONS = ("needs you", "stuck", "working", "idle", "unknown", "done today", "dead today")
SORTS = ("need", "name", "age", "memory")
_OF_ACTIVITY = {"waiting": "needs you", "stuck": "stuck", "working": "working", "idle": "idle"}


@dataclass(frozen=True, slots=True)
class Row:
    """One line.

    Args:
        run: of the polecat; empty for the head of a section.
        section: one of ``SECTIONS``.
        name: the polecat's address, or the section with its count.
        words: what it does.
        state: all that is known of it.
    """

    run: str
    section: str
    name: str
    words: str = ""
    state: Mapping[str, Any] | None = None


def section_of(state: Mapping[str, Any]) -> str:
    """The section of a polecat."""
    if state["ended"]:
        return "done today" if state["ended"]["by"] in ("done", "nuke") else "dead today"
    if state["zombie"] == "hung":
        return "stuck"
    return _OF_ACTIVITY.get(state["activity"], "unknown")


def rows(states: Iterable[Mapping[str, Any]], sort: str = "need", wanted: str = "") -> list[Row]:
    """The rows of a list, heads included.

    Args:
        states: polecats, living and ended, in the JSON form of their state.
        sort: one of ``SORTS``; within a section, or for ``name`` and ``memory`` over all of them.
        wanted: only polecats in whose name, task, branch or words this stands.
    """
    chosen = [state for state in states if wanted.lower() in _text(state)]
    if sort in ("name", "memory"):
        key = (lambda each: each["address"]) if sort == "name" else (lambda each: -(each["memory"] or 0))
        return [_row(state) for state in sorted(chosen, key=key)]
    found: list[Row] = []
    for section in SECTIONS:
        members = [state for state in chosen if section_of(state) == section]
        if members:
            found.append(Row("", section, f"{section} {len(members)}"))
            found += [_row(state) for state in sorted(members, key=_age if sort == "age" else _longest_first)]
    return found


def counts(states: Iterable[Mapping[str, Any]]) -> str:
    """How many there are in each section, in one line."""
    sections = [section_of(state) for state in states]
    return " · ".join(f"{name} {sections.count(name)}" for name in SECTIONS if name in sections) or "no polecats"


def _row(state: Mapping[str, Any]) -> Row:
    words = state["ended"]["sentence"] if state["ended"] else activity_words(state)
    return Row(state["run"], section_of(state), state["address"], plain(words), state)


def _text(state: Mapping[str, Any]) -> str:
    return f"{state['address']} {state['task']} {state['branch']} {state['activity']} {state['workdir']}".lower()


def _longest_first(state: Mapping[str, Any]) -> tuple[float, str]:
    return (wall_of(state["since"]) if state["since"] else float("inf"), state["address"])


def _age(state: Mapping[str, Any]) -> tuple[float, str]:
    return (wall_of(state["started"]), state["address"])


def next_in_need(found: Sequence[Row], run: str) -> str:
    """The next polecat after ``run``, around the end, that needs somebody or is stuck; empty when none is."""
    needy = [row.run for row in found if row.run and row.section in ("needs you", "stuck")]
    if not needy:
        return ""
    order = [row.run for row in found if row.run]
    begin = order.index(run) + 1 if run in order else 0
    return next((each for each in [*order[begin:], *order[:begin]] if each in needy), "")


def details(state: Mapping[str, Any]) -> list[str]:
    """All that is known of one polecat: itself, what it does, its sidecars."""
    agent = " ".join(state["agent"])
    lines = [f"{state['address']}  {state['lifecycle']}  {activity_words(state)}"]
    if state["ended"]:
        lines = [f"{state['address']}  {state['ended']['sentence']}"]
    lines += [f"task     {state['task']}"] if state["task"] else []
    lines += [f"branch   {state['branch']}"] if state["branch"] else []
    lines.append(f"workdir  {state['workdir']}")
    if state["last_action"]:
        lines.append(f"last     {state['last_action']['what']} ({length(state['last_action']['age'])} ago)")
    lines.append(f"agent    {agent}  pid {state['pid'] or '-'}  channel {state['channel']}")
    if state["memory"] is not None:
        used = f"  {state['cpu_percent']:.0f} % of a core" if state["cpu_percent"] is not None else ""
        lines.append(f"uses     {state['memory'] / 2**20:.0f} MB{used}")
    if state["uptime"] is not None:
        lines.append(f"up       {length(state['uptime'])}, since {_clock(state['started'])}")
    lines += [
        f"├ {each['name']}  {each['state']}  pid {each['pid'] or '-'}  restarts {each['restarts']}"
        f"  injections {each['injections']}" + (f"  mute: {each['mute']}" if each["mute"] else "")
        for each in state["sidecars"]
    ]
    return [plain(line) for line in lines]


def _clock(text: str) -> str:
    return time.strftime("%H:%M:%S", time.localtime(wall_of(text)))


def plain(text: str) -> str:
    """One line without control bytes: an agent's own words are in it."""
    return "".join(each if each.isprintable() else " " for each in text)
