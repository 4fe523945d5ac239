"""A session from its start to its end, as the spawn of a polecat and its client tell it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sidecars.memory.sessions import (
    Gains,
    SessionId,
    briefing,
    end_session,
    environment,
    load,
    manual_session,
    memory_hooks,
    on_event,
    save,
    with_memory_hooks,
)
from sidecars.memory.store import MemoryStore
from witness.clock import ManualClock
from witness.names import GroupId

_RUN_1, _RUN_2 = GroupId("main", "toast", "run-1"), GroupId("main", "toast", "run-2")


def test_the_first_start_makes_an_empty_memory(store: MemoryStore, tmp_path: Path, clock: ManualClock) -> None:
    text = briefing(tmp_path, "ada", "do it", group=_RUN_1, clock=clock)
    assert store.place("ada").file.exists()
    assert "persistent memory" not in text


def test_the_second_run_opens_with_what_the_first_learned(
    store: MemoryStore, tmp_path: Path, clock: ManualClock
) -> None:
    briefing(tmp_path, "ada", group=_RUN_1, clock=clock)
    store.change("ada", "add", "run-1", {"content": "the queue drops big messages"})
    end_session(tmp_path, "ada", group=_RUN_1, clock=clock)
    assert "the queue drops big messages" in briefing(tmp_path, "ada", group=_RUN_2, clock=clock)


def test_a_run_that_crashed_is_saved_by_the_next_and_counts(
    store: MemoryStore, tmp_path: Path, clock: ManualClock
) -> None:
    briefing(tmp_path, "ada", group=_RUN_1, clock=clock)
    store.change("ada", "add", "run-1", {"content": "learned before the crash"})
    assert "learned before the crash" in briefing(tmp_path, "ada", group=_RUN_2, clock=clock)
    assert store.read("ada").sessions_participated == 1
    assert not store.place("ada").journal.exists()


def test_a_run_that_is_known_to_be_over_is_saved_by_the_next_of_any_name(
    store: MemoryStore, tmp_path: Path, clock: ManualClock
) -> None:
    briefing(tmp_path, "ada", group=_RUN_1, clock=clock)
    other = GroupId("main", "jam", "run-9")
    briefing(tmp_path, "ada", group=other, clock=clock, is_over=lambda run: run == "run-1")
    sessions = store.read("ada").books.sessions
    assert sessions["run-1"].crashed
    assert sessions["run-9"].is_open
    assert store.read("ada").sessions_participated == 1


def test_an_end_that_is_told_twice_counts_once(store: MemoryStore, tmp_path: Path, clock: ManualClock) -> None:
    briefing(tmp_path, "ada", group=_RUN_1, clock=clock)
    for _ in range(2):
        assert end_session(tmp_path, "ada", group=_RUN_1, clock=clock).sidecar.sessions_participated == 1


def test_what_breaks_a_rule_is_left_out_and_told_and_the_rest_is_kept(store: MemoryStore) -> None:
    gains = Gains(
        memories=({"content": "password=Tr0ub4dor&3"}, {"content": "fine"}),
        relations=(("agrees_with", "bob"), ("agrees_with", "bob"), ("likes", "eve")),
        decisions=({"dr_id": "DR-001", "role": "proponent", "position": "tabs", "outcome": "won"},),
        used=("ffffffff",),
    )
    saved = save(store, "ada", SessionId("s"), gains)
    assert len(saved.refused) == 3
    assert [memory.content for memory in saved.sidecar.memories] == ["fine"]
    assert saved.sidecar.relationships["agrees_with"] == ("bob",)
    assert saved.sidecar.decision_history[0].outcome == "won"


def test_gains_are_taken_in_once_and_also_after_the_end_was_told_without_them(store: MemoryStore) -> None:
    session, gains = SessionId("s"), Gains(memories=({"content": "fine"},), relations=(("agrees_with", "bob"),))
    load(store, "ada", session)
    save(store, "ada", session)
    for _ in range(3):
        saved = save(store, "ada", session, gains).sidecar
    assert [memory.content for memory in saved.memories] == ["fine"]
    assert saved.books.evidence == {"agrees_with": {"bob": 1}}
    assert saved.sessions_participated == 1


def test_a_refused_secret_never_reaches_the_disk(store: MemoryStore, tmp_path: Path) -> None:
    save(store, "ada", SessionId("s"), Gains(memories=({"content": "password=Tr0ub4dor&3"},)))
    assert all(b"Tr0ub" not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_several_gains_of_one_save_are_several_memories(store: MemoryStore) -> None:
    gains = Gains(memories=tuple({"content": f"fact {number}"} for number in range(6)))
    saved = save(store, "ada", SessionId("s"), gains)
    assert len({memory.id for memory in saved.sidecar.memories}) == 5
    assert len(saved.refused) == 1


def test_somebody_in_no_polecat_stays_in_the_session_that_is_open(store: MemoryStore, clock: ManualClock) -> None:
    first = manual_session(store, "ada", fresh=True)
    load(store, "ada", first)
    clock.advance(60)
    assert manual_session(store, "ada") == first
    save(store, "ada", first)
    assert manual_session(store, "ada") != first


def test_two_polecats_may_share_one_memory(store: MemoryStore, tmp_path: Path, clock: ManualClock) -> None:
    other = GroupId("main", "jam", "run-9")
    briefing(tmp_path, "ada", group=_RUN_1, clock=clock)
    briefing(tmp_path, "ada", group=other, clock=clock)
    assert store.read("ada").sessions_participated == 0
    end_session(tmp_path, "ada", group=_RUN_1, clock=clock)
    end_session(tmp_path, "ada", group=other, clock=clock)
    assert store.read("ada").sessions_participated == 2


def test_the_environment_names_the_project(tmp_path: Path) -> None:
    from sidecars.memory.paths import find_root

    assert find_root(Path("/"), environment(tmp_path, "ada")) == tmp_path


# -- the client's events ----------------------------------------------------------------------------------------------


def _opened(store: MemoryStore) -> SessionId:
    session = SessionId.of_group(_RUN_1)
    load(store, "ada", session)
    store.change("ada", "add", session.name, {"content": "seen"})
    return session


@pytest.mark.parametrize(
    "event", [{"hook_event_name": "PreCompact"}, {"hook_event_name": "SessionEnd", "reason": "clear"}]
)
def test_before_a_compaction_the_journal_is_folded_and_the_session_goes_on(
    store: MemoryStore, event: dict[str, str]
) -> None:
    session = _opened(store)
    assert on_event(store, "ada", session, event) == ""
    assert not store.place("ada").journal.exists()
    assert store.read("ada").books.sessions[session.name].is_open


def test_the_clients_end_saves(store: MemoryStore) -> None:
    session = _opened(store)
    on_event(store, "ada", session, {"hook_event_name": "SessionEnd", "reason": "other"})
    assert store.read("ada").sessions_participated == 1


@pytest.mark.parametrize(
    ("source", "told"), [("compact", True), ("clear", True), ("startup", False), ("resume", False)]
)
def test_a_context_that_was_built_anew_is_told_again(store: MemoryStore, source: str, told: bool) -> None:
    session = _opened(store)
    text = on_event(store, "ada", session, {"hook_event_name": "SessionStart", "source": source})
    assert ("seen" in text) is told


def test_the_hooks_stand_after_those_that_are_there() -> None:
    before: dict[str, Any] = {"model": "x", "hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": "a"}]}]}}
    after = with_memory_hooks(before, "ada")
    assert after["hooks"]["SessionEnd"][0] == before["hooks"]["SessionEnd"][0]
    assert after["hooks"]["SessionEnd"][1:] == memory_hooks("ada")["SessionEnd"]
    assert after["model"] == "x"
    assert len(before["hooks"]["SessionEnd"]) == 1
