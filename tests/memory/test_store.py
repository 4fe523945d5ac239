"""Nothing that was acknowledged is lost: not to other writers, not to kill -9, not to a corrupt file."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sidecars.memory.lenient_reader import parse
from sidecars.memory.record import RuleError
from sidecars.memory.store import MemoryBusyError, MemoryFileError, MemoryStore, foreign_locked, locked
from tests.memory.files import MDAN, TEMPLATE, validator, write
from witness.clock import ManualClock, SystemClock

_ROOT = Path(__file__).resolve().parents[2]
_valid = validator("agent-sidecar")


def _contents(store: MemoryStore, agent: str = "ada") -> list[str]:
    return [memory.content for memory in store.read(agent).memories]


def test_an_addition_is_on_the_disk_before_it_is_folded(store: MemoryStore, tmp_path: Path) -> None:
    store.change("ada", "add", "s", {"content": "one"})
    place = store.place("ada")
    assert place.journal.exists()
    assert not place.file.exists()
    assert _contents(MemoryStore(tmp_path)) == ["one"]
    store.fold("ada")
    assert not place.journal.exists()
    _valid(json.loads(place.file.read_text()))
    assert _contents(store) == ["one"]


def test_what_breaks_a_rule_leaves_no_trace(store: MemoryStore) -> None:
    with pytest.raises(RuleError):
        store.change("ada", "add", "s", {"content": "the password is hunter2"})
    assert not store.place("ada").journal.exists()


def test_the_files_are_the_users_own_and_out_of_git(store: MemoryStore) -> None:
    store.change("ada", "add", "s", {"content": "one"})
    store.fold("ada")
    place = store.place("ada")
    assert place.file.stat().st_mode & 0o777 == 0o600
    assert place.folder.stat().st_mode & 0o777 == 0o700
    assert (place.folder / ".gitignore").read_text() == "*\n"


def test_a_folder_that_was_there_is_left_as_it_is(store: MemoryStore, tmp_path: Path) -> None:
    write(tmp_path, "ada", TEMPLATE)
    store.change("ada", "add", "s", {"content": "one"})
    assert not (store.place("ada").folder / ".gitignore").exists()


def test_a_crash_between_the_fold_and_the_end_of_the_journal_doubles_nothing(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.change("ada", "add", "s", {"content": "one"})
    store.change("ada", "close", "s")
    journal = store.place("ada").journal
    kept = journal.read_bytes()
    store.fold("ada")
    journal.write_bytes(kept)
    store.change("ada", "add", "t", {"content": "two"})
    assert store.read("ada").sessions_participated == 1
    assert store.fold("ada").sessions_participated == 1
    assert _contents(store) == ["one", "two"]


@pytest.mark.parametrize("content", [b"", b"{ not json", b'{"memories": [', b"[1, 2]", b"\x00\x01\xff"])
def test_a_corrupt_file_is_set_aside_and_the_journal_goes_on(
    store: MemoryStore, tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path, "ada", TEMPLATE)
    store.change("ada", "add", "s", {"content": "from the journal"})
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert _contents(store) == ["from the journal"]
        assert path.read_bytes() == content
        store.fold("ada")
    aside = [each for each in path.parent.iterdir() if ".corrupt-" in each.name]
    assert [each.read_bytes() for each in aside] == [content]
    assert aside[0].name in caplog.text
    assert _contents(store) == ["from the journal"]
    _valid(json.loads(path.read_text()))


def test_two_corrupt_files_of_the_same_instant_are_both_kept(store: MemoryStore, tmp_path: Path) -> None:
    for content in (b"{1", b"{2"):
        write(tmp_path, "ada", content)
        store.fold("ada")
    kept = {each.read_bytes() for each in store.place("ada").folder.iterdir() if ".corrupt-" in each.name}
    assert kept == {b"{1", b"{2"}


def test_a_file_that_had_to_be_repaired_is_kept_as_it_was(store: MemoryStore, tmp_path: Path) -> None:
    before = {**TEMPLATE, "memories": ["a plain text", {"content": "x", "type": "wish"}]}
    path = write(tmp_path, "ada", before)
    store.change("ada", "add", "s", {"content": "new"})
    store.fold("ada")
    originals = [each for each in path.parent.iterdir() if ".before-" in each.name]
    assert [json.loads(each.read_text()) for each in originals] == [before]
    assert _contents(store) == ["a plain text", "x", "new"]


def test_a_foreign_file_is_not_rewritten_by_reading_or_by_an_empty_fold(store: MemoryStore, tmp_path: Path) -> None:
    path = write(tmp_path, "architect", MDAN)
    before = path.read_bytes()
    store.read("architect")
    store.fold("architect")
    assert path.read_bytes() == before


def test_unknown_keys_survive_a_change(store: MemoryStore, tmp_path: Path) -> None:
    path = write(tmp_path, "ada", {**MDAN, "theme": {"dark": [1, None, "x"]}})
    store.change("ada", "add", "s", {"content": "new"})
    store.fold("ada")
    assert json.loads(path.read_text())["theme"] == {"dark": [1, None, "x"]}


def test_an_entry_that_no_longer_fits_is_kept_with_its_reason(store: MemoryStore, tmp_path: Path) -> None:
    write(tmp_path, "architect", MDAN)
    store.change("architect", "use", "s", {"id": "a1b2c3d4"})
    write(tmp_path, "architect", {**MDAN, "memories": []})
    store.fold("architect")
    lines = store.place("architect").refused.read_text().splitlines()
    assert "a1b2c3d4" in json.loads(lines[0])["reason"]


def test_a_failed_write_leaves_the_old_file_and_the_journal(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.change("ada", "add", "s", {"content": "one"})
    store.fold("ada")
    before = store.place("ada").file.read_bytes()
    store.change("ada", "add", "s", {"content": "two"})

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(MemoryFileError, match="No space left"):
            store.fold("ada")
        with pytest.raises(MemoryFileError, match="No space left"):
            store.change("ada", "add", "s", {"content": "three"})
    assert store.place("ada").file.read_bytes() == before
    store.fold("ada")
    assert _contents(store)[:2] == ["one", "two"]


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "a..b", "x" * 200, "a\nb", "ä", "a\x00"])
def test_a_name_that_is_no_safe_file_name_is_refused(store: MemoryStore, tmp_path: Path, name: str) -> None:
    from witness.errors import UsageError

    for act in (store.read, store.fold, store.exists):
        with pytest.raises(UsageError):
            act(name)
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_the_place_of_the_file_is_not_followed(store: MemoryStore, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text(json.dumps(TEMPLATE))
    place = store.place("ada")
    place.folder.mkdir(parents=True)
    place.file.symlink_to(outside)
    with pytest.raises(MemoryFileError):
        store.read("ada")


@pytest.mark.parametrize("name", ["ada.sidecar.json", "ada.journal.jsonl"])
def test_a_folder_in_the_place_of_a_file_is_one_error(store: MemoryStore, name: str) -> None:
    (store.place("ada").folder / name).mkdir(parents=True)
    for act in (lambda: store.read("ada"), lambda: store.fold("ada"), lambda: store.change("ada", "close", "s")):
        with pytest.raises(MemoryFileError, match="a folder"):
            act()


def test_what_a_shell_hands_over_need_not_be_utf_8(store: MemoryStore, tmp_path: Path) -> None:
    write(tmp_path, "ada", b'{"memories": [], "mood": "\\ud800"}')
    store.change("ada", "add", "s\udcff", {"content": "half \udcff a character", "tags": ["\udcff"]})
    store.fold("ada")
    assert _contents(store) == ["half a character"]
    assert parse(store.place("ada").file.read_bytes())["mood"] == "\ud800"


def test_files_that_no_agent_could_have_are_passed_over(store: MemoryStore, tmp_path: Path) -> None:
    write(tmp_path, "ada", TEMPLATE)
    write(tmp_path, ".hidden", TEMPLATE)
    write(tmp_path, "a b", TEMPLATE)
    assert store.agents() == ["ada"]


# -- locks ------------------------------------------------------------------------------------------------------------


def test_the_wait_for_another_writer_is_bounded(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path, SystemClock(), wait=0.05)
    store.fold("ada")
    with store.place("ada").lock.open("r+") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(MemoryBusyError, match="try again"):
            store.change("ada", "add", "s", {"content": "one"})
        assert _contents(store) == []
    store.change("ada", "add", "s", {"content": "one"})


def test_mdans_own_lock_is_respected_by_the_fold_and_not_needed_by_the_journal(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path, SystemClock(), wait=0.05)
    store.fold("ada")
    store.place("ada").foreign_lock.mkdir()
    store.change("ada", "add", "s", {"content": "one"})
    with pytest.raises(MemoryBusyError):
        store.fold("ada")
    store.place("ada").foreign_lock.rmdir()
    store.fold("ada")
    assert not store.place("ada").foreign_lock.exists()


def test_a_lock_folder_that_mdan_left_behind_is_cleared_when_it_is_stale(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path, SystemClock(), wait=1)
    store.fold("ada")
    store.change("ada", "add", "s", {"content": "one"})
    folder = store.place("ada").foreign_lock
    folder.mkdir()
    os.utime(folder, (1, 1))
    store.fold("ada")
    assert not folder.exists()


def test_a_lock_folder_that_we_left_behind_is_cleared_at_once(tmp_path: Path) -> None:
    clock = ManualClock()
    folder, lock = tmp_path / "a.lock", tmp_path / "a.flock"
    folder.mkdir()
    lock.write_bytes(b"1")
    with locked(lock) as held, foreign_locked(folder, held, clock, wait=0):
        assert folder.is_dir()
    assert not folder.exists()
    assert lock.read_bytes() == b""


# -- many processes ---------------------------------------------------------------------------------------------------


def _writer(root: Path, name: str, count: int, fold: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.memory.writer", str(root), "ada", name, str(count), fold],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _go(writers: list[subprocess.Popen[str]]) -> None:
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()


def _acknowledged(writer: subprocess.Popen[str]) -> list[str]:
    out, _ = writer.communicate()
    return out.splitlines()


def test_ten_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    writers = [_writer(tmp_path, f"w{number}", 5, "fold") for number in range(10)]
    _go(writers)
    said = [line for writer in writers for line in _acknowledged(writer)]
    assert [writer.returncode for writer in writers] == [0] * 10
    assert len(said) == 50
    store = MemoryStore(tmp_path)
    assert sorted(_contents(store)) == sorted(said)
    store.fold("ada")
    assert sorted(_contents(store)) == sorted(said)


@pytest.mark.real
@pytest.mark.parametrize("fold", ["fold", "journal"])
def test_ten_writers_killed_in_mid_write_lose_nothing_that_was_acknowledged(tmp_path: Path, fold: str) -> None:
    # Each is killed when it has acknowledged a number of its own: the signal meets the next write or fold anywhere.
    writers = [_writer(tmp_path, f"w{number}", 5, fold) for number in range(10)]
    _go(writers)
    said = []
    for number, writer in enumerate(writers):
        assert writer.stdout is not None
        for _ in range(1 + number % 4):
            said.append(writer.stdout.readline().strip())
        writer.send_signal(signal.SIGKILL)
        said += _acknowledged(writer)
    store = MemoryStore(tmp_path)
    found = _contents(store)
    assert set(said) <= set(found)
    store.fold("ada")
    folded = _contents(store)
    assert sorted(folded) == sorted(found)
    assert len(folded) == len(set(folded))
    _valid(json.loads(store.place("ada").file.read_text()))
    assert not store.place("ada").foreign_lock.exists()
