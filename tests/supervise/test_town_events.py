from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.gas_town import make_gas_town
from witness.config.town import Town
from witness.gastown.town_events import TownEventKind, begin, read_events

TS = "2026-11-30T10:00:00Z"


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return make_gas_town(tmp_path / "gt")


def _line(kind: str, actor: str = "gt", **payload: Any) -> str:
    return json.dumps(
        {"ts": TS, "source": "gt", "type": kind, "actor": actor, "payload": payload, "visibility": "feed"}
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (_line("spawn", rig="gastown", polecat="Toast"), [(TownEventKind.STARTED, "gastown", "Toast")]),
        (_line("sling", "mayor", bead="gt-1", target="gastown/polecats/Toast"), [(TownEventKind.STARTED, "gastown", "Toast")]),  # noqa: E501
        (_line("sling", "mayor", bead="gt-1", target="gastown/Toast"), [(TownEventKind.STARTED, "gastown", "Toast")]),
        (_line("sling", "mayor", bead="gt-1", target="gastown"), []),
        (_line("done", "gastown/polecats/Toast", bead="gt-1", branch="b"), [(TownEventKind.DONE, "gastown", "Toast")]),
        (_line("session_start", "gastown/polecats/Toast", role="gastown/polecats/Toast"),
         [(TownEventKind.STARTED, "gastown", "Toast")]),
        (_line("session_death", "bd-Nux", session="bd-Nux", agent="beads/polecats/Nux", reason="x", caller="gt down"),
         [(TownEventKind.ENDED, "beads", "Nux")]),
        (_line("mass_death", count=2, sessions=["gt-Toast", "gt-crew-max", "bd-Nux"]),
         [(TownEventKind.ENDED, "gastown", "Toast"), (TownEventKind.ENDED, "beads", "Nux")]),
        (_line("kill", "witness", rig="gastown", target="Toast", reason="x"), [(TownEventKind.ENDED, "gastown", "Toast")]),  # noqa: E501
        (_line("kill", "witness", rig="gastown", target="gastown/Toast", why="x"), [(TownEventKind.ENDED, "gastown", "Toast")]),  # noqa: E501
        (_line("handoff", "gastown/polecats/Toast", to_session=True), [(TownEventKind.HANDOFF, "gastown", "Toast")]),
        (_line("handoff", "mayor", to_session=True), []),
        (_line("handoff", "gastown/crew/max", to_session=True), []),
        (_line("nudge", "mayor", rig="gastown", target="Toast"), []),
        ("not JSON", []),
        ("[]", []),
        ('{"type": 3}', []),
        ('{"type": "done", "payload": []}', []),
        ("\x00\xff", []),
    ],
)  # fmt: skip
def test_what_each_event_means(town: Town, line: str, expected: list[tuple[TownEventKind, str, str]]) -> None:
    (town.root / ".events.jsonl").write_text(line + "\n", encoding="utf-8", errors="surrogateescape")
    events, _ = read_events(town, "0:0")
    assert [(event.told, event.rig, event.polecat) for event in events] == expected
    assert all(event.time == 1796032800.0 for event in events)


def test_only_what_is_new_is_read_and_half_lines_wait(town: Town) -> None:
    path = town.root / ".events.jsonl"
    path.write_text(_line("spawn", rig="gastown", polecat="Old") + "\n")
    position = begin(town)
    assert read_events(town, position) == ([], position)
    whole = _line("spawn", rig="gastown", polecat="Toast")
    with path.open("a") as file:
        file.write(whole[:30])
    events, position = read_events(town, position)
    assert events == []
    with path.open("a") as file:
        file.write(whole[30:] + "\n" + _line("done", "gastown/polecats/Toast") + "\n")
    events, position = read_events(town, position)
    assert [event.told for event in events] == [TownEventKind.STARTED, TownEventKind.DONE]
    assert read_events(town, position) == ([], position)


def test_rotation_and_truncation_begin_anew(town: Town) -> None:
    path = town.root / ".events.jsonl"
    path.write_text(_line("spawn", rig="gastown", polecat="Old") + "\n")
    position = begin(town)
    path.rename(path.with_name(".events.jsonl.1"))
    assert read_events(town, position) == ([], position), "between the rename and the first new line there is no file"
    path.write_text(_line("spawn", rig="gastown", polecat="New") + "\n")
    events, position = read_events(town, position)
    assert [event.polecat for event in events] == ["New"]
    path.write_text("")
    events, position = read_events(town, position)
    path.write_text(_line("done", "gastown/polecats/New") + "\n")
    events, position = read_events(town, position)
    assert [event.told for event in events] == [TownEventKind.DONE]


def test_a_file_that_comes_later_is_read_whole(town: Town) -> None:
    position = begin(town)
    (town.root / ".events.jsonl").write_text(_line("spawn", rig="gastown", polecat="First") + "\n")
    events, _ = read_events(town, position)
    assert [event.polecat for event in events] == ["First"]
