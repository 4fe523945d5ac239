"""The one way to open and to write what others can write too."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from witness import files
from witness.files import UnsafeFileError, lines_of, opening

AS_ROOT = os.geteuid() == 0


@pytest.fixture(params=["openat2", "component by component"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to walk a path: the kernel's own and ours."""
    monkeypatch.setattr(opening, "openat2_works", None if request.param == "openat2" else False)


@pytest.fixture
def any_umask() -> Iterator[Callable[[int], int]]:
    before = os.umask(0)
    os.umask(before)
    yield os.umask
    os.umask(before)


def _link(path: Path) -> None:
    other = path.with_name("theirs")
    other.write_text("a secret")
    path.symlink_to(other)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 30)


POISON: dict[str, Callable[[Path], object]] = {
    "link": _link,
    "link to a device": _device,
    "FIFO": os.mkfifo,
    "folder": Path.mkdir,
    "socket": _socket,
    "1 GB sparse": _sparse,
}


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("kind", POISON)
def test_poison_is_refused_at_once_in_one_line(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "run" / "file"
    path.parent.mkdir()
    POISON[kind](path)
    for below in (None, tmp_path):
        began = time.monotonic()
        with pytest.raises(OSError, match=r"not opened|not read") as caught:
            files.read_bytes(path, below=below)
        assert time.monotonic() - began < 0.5
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)


@pytest.mark.usefixtures("either_way")
def test_a_link_in_the_place_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "file").write_text("a secret")
    (tmp_path / "run").symlink_to("home")
    with pytest.raises(UnsafeFileError, match="link"):
        files.read_bytes(tmp_path / "run" / "file", below=tmp_path)
    with pytest.raises(UnsafeFileError, match="link"):
        files.replace_file(tmp_path / "run" / "file", "ours", below=tmp_path)
    assert (tmp_path / "home" / "file").read_text() == "a secret"


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("name", ["../outside", "run/../../outside", "run/..", ""])
def test_no_path_leads_out(tmp_path: Path, name: str) -> None:
    (tmp_path / "outside").write_text("a secret")
    (tmp_path / "town" / "run").mkdir(parents=True)
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on the kernel
        files.read_bytes(f"{tmp_path}/town/{name}", below=tmp_path / "town")
    with pytest.raises(UnsafeFileError):
        files.read_bytes(tmp_path / "outside", below=tmp_path / "town")


@pytest.mark.skipif(not AS_ROOT, reason="only root can give a file away")
def test_another_users_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("{}")
    os.chown(path, 65534, 65534)
    with pytest.raises(UnsafeFileError, match="belongs to user 65534"):
        files.read_json(path)
    assert files.read_json(path, owners=(65534,)) == {}
    assert files.read_json(path, owners=()) == {}


def test_a_linked_file_that_people_keep_elsewhere_is_read_and_still_checked(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("linger: 5s")
    (tmp_path / "settings").symlink_to("kept")
    assert files.read_text(tmp_path / "settings", follow=True) == "linger: 5s"
    (tmp_path / "zero").symlink_to("/dev/zero")
    with pytest.raises(UnsafeFileError, match="a device"):
        files.read_text(tmp_path / "zero", follow=True)


def test_a_file_is_read_up_to_its_limit_and_no_further(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    assert files.read_bytes(path, 100) == b"x" * 100
    with pytest.raises(UnsafeFileError, match="larger than 99 bytes"):
        files.read_bytes(path, 99)
    assert files.read_from(path, 90, 1000) == b"x" * 10
    assert files.read_from(path, -30, 20) == b"x" * 20
    assert files.read_from(path, 200, 20) == b""


def test_a_second_name_of_a_users_file_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("kept")
    os.link(tmp_path / "theirs", tmp_path / "beat")
    with pytest.raises(UnsafeFileError, match="hard link"):
        files.open_regular(tmp_path / "beat", flags=os.O_WRONLY)


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077, 0o777])
def test_what_is_written_is_its_users_alone_under_any_umask(
    tmp_path: Path, umask: int, any_umask: Callable[[int], int]
) -> None:
    any_umask(umask)
    files.make_folder(tmp_path / "a" / "b" / "c", below=tmp_path)
    path = tmp_path / "a" / "b" / "c" / "file"
    files.replace_file(path, "text", below=tmp_path)
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (tmp_path / "a", tmp_path / "a/b", tmp_path / "a/b/c", path)]
    assert modes == [0o700, 0o700, 0o700, 0o600]
    assert path.read_text() == "text"


