"""Which condition is told, when, and how often."""

from __future__ import annotations

import re
from typing import Any

import pytest

from witness.config.notices import Telling, read_notices
from witness.config.settings import parse_duration
from witness.notify.board import NoticeBoard

ONE = Telling("bell")
WANTED = {kind: (ONE,) for kind in ("waiting", "died", "stuck", "failed", "limit")}


def state(**given: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "run": "r1", "address": "main/toast", "ended": None, "waiting": None, "activity": "working", "why": "",
        "zombie": "", "sidecars": [],
    }  # fmt: skip
    return plain | given


def waits(question: str = "Edit a.py?", what: str = "permission") -> dict[str, Any]:
    return state(activity="waiting", waiting={"for": what, "question": question, "since": None})


def told(board: NoticeBoard, now: float, minute: int = 600) -> list[str]:
    found = board.due(WANTED, now, minute)
    for notice, _, name in found:
        board.was_told(notice, name, now)
    return [f"{notice.kind}: {notice.words}" for notice, _, _ in found]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (state(), []),
        (waits(), ["waiting: main/toast waits (permission): Edit a.py?"]),
        (waits("", "login"), ["waiting: main/toast waits (login): login"]),
        (waits("resets at 15:00", "limit"), ["limit: main/toast waits (limit): resets at 15:00"]),
        (state(activity="stuck", why="npm test failed"), ["stuck: main/toast is stuck: npm test failed"]),
        (state(zombie="hung"), ["stuck: main/toast gives no sign of life"]),
        (state(sidecars=[{"name": "scope", "state": "FAILED", "mute": ""}]), ["failed: main/toast has lost its sidecar scope: it failed too often"]),  # noqa: E501
        (state(activity="dead", ended={"by": "itself", "sentence": "ended by itself, exit status 3"}), ["died: main/toast ended by itself, exit status 3"]),  # noqa: E501
        (state(activity="dead", ended={"by": "hung", "sentence": "ended as hung"}), ["died: main/toast ended as hung"]),
        (state(activity="done", ended={"by": "done", "sentence": "ended after gt done"}), []),
        (state(activity="dead", ended={"by": "nuke", "sentence": "ended by gt polecat nuke"}), []),
    ],
)  # fmt: skip
def test_what_is_told_of_a_state(given: dict[str, Any], expected: list[str]) -> None:
    board = NoticeBoard()
    board.see([given])
    assert told(board, 1_000.0) == expected
    board.see([given])
    assert told(board, 5_000.0) == [], "once while it lasts"


def test_a_condition_that_comes_again_is_told_again_but_not_too_soon() -> None:
    board = NoticeBoard()
    board.see([waits()])
    assert len(told(board, 1_000.0)) == 1
    board.see([state()])
    board.see([waits("Run rm?")])
    assert told(board, 1_030.0) == []
    assert len(told(board, 1_061.0)) == 1
    board.see([], whole=True)
    assert told(board, 9_000.0) == []


def test_what_falls_into_quiet_hours_is_told_after_them_if_it_still_holds() -> None:
    night = {
        "waiting": (Telling("bell", quiet=(22 * 60, 7 * 60)),),
        "died": (Telling("bell", quiet=(22 * 60, 7 * 60)),),
    }
    board = NoticeBoard()
    board.see([waits(), state(run="r2", ended={"by": "itself", "sentence": "x"}), {**waits(), "run": "r3"}])
    for minute in (22 * 60, 0, 7 * 60 - 1):
        assert board.due(night, 1_000.0, minute) == []
    board.see([waits(), state(run="r3")], whole=True)
    assert [(notice.run, notice.kind) for notice, _, _ in board.due(night, 1_000.0, 7 * 60)] == [("r1", "waiting"), ("r2", "died")]  # noqa: E501 # fmt: skip


def test_a_new_witness_does_not_say_it_again() -> None:
    board = NoticeBoard()
    board.see([waits()])
    assert len(told(board, 1_000.0)) == 1
    again = NoticeBoard(dict(board.told), dict(board.last))
    again.see([waits()], whole=True)
    assert told(again, 2_000.0) == []


def test_memory_is_bounded_by_a_day() -> None:
    board = NoticeBoard()
    for number in range(100):
        board.see([state(run=f"r{number}", ended={"by": "itself", "sentence": "x"})])
        told(board, 1_000.0 + number)
    board.forget(1_000.0 + 2 * 86_400)
    assert (board.told, board.last, told(board, 1_000.0 + 2 * 86_400)) == ({}, {}, [])


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("x", "write it as {waiting:"),
        ({"late": {"bell": True}}, "'late' is none of"),
        ({"died": "notify-send"}, "write it as {command: PROGRAM}"),
        ({"died": {}}, "exactly one of"),
        ({"died": {"bell": True, "desktop": True}}, "exactly one of"),
        ({"died": {"bell": "loud"}}, "true or left out"),
        ({"died": {"command": []}}, "exactly one of"),
        ({"died": {"command": [1]}}, "no shell reads it"),
        ({"died": {"webhook": "ftp://x"}}, "https:// or http://"),
        ({"died": {"webhook": "file:///etc/passwd"}}, "https:// or http://"),
        ({"died": {"bell": True, "quiet": "22-7"}}, "22:00-07:00"),
        ({"died": {"bell": True, "every": "often"}}, "10s, 1m30s or 250ms"),
        ({"died": {"bell": True, "volume": 3}}, "'volume' is none of"),
    ],
)
def test_what_is_wrong_is_told(value: Any, wrong: str) -> None:
    with pytest.raises(ValueError, match=re.escape(wrong)):
        read_notices(value, parse_duration)


def test_several_ways_and_a_command_in_words() -> None:
    found = read_notices(
        {"died": [{"command": "notify 'a b'"}, {"webhook": "https://x", "every": "5m"}]}, parse_duration
    )
    assert found["died"][0].command == ("notify", "a b")
    assert (found["died"][1].url, found["died"][1].every) == ("https://x", 300.0)
