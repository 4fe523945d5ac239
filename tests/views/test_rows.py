"""Which section a polecat stands in, in what order, in what words."""

from __future__ import annotations

from typing import Any

import pytest

from witness.state.words import length
from witness.views.rows import counts, details, next_in_need, rows


def state(name: str, activity: str = "working", **given: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "run": f"run-{name}", "address": f"main/{name}", "polecat": name, "ended": None, "waiting": None,
        "activity": activity,
        "why": "it says so", "since": None, "zombie": "", "task": "", "branch": "", "workdir": "/w", "memory": None,
        "started": "2026-12-01T10:00:00Z", "lifecycle": "RUNNING", "last_action": None, "agent": ["claude"], "pid": 7,
        "channel": "hooks", "cpu_percent": None, "uptime": None, "sidecars": [], "session": f"gt-{name}",
    }  # fmt: skip
    return plain | given


def waits(name: str, since: str, question: str = "Edit a.py?") -> dict[str, Any]:
    return state(name, "waiting", waiting={"for": "permission", "since": since, "question": question}, since=since)


TOWN = [
    state("works"),
    waits("late", "2026-12-01T10:05:00Z"),
    waits("early", "2026-12-01T10:01:00Z"),
    state("turns", "stuck", why="npm test failed 4 times"),
    state("hangs", zombie="hung"),
    state("rests", "idle", task="mend the invoice", memory=5 << 20),
    state("gone", "dead", ended={"by": "itself", "sentence": "ended by itself, exit status 3"}),
    state("fine", "done", ended={"by": "done", "sentence": "ended after gt done"}),
]


def shown(**given: str) -> list[str]:
    return [row.name for row in rows(TOWN, **given)]


def test_those_that_need_somebody_come_first_and_the_longest_waiting_of_them() -> None:
    assert shown() == [
        "needs you 2", "main/early", "main/late", "stuck 2", "main/hangs", "main/turns", "working 1", "main/works",
        "idle 1", "main/rests", "done today 1", "main/fine", "dead today 1", "main/gone",
    ]  # fmt: skip
    assert counts(TOWN) == "needs you 2 · stuck 2 · working 1 · idle 1 · done today 1 · dead today 1"
    assert counts([]) == "no polecats"


def test_other_orders_and_a_filter() -> None:
    assert shown(sort="name")[:2] == ["main/early", "main/fine"]
    assert shown(sort="memory")[0] == "main/rests"
    assert shown(wanted="INVOICE") == ["idle 1", "main/rests"]


def test_the_next_that_needs_somebody_goes_around() -> None:
    found = rows(TOWN)
    order = ["run-early", "run-late", "run-hangs", "run-turns", "run-early"]
    assert [next_in_need(found, run) for run in ["run-gone", *order[:4]]] == order
    assert next_in_need(rows([state("a")]), "run-a") == ""


def test_what_an_agent_prints_is_one_line_of_text() -> None:
    (_, row) = rows([waits("a", "2026-12-01T10:05:00Z", "x\x1b[2J\nRun?")])
    assert row.words.isprintable()
    assert all(line.isprintable() for line in details(waits("a", "2026-12-01T10:05:00Z", "x\x1b[2J\nRun?")))


@pytest.mark.parametrize(("seconds", "told"), [(0.4, "0 s"), (61, "1 min 1 s"), (3600, "1 h"), (90061, "1 d 1 h")])
def test_lengths_of_time(seconds: float, told: str) -> None:
    assert length(seconds) == told
