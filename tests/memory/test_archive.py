"""Nothing vanishes: what a memory no longer holds is in the archive, is told, is found, and comes back."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import pytest

from sidecars.memory.operations import MEMORY_CAP
from sidecars.memory.store import MemoryFileError, MemoryStore
from tests.memory.cli import Cli
from tests.memory.files import TEMPLATE, write
from witness.clock import ManualClock


def _all(store: MemoryStore) -> set[str]:
    return {memory.content for memory in store.read("ada").memories} | {
        each.memory.content for each in store.archived("ada")
    }


def _facts(count: int) -> list[dict[str, object]]:
    return [
        {"type": "context", "content": f"service {n} listens on its own port", "confidence": 0.5 + n % 5 / 10}
        for n in range(count)
    ]


def test_an_import_beyond_the_cap_says_so_and_loses_nothing(gt: Cli) -> None:
    (gt.project / "many.json").write_text(json.dumps(_facts(120)))
    ran = gt("import", "ada", "many.json")
    assert ran.code == 0
    assert ran.out == "120 taken in, 50 of them new, 70 in the archive, as 50 are kept\n"
    store = MemoryStore(gt.project)
    assert len(store.read("ada").memories) == MEMORY_CAP
    gt("add", "ada", "one more")
    gt("save", "ada")
    assert _all(store) == {str(fact["content"]) for fact in _facts(120)} | {"one more"}


def test_a_foreign_file_of_thousands_keeps_them_all(store: MemoryStore, tmp_path: Path) -> None:
    write(tmp_path, "ada", {**TEMPLATE, "memories": _facts(5000)})
    assert len(store.read("ada").memories) == 5000
    store.change("ada", "add", "s", {"content": "the queue drops messages"})
    store.fold("ada")
    assert len(store.read("ada").memories) == MEMORY_CAP
    assert len(_all(store)) == 5001


def test_a_file_larger_than_any_memory_is_refused_and_stands(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "ada", TEMPLATE)
    monkeypatch.setattr("sidecars.memory.store.SIZE_LIMIT", 100)
    with pytest.raises(MemoryFileError, match="no memory"):
        store.change("ada", "add", "s", {"content": "one"})
    assert [each.name for each in path.parent.iterdir() if "sidecar" in each.name] == [path.name]


def test_each_drop_is_a_line_that_says_why(
    store: MemoryStore, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    store.change("ada", "add", "s", {"content": "a guess", "basis": "inferred"})
    with caplog.at_level(logging.WARNING):
        for number in range(9):
            clock.advance(86_400)
            store.change("ada", "close", f"later-{number}")
        store.fold("ada")
    assert [(each.memory.content, each.why) for each in store.archived("ada")] == [("a guess", "faded under 0.3")]
    assert "to the archive, faded under 0.3" in caplog.text
    assert "a guess" in caplog.text


def test_what_is_pending_in_the_journal_is_in_the_archive_already(store: MemoryStore, tmp_path: Path) -> None:
    write(tmp_path, "ada", {**TEMPLATE, "memories": _facts(50)})
    store.change("ada", "add", "s", {"content": "one more"})
    assert store.place("ada").journal.exists()
    assert len(_all(store)) == 51


def test_a_crash_between_archive_and_file_doubles_and_loses_nothing(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "ada", {**TEMPLATE, "memories": _facts(60)})
    store.change("ada", "add", "s", {"content": "one more"})

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("sidecars.memory.store.replace_file", full)
        with pytest.raises(MemoryFileError):
            store.fold("ada")
    assert len(_all(store)) == 61
    store.fold("ada")
    assert len(_all(store)) == 61
    assert len(store.archived("ada")) == 11


def test_the_archive_is_shown_searched_and_restored(gt: Cli) -> None:
    write(gt.project, "ada", {**TEMPLATE, "memories": _facts(60)})
    gt("add", "ada", "one more")
    gt("save", "ada")
    shown = json.loads(gt("show", "ada", "--archive", "--json").out)
    assert len(shown) == 11
    assert {each["why"] for each in shown} == {"beyond the 50 that are kept"}
    wanted = shown[0]
    word = wanted["content"].split()[1]
    found = gt("show", "ada", "--archive", "--query", f"service {word}")
    assert wanted["content"] in found.out
    assert gt("restore", "ada", wanted["id"]).out == "1 restored\n"
    store = MemoryStore(gt.project)
    assert wanted["content"] in {memory.content for memory in store.read("ada").memories}
    assert wanted["content"] not in {each.memory.content for each in store.archived("ada")}
    assert len(store.read("ada").memories) == MEMORY_CAP
    assert len(_all(store)) == 61
    assert gt("restore", "ada", "--query", "no such words").code == 2
    assert gt("restore", "ada").code == 2
    assert gt("restore", "ada", "ffffffff").code == 2


def test_purge_reaches_the_archive(gt: Cli) -> None:
    write(gt.project, "ada", {**TEMPLATE, "memories": _facts(60)})
    gt("add", "ada", "one more")
    gt("save", "ada")
    archived = json.loads(gt("show", "ada", "--archive", "--json").out)
    ran = gt("forget", "ada", archived[0]["id"], "--purge")
    assert ran.code == 0, ran.err
    folder = gt.project / "_mdan" / "state" / "sidecars"
    assert all(archived[0]["content"].encode() not in path.read_bytes() for path in folder.iterdir() if path.is_file())
    assert len(json.loads(gt("show", "ada", "--archive", "--json").out)) == 10
    gt("forget", "ada", "--query", "service listens", "--purge")
    assert json.loads(gt("show", "ada", "--archive", "--json").out) == []


def test_what_undo_no_longer_reaches_is_in_the_archive(gt: Cli) -> None:
    for number in range(12):
        added = gt("add", "ada", f"fact {number} of the house", "--session", f"s{number}")
        gt("forget", "ada", added.out.split()[0], "--session", f"s{number}")
    assert [each["why"] for each in json.loads(gt("show", "ada", "--archive", "--json").out)] == ["forgotten"] * 2


def test_an_import_names_what_it_leaves_out_and_cuts(gt: Cli) -> None:
    facts = [{"content": "the password is hunter2"}, {"type": "context"}, {"content": "kept " * 120}]
    (gt.project / "some.json").write_text(json.dumps(facts))
    ran = gt("import", "ada", "some.json")
    assert ran.out == "1 taken in, 1 of them new, 2 left out\n"
    lines = ran.err.splitlines()
    assert any("memory 1: holds a secret" in line for line in lines)
    assert any("memory 2: has no content" in line for line in lines)
    assert any("memory 3.content: cut to 500" in line for line in lines)
    assert "hunter2" not in ran.err


def test_an_id_is_the_same_at_each_reading(store: MemoryStore, tmp_path: Path) -> None:
    write(tmp_path, "ada", TEMPLATE)
    first, second = ([memory.id for memory in store.read("ada").memories] for _ in range(2))
    assert first == second
    assert len(set(first)) == 2


def test_the_archive_is_the_users_own(store: MemoryStore, tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        write(tmp_path, "ada", {**TEMPLATE, "memories": _facts(60)})
        store.change("ada", "add", "s", {"content": "one"})
        store.fold("ada")
    finally:
        os.umask(old)
    assert store.place("ada").archive.stat().st_mode & 0o777 == 0o600