@pytest.mark.parametrize("kind", ["link", "link to a device", "FIFO", "socket", "1 GB sparse"])
def test_a_replaced_file_is_a_new_one_whatever_stood_there(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    POISON[kind](path)
    files.replace_file(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert not path.is_symlink()
    assert [each.name for each in tmp_path.iterdir() if each.name not in ("file", "theirs")] == []
    if kind == "link":
        assert (tmp_path / "theirs").read_text() == "a secret"


def test_a_write_that_fails_leaves_the_old_content_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.mkdir()
    with pytest.raises(OSError, match=r"(?i)directory"):
        files.replace_file(path, "text")
    assert list(tmp_path.iterdir()) == [path]


def test_readers_see_the_old_content_or_the_new_one(tmp_path: Path) -> None:
    path, texts = tmp_path / "file", ("a" * 5000, "b" * 9000)
    files.replace_file(path, texts[0])
    done = threading.Event()

    def write() -> None:
        for round_ in range(100):
            files.replace_file(path, texts[round_ % 2], durable=False)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = {files.read_text(path)}
    while not done.is_set():
        seen.add(files.read_text(path))
    writer.join()
    assert seen <= set(texts)


@pytest.mark.parametrize("kind", ["link", "FIFO", "socket", "1 GB sparse"])
def test_a_folder_that_is_none_is_refused(tmp_path: Path, kind: str) -> None:
    POISON[kind](tmp_path / "queue")
    with pytest.raises(UnsafeFileError, match="must be a folder of your own") as caught:
        files.make_folder(tmp_path / "queue" / "session", below=tmp_path)
    assert str(tmp_path / "queue") in str(caught.value)


def test_a_linked_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "queue").symlink_to("theirs")
    with pytest.raises(UnsafeFileError, match="it is a link"):
        files.make_folder(tmp_path / "queue" / "session", below=tmp_path)
    assert list((tmp_path / "theirs").iterdir()) == []


def test_a_folder_that_others_can_write_is_refused_or_closed(tmp_path: Path) -> None:
    (tmp_path / "queue").mkdir()
    (tmp_path / "queue").chmod(0o777)
    with pytest.raises(UnsafeFileError, match="chmod go-w"):
        files.make_folder(tmp_path / "queue", below=tmp_path)
    files.make_folder(tmp_path / "queue", below=tmp_path, close=True)
    assert stat.S_IMODE((tmp_path / "queue").stat().st_mode) == 0o755


@pytest.mark.skipif(not AS_ROOT, reason="only root can give a folder away")
def test_another_users_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "queue").mkdir()
    os.chown(tmp_path / "queue", 65534, 65534)
    with pytest.raises(UnsafeFileError, match="belongs to user 65534"):
        files.make_folder(tmp_path / "queue", below=tmp_path, close=True)


def test_a_lock_is_held_by_one_and_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with files.locked(path) as first:
        assert first is not None
        with files.locked(path, patience=0.02) as second:
            assert second is None
        releasing = threading.Timer(0.05, lambda: fcntl.flock(first, fcntl.LOCK_UN))
        releasing.start()
        with files.locked(path, patience=10) as third:
            assert third is not None
        releasing.join()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_lock_does_not_live_on_in_a_child(tmp_path: Path) -> None:
    with files.locked(tmp_path / "lock") as held:
        assert held is not None
        assert not os.get_inheritable(held)
    with pytest.raises(UnsafeFileError, match="a folder"), files.locked(tmp_path):
        pass


