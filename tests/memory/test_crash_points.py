"""A process may die at any of its steps: what was acknowledged is there afterwards, once."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sidecars.memory.sessions import Gains, SessionId, load, save
from sidecars.memory.store import MemoryStore
from sidecars.party.party import Party, end_party, start_party
from sidecars.party.record import FOLDER, Contribution, PartyDecision, PartyRecord
from tests.memory.files import validator
from witness.clock import ManualClock

# Some hundred lives, each with its own synced writes.
pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

_valid = validator("agent-sidecar")
# Every call by which the store changes the disk.
_STEPS: tuple[tuple[Any, str], ...] = (
    (os, "write"),
    (os, "fsync"),
    (os, "pwrite"),
    (os, "ftruncate"),
    (os, "link"),
    (Path, "mkdir"),
    (Path, "rmdir"),
    (Path, "rename"),
    (Path, "replace"),
    (Path, "unlink"),
    (Path, "write_text"),
)


class Killed(BaseException):
    """The process is gone: nothing of it runs any more, its handlers neither."""


def _die_at(monkeypatch: pytest.MonkeyPatch, number: int, *, done: bool) -> None:
    """Let the process die at its ``number``-th step, before or after the step itself; no later step happens."""
    count = itertools.count()
    dead: list[bool] = []

    def mortal(step: Callable[..., Any]) -> Callable[..., Any]:
        def act(*arguments: Any, **options: Any) -> Any:
            if dead:
                raise Killed
            if next(count) != number:
                return step(*arguments, **options)
            dead.append(True)
            if done:
                step(*arguments, **options)
            raise Killed

        return act

    for owner, name in _STEPS:
        monkeypatch.setattr(owner, name, mortal(getattr(owner, name)))


def _lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: Callable[[MemoryStore, list[str]], None], done: bool
) -> list[tuple[MemoryStore, list[str]]]:
    """One life for each step at which the scenario can die, and what it had acknowledged by then."""
    lives: list[tuple[MemoryStore, list[str]]] = []
    for number in itertools.count():
        store = MemoryStore(tmp_path / str(number), ManualClock(), wait=0)
        acknowledged: list[str] = []
        store.root.mkdir()
        with monkeypatch.context() as patch:
            _die_at(patch, number, done=done)
            try:
                scenario(store, acknowledged)
                return lives
            except Killed:
                pass
        lives.append((store, acknowledged))
    raise AssertionError("unreachable")


def _session(store: MemoryStore, acknowledged: list[str]) -> None:
    session = SessionId("one", "r/p")
    load(store, "ada", session)
    for content in ("first", "second"):
        store.change("ada", "add", "one", {"content": content})
        acknowledged.append(content)
        store.fold("ada")
    store.change("ada", "relate", "one", {"kind": "complements", "other": "ux"})
    acknowledged.append("ux")
    store.fold("ada")
    save(store, "ada", session, Gains(memories=({"content": "third"},), relations=(("agrees_with", "bob"),)))
    acknowledged += ["third", "end"]
    load(store, "ada", SessionId("two", "r/p"))
    store.change("ada", "add", "two", {"content": "fourth"})
    acknowledged.append("fourth")


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_a_session_may_die_at_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: bool) -> None:
    lives = _lives(tmp_path, monkeypatch, _session, done)
    assert len(lives) > 40
    for store, acknowledged in lives:
        # The next process finds it, saves it anew, and goes on.
        save(
            store,
            "ada",
            SessionId("one", "r/p"),
            Gains(memories=({"content": "third"},), relations=(("agrees_with", "bob"),)),
        )
        sidecar = store.read("ada")
        contents = [memory.content for memory in sidecar.memories]
        assert len(contents) == len(set(contents))
        assert set(acknowledged) - {"end", "ux"} <= set(contents)
        # Applied once: twice would have reinforced.
        assert {memory.confidence for memory in sidecar.memories} == {0.6}
        assert "third" in contents
        assert sidecar.sessions_participated == 1
        assert sidecar.books.evidence["agrees_with"] == {"bob": 1}
        seen = sidecar.books.evidence.get("complements", {}).get("ux", 0)
        assert seen == 1 if "ux" in acknowledged else seen <= 1
        _valid(json.loads(store.place("ada").file.read_text()))
        assert not store.place("ada").foreign_lock.exists()
        assert not store.place("ada").journal.exists()


_AGENTS = ("ada", "bob", "eve")
_RECORD = PartyRecord(
    "x",
    "debate",
    _AGENTS,
    (Contribution("bob", 1, "opponent", "rebuttal", "No.", {"disagrees_with": ("ada",)}),),
    (
        PartyDecision("", "Tabs.", "proponent", proponent="ada", opponent="bob", arbitrator="eve"),
        PartyDecision("", "Two of them.", "compromise"),
    ),
)


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_the_end_of_a_party_may_die_at_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: bool) -> None:
    # The party stands before the first life begins, so that its end is what dies.
    parties: dict[Path, Party] = {}

    def end(store: MemoryStore, acknowledged: list[str]) -> None:
        end_party(store, parties[store.root], _RECORD)

    for number in range(200):
        store = MemoryStore(tmp_path / str(number), ManualClock())
        store.root.mkdir()
        parties[store.root] = start_party(store, _AGENTS, "x", "debate")[0]
        with monkeypatch.context() as patch:
            _die_at(patch, number, done=done)
            try:
                end(store, [])
                break
            except Killed:
                pass
        ended, _ = end_party(store, parties[store.root], _RECORD)
        assert ended.decisions == ("DR-001", "DR-002")
        assert sorted(path.name for path in (store.root / FOLDER).glob("DR-*")) == ["DR-001.json", "DR-002.json"]
        for agent in _AGENTS:
            sidecar = store.read(agent)
            assert sidecar.sessions_participated == 1
            assert [memory.content for memory in sidecar.memories] == ["DR-001: Tabs.", "DR-002: Two of them."]
        assert store.read("bob").books.evidence == {"disagrees_with": {"ada": 1}}
    assert number > 40
