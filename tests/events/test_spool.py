"""The spool: whole events, in order, across rotations, torn lines and long paths."""

from __future__ import annotations

import fcntl
import json
import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from witness.events import spool_writer
from witness.events.spool_reader import SpoolReader, WakeSocket, append_event, parse_record


def put(spool: Path, number: int) -> None:
    append_event(spool, json.dumps({"n": number}).encode())


def numbers(reader: SpoolReader, limit: int = 100) -> list[int]:
    return [event.payload["n"] for event in reader.read(limit)]


def test_events_come_back_in_order_and_once(tmp_path: Path) -> None:
    reader = SpoolReader(tmp_path)
    assert reader.read() == []
    for number in range(3):
        put(tmp_path, number)
    assert numbers(reader) == [0, 1, 2]
    assert reader.read() == []
    put(tmp_path, 3)
    assert numbers(reader) == [3]


def test_a_respawned_reader_goes_on_where_its_predecessor_stopped(tmp_path: Path) -> None:
    for number in range(5):
        put(tmp_path, number)
    first = SpoolReader(tmp_path)
    assert numbers(first, limit=2) == [0, 1]
    assert numbers(SpoolReader(tmp_path, first.position)) == [2, 3, 4]


def test_newlines_of_the_client_do_not_tear_a_record(tmp_path: Path) -> None:
    append_event(tmp_path, b'{\n  "a": "b",\r\n  "c": [1,\n2]\n}\n')
    (event,) = SpoolReader(tmp_path).read()
    assert event.payload == {"a": "b", "c": [1, 2]}


def test_a_torn_line_spoils_only_itself(tmp_path: Path) -> None:
    put(tmp_path, 1)
    with (tmp_path / "events.jsonl").open("ab") as file:
        file.write(b'\n{"t":12,"p":3,"cut":0,"e":{"half":')
    reader = SpoolReader(tmp_path)
    assert numbers(reader) == [1]
    put(tmp_path, 2)
    assert numbers(reader) == [2]
    assert reader.spoiled == 1


@pytest.mark.parametrize("payload", [b"", b"not json", b"[1]", b'"text"', b"\xff\xfe"])
def test_what_is_no_object_is_counted_and_skipped(tmp_path: Path, payload: bytes) -> None:
    append_event(tmp_path, payload)
    put(tmp_path, 7)
    reader = SpoolReader(tmp_path)
    assert numbers(reader) == [7]
    assert reader.spoiled == 1


def test_a_huge_payload_is_cut_and_still_names_its_tool(tmp_path: Path) -> None:
    text = "é" * spool_writer.PAYLOAD_LIMIT
    append_event(tmp_path, json.dumps({"tool_name": "Read", "out": text}, ensure_ascii=False).encode())
    (event,) = SpoolReader(tmp_path).read()
    assert event.cut
    assert event.payload["tool_name"] == "Read"
    assert event.payload["out"].startswith("ééé")


def test_readers_follow_a_rotation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_writer, "ROTATE_AT", 300)
    reader = SpoolReader(tmp_path)
    seen = []
    for number in range(40):
        put(tmp_path, number)
        if number % 7 == 0:
            seen += numbers(reader)
            reader = SpoolReader(tmp_path, reader.position)
    seen += numbers(reader)
    assert seen == list(range(40))
    assert len(list(tmp_path.glob("events.*.jsonl"))) > 2


def test_an_event_written_late_into_the_rotated_file_is_not_lost(tmp_path: Path) -> None:
    put(tmp_path, 1)
    late = os.open(tmp_path / "events.jsonl", os.O_WRONLY | os.O_APPEND)
    (tmp_path / "events.jsonl").rename(tmp_path / "events.1000.jsonl")
    put(tmp_path, 2)
    reader = SpoolReader(tmp_path)
    assert numbers(reader) == [1, 2]
    os.write(late, b'\n{"t":12,"p":3,"cut":0,"e":{"n":3}}\n')
    os.close(late)
    assert numbers(SpoolReader(tmp_path, reader.position)) == [3]


def test_old_rotated_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_writer, "ROTATE_AT", 10)
    reader = SpoolReader(tmp_path)
    for number in range(30):
        put(tmp_path, number)
    assert len(list(tmp_path.glob("events.*.jsonl"))) <= spool_writer.KEPT + 1
    assert numbers(reader) == list(range(30 - spool_writer.KEPT, 30))