def test_a_log_is_put_aside_when_it_has_grown_and_its_folder_is_made_anew(tmp_path: Path) -> None:
    log = tmp_path / "run" / "logs" / "scope.log"
    for text in (b"first\n", b"second\n", b"third\n"):
        handle = files.open_log(log, below=tmp_path, limit=8)
        files.write_all(handle, text)
        os.close(handle)
    assert log.read_bytes() == b"third\n"
    assert log.with_name("scope.log.1").read_bytes() == b"first\nsecond\n"


@pytest.mark.parametrize("kind", ["link", "link to a device", "FIFO", "folder", "socket"])
def test_a_log_is_never_a_reason_not_to_run(tmp_path: Path, kind: str) -> None:
    (tmp_path / "logs").mkdir()
    POISON[kind](tmp_path / "logs" / "scope.log")
    handle = files.open_log(tmp_path / "logs" / "scope.log", below=tmp_path)
    files.write_all(handle, b"text\n")
    os.close(handle)
    if kind == "link":
        assert (tmp_path / "logs" / "theirs").read_text() == "a secret"


def test_the_modules_that_every_command_loads_cost_little() -> None:
    code = "import sys, witness.files; print(sorted({'ctypes', 'secrets', 'hashlib', 'tempfile'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# -- JSON ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1,]", "NaN", '{"a": Infinity}', "1" * 5000, "[" * 100_000, '{"a":' * 70 + "1" + "}" * 70, "\ud800"],
)
def test_bad_json_is_one_kind_of_error(text: str) -> None:
    began = time.monotonic()
    with pytest.raises(ValueError):  # noqa: PT011 - the text is json's own
        files.parse_json(text.encode("utf-8", "surrogatepass"))
    assert time.monotonic() - began < 0.5


def test_json_may_be_as_deep_as_its_limit() -> None:
    assert files.parse_json("[" * 64 + "]" * 64)
    with pytest.raises(ValueError, match="nested deeper than 64"):
        files.parse_json("[" * 65 + "]" * 65)
    assert files.parse_json(f'["{"[" * 500}", {{}}]')


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ([1], int),
        (True, int),
        (1.0, int),
        ("1", int),
        (1 << 64, int),
        (1, str),
        (None, str),
        (1, bool),
        (1 << 64, float),
        (float("inf"), float),
        ({}, list),
    ],
)
def test_a_value_of_another_type_is_refused_by_its_key(value: Any, kind: Any) -> None:
    with pytest.raises(ValueError, match="'pid'"):
        files.typed({"pid": value}, "pid", kind)


def test_a_value_of_its_type_is_given() -> None:
    record = {"pid": 5, "age": 2, "name": "x", "on": False, "parts": [1], "null": None}
    assert files.typed(record, "pid", int) == 5
    assert files.typed(record, "age", float) == 2.0
    assert files.typed(record, "on", bool) is False
    assert files.typed(record, "missing", str, "given") == "given"
    assert files.typed(record, "null", str, "given") == "given"
    others: list[Any] = [[], "text", 3, None]
    for other in others:
        with pytest.raises(ValueError, match="must be an object"):
            files.typed(other, "pid", int)


@pytest.mark.parametrize("longest", [3, 5, 1 << 20])
@pytest.mark.parametrize("data", [b"", b"\n", b"ab\ncdefg\nh", b"ab\ncdefg\nh\n", b"x" * (3 << 20) + b"\nab\n"])
def test_lines_but_those_that_are_too_long(data: bytes, longest: int) -> None:
    wanted = [line for line in data.splitlines(keepends=True) if len(line.rstrip(b"\n")) <= longest]
    assert list(lines_of(BytesIO(data), longest)) == wanted