def test_of_hooks_that_rotate_at_once_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second rename would put the fresh file aside, and in a storm push unread ones out."""
    append_event(tmp_path, b'{"n":1}')
    monkeypatch.setattr(spool_writer, "ROTATE_AT", 10)
    with (tmp_path / spool_writer.CURRENT).open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        append_event(tmp_path, b'{"n":2}')
        assert [path.name for path in tmp_path.iterdir()] == [spool_writer.CURRENT]
        (tmp_path / spool_writer.CURRENT).rename(tmp_path / "events.1.jsonl")
    with (tmp_path / "events.1.jsonl").open("ab") as late:
        at = spool_writer.open_own(str(tmp_path))
        spool_writer.rotate(at, late.fileno())
        os.close(at)
    assert [path.name for path in tmp_path.iterdir()] == ["events.1.jsonl"]
    assert [event.payload["n"] for event in SpoolReader(tmp_path).read()] == [1, 2]


def test_a_reader_at_the_end_sees_only_what_is_to_come(tmp_path: Path) -> None:
    put(tmp_path, 1)
    reader = SpoolReader.at_end(tmp_path)
    assert reader.read() == []
    put(tmp_path, 2)
    assert numbers(reader) == [2]


@pytest.mark.parametrize("position", ["nonsense", "1:2;;x:y", "999999999:5", ":"])
def test_a_position_of_another_spool_means_the_beginning(tmp_path: Path, position: str) -> None:
    put(tmp_path, 1)
    assert numbers(SpoolReader(tmp_path, position)) == [1]


def test_a_spool_file_that_is_a_link_is_not_written_through(tmp_path: Path) -> None:
    os.symlink("/dev/full", tmp_path / "events.jsonl")
    with pytest.raises(OSError, match="symbolic links"):
        put(tmp_path, 1)


def test_a_folder_of_the_users_in_the_spools_place_is_neither_written_nor_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a link, or put there after the spool was opened: old files of a spool are removed, and theirs are not."""
    theirs, spool = tmp_path / "theirs", tmp_path / "spool"
    theirs.mkdir()
    kept = {f"events.{number}.jsonl": b"theirs" for number in range(spool_writer.KEPT + 3)} | {"idle": b"theirs"}
    for name, content in kept.items():
        (theirs / name).write_bytes(content)
    monkeypatch.setattr(spool_writer, "ROTATE_AT", 10)

    def is_untouched() -> bool:
        return {path.name: path.read_bytes() for path in theirs.iterdir()} == kept

    spool.symlink_to(theirs)
    for write in (
        lambda: put(spool, 1),
        lambda: spool_writer.is_own_client(str(spool), os.getpid()),
        lambda: spool_writer.begin_work(str(spool)),
    ):
        with pytest.raises(NotADirectoryError):
            write()
        assert is_untouched()
    spool.unlink()
    spool.mkdir()

    def swapped(file: int, data: bytes) -> int:
        spool.rename(tmp_path / "before")
        spool.symlink_to(theirs)
        return real(file, data)

    real = os.write
    monkeypatch.setattr(os, "write", swapped)
    put(spool, 1)
    assert is_untouched()
    assert [event.payload["n"] for event in SpoolReader(tmp_path / "before").read()] == [1]


def test_twenty_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[2]); import spool_writer\n"
        "for n in range(50): spool_writer.append_record(sys.argv[1], b'{\"n\": %d}' % n)"
    )
    transport = str(Path(spool_writer.__file__).parent)
    writers = [
        subprocess.Popen([sys.executable, "-S", "-I", "-c", program, str(tmp_path), transport]) for _ in range(20)
    ]
    assert [writer.wait() for writer in writers] == [0] * 20
    events = SpoolReader(tmp_path).read(5000)
    assert len(events) == 1000
    assert len({event.id for event in events}) == 1000


def test_the_head_must_be_ours() -> None:
    assert parse_record(b'{"e":{"t":1}}') is None


# -- waking ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A spool whose path is too long for a socket's address."""
    folder = tmp_path / ("d" * 100) / "spool"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)  # spool_writer.wake changes it
    return folder


def test_the_asker_waits_for_the_answer_and_not_longer(deep: Path) -> None:
    with WakeSocket(deep, "scope", asked=True) as sock:
        asker = threading.Thread(target=spool_writer.wake, args=(str(deep), 30.0))
        asker.start()
        assert select.select([sock], [], [], 20)[0]
        wakes = sock.accept()
        assert asker.is_alive()
        for wake in wakes:
            wake.answer()
        asker.join(10)
        assert not asker.is_alive()


def test_a_sidecar_that_is_at_work_is_waited_for_longer_than_a_silent_one(deep: Path) -> None:
    with WakeSocket(deep, "scope", asked=True) as sock:
        asker = threading.Thread(target=spool_writer.wake, args=(str(deep), 0.5))
        began = time.monotonic()
        asker.start()
        assert select.select([sock], [], [], 20)[0]
        wakes = sock.accept()
        wakes[0].hold()
        asker.join(0.7)
        assert asker.is_alive()
        wakes[0].answer()
        asker.join(10)
        assert time.monotonic() - began < 3


def test_one_that_is_at_work_for_ever_is_not_waited_for_for_ever(deep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_writer, "WORK_LIMIT", 0.1)
    with WakeSocket(deep, "scope", asked=True) as sock:
        asker = threading.Thread(target=spool_writer.wake, args=(str(deep), 0.05))
        asker.start()
        assert select.select([sock], [], [], 20)[0]
        wakes = sock.accept()
        wakes[0].hold()
        asker.join(10)
        assert not asker.is_alive()
        wakes[0].answer()


def test_the_wait_is_bounded_for_all_together(deep: Path) -> None:
    with WakeSocket(deep, "a", asked=True), WakeSocket(deep, "b", asked=True):
        thread = threading.Thread(target=spool_writer.wake, args=(str(deep), 0.05))
        thread.start()
        thread.join(10)
        assert not thread.is_alive()


def test_a_knock_does_not_wait(deep: Path) -> None:
    with WakeSocket(deep, "specs", asked=False) as sock:
        spool_writer.wake(str(deep), 30.0)
        (wake,) = sock.accept()
        wake.answer()  # nobody waits for it: no error


def test_the_socket_of_a_dead_sidecar_costs_nothing_and_is_taken_over(deep: Path) -> None:
    with WakeSocket(deep, "scope", asked=True) as dead:
        (deep / "scope.ask").rename(deep / "kept")
        assert dead.fileno() > 0
    (deep / "kept").rename(deep / "scope.ask")
    spool_writer.wake(str(deep), 30.0)
    with WakeSocket(deep, "scope", asked=True) as sock:
        spool_writer.wake(str(deep), 0.0)
        (wake,) = sock.accept()
        wake.answer()
    assert not (deep / "scope.ask").exists()
