"""Lines by number and numbers by offset, in files that are read piece by piece."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecars.distill import text as text_module
from sidecars.distill.artifact import Artifacts
from sidecars.distill.cache import IndexCache
from sidecars.distill.errors import TimeoutSpentError
from sidecars.distill.request import Deadline
from sidecars.distill.text import Text, rune_start, shown
from witness.clock import ManualClock

Opened = Callable[..., Text]
EACH_EXAMPLE = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def tiny_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of 16 bytes, so that everything lies on a border."""
    monkeypatch.setattr(text_module, "PIECE", 16)
    monkeypatch.setattr(text_module, "BLOCK", 4)
    monkeypatch.setattr(text_module, "LARGE", 64)


@EACH_EXAMPLE
@given(lines=st.lists(st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b"")), max_size=12), last=st.booleans())
def test_lines_are_found_by_number_and_numbers_by_offset(
    opened: Opened, tiny_pieces: None, lines: list[bytes], last: bool
) -> None:
    content = b"\n".join(lines) + (b"\n" if last and lines else b"")
    text = opened(b"x" + content)  # never looks like something compressed
    expected = (b"x" + content).split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    assert text.lines == len(expected)
    offset = 0
    for number, line in enumerate(expected, 1):
        start, end = text.span(number, number)
        assert text.read(start, end) == line
        assert start == offset
        assert text.line_at(start) == text.line_at(end) == number
        offset += len(line) + 1


def test_lines_beyond_the_end_are_empty(opened: Opened) -> None:
    text = opened(b"one\ntwo")
    assert text.span(3, 9) == (7, 7)
    assert text.read(*text.span(2, 99)) == b"two"


def test_pieces_come_in_order_whatever_the_threads_do(opened: Opened, tiny_pieces: None) -> None:
    text = opened(os.urandom(1000).replace(b"\x1f", b"x"))
    assert list(text.each_piece(lambda offset: offset)) == list(range(0, 1000, 16))
    assert list(text.each_piece(lambda offset: offset, 20, 50)) == [16, 32, 48]


def test_work_that_fails_in_a_thread_fails_here(opened: Opened, tiny_pieces: None) -> None:
    def work(offset: int) -> int:
        if offset > 100:
            raise ZeroDivisionError
        return offset

    with pytest.raises(ZeroDivisionError):
        list(opened(bytes(1000)).each_piece(work))


def test_the_end_of_the_time_ends_the_work(tmp_path: Path, tiny_pieces: None) -> None:
    clock = ManualClock()
    (tmp_path / "a").write_bytes(b"x" * 1000)
    with Artifacts([tmp_path / "a"]) as artifacts, Text(artifacts, f"{tmp_path}/a", Deadline(5, clock)) as text:
        pieces = text.each_piece(lambda offset: offset)
        assert next(pieces) == 0
        clock.advance(6)
        with pytest.raises(TimeoutSpentError):
            next(pieces)


def test_a_file_that_grows_is_read_up_to_where_it_was(opened: Opened, tmp_path: Path) -> None:
    text = opened(b"one\ntwo\n")
    with (tmp_path / "artifact.log").open("ab") as more:
        more.write(b"three\n")
    assert text.lines == 2
    assert text.read(0, 100) == b"one\ntwo\n"
    assert text.digest == hashlib.sha256(b"one\ntwo\n").hexdigest()
    assert "grew from 8 to 14" in text.changed()


def test_a_file_that_is_cut_is_no_crash(opened: Opened, tmp_path: Path) -> None:
    text = opened(b"one\n" * 10_000)
    assert text.lines == 10_000
    os.truncate(tmp_path / "artifact.log", 5)
    assert text.read(*text.span(5000, 5001)) == b""
    assert "was cut" in text.changed()


def test_a_file_that_is_written_over_is_told(opened: Opened, tmp_path: Path) -> None:
    text = opened(b"one\n")
    assert text.changed() == ""
    (tmp_path / "artifact.log").write_bytes(b"two\n")
    os.utime(tmp_path / "artifact.log", ns=(1, 1))
    assert "written to" in text.changed()


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\x1b[31mred\x1b[0m and \x1b]0;title\x07plain", "red and plain"),
        (b"a\tb\r\nc", "a\tb\nc"),
        (b"bad \xff\xfe byte", "bad \ufffd\ufffd byte"),
        (b"10%\r20%\r100%", "10%\n20%\n100%"),
        ("bidi \u202e override".encode(), "bidi \ufffd override"),
        (b"nul\0bell\x07", "nul\ufffdbell\ufffd"),
    ],
)
def test_what_is_shown_has_no_controls(raw: bytes, text: str) -> None:
    assert shown(raw) == text


@given(st.text(min_size=1), st.integers(0, 20), st.integers(0, 20))
def test_cut_characters_are_dropped_and_whole_ones_kept(word: str, front: int, back: int) -> None:
    raw = word.encode("utf-8", "replace")
    cut = raw[front : len(raw) - back]
    assert rune_start(cut).decode() in word.encode("utf-8", "replace").decode()


class TestCache:
    def open_once(self, path: Path, cache: IndexCache) -> Text:
        with Artifacts([path]) as artifacts, Text(artifacts, str(path), Deadline(60), cache) as text:
            known = text.indexed
            assert text.lines == 500_000
            text.was_known = known  # type: ignore[attr-defined]
            return text

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "big.log"
        path.write_bytes(b"0123456789\n" * 500_000)
        os.utime(path, (1_700_000_000, 1_700_000_000))
        return path

    def test_the_index_of_a_large_file_is_known_the_second_time(
        self, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # The file was made just now; let it have been made long ago.
        monkeypatch.setattr("sidecars.distill.cache.RACY_SECONDS", -1e12)
        cache = IndexCache(tmp_path / "kept")
        first, second = self.open_once(path, cache), self.open_once(path, cache)
        assert (first.was_known, second.was_known) == (False, True)  # type: ignore[attr-defined]
        assert second.digest == hashlib.sha256(path.read_bytes()).hexdigest()
        assert not [name for name in (tmp_path / "kept").iterdir() if b"0123456789" in name.read_bytes()]

    def test_a_file_that_was_just_written_is_not_trusted(self, path: Path, tmp_path: Path) -> None:
        cache = IndexCache(tmp_path / "kept")
        self.open_once(path, cache)
        assert not self.open_once(path, cache).was_known  # type: ignore[attr-defined]

    def test_another_file_of_that_name_is_another_file(
        self, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sidecars.distill.cache.RACY_SECONDS", -1e12)
        cache = IndexCache(tmp_path / "kept")
        self.open_once(path, cache)
        path.write_bytes(b"9876543210\n" * 500_000)
        assert not self.open_once(path, cache).was_known  # type: ignore[attr-defined]

    def test_a_damaged_cache_is_no_error(self, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sidecars.distill.cache.RACY_SECONDS", -1e12)
        cache = IndexCache(tmp_path / "kept")
        self.open_once(path, cache)
        for each in (tmp_path / "kept").iterdir():
            each.write_bytes(b"\x00rubbish")
        assert not self.open_once(path, cache).was_known  # type: ignore[attr-defined]

    def test_a_cache_that_cannot_be_written_is_no_error(self, path: Path, tmp_path: Path) -> None:
        (tmp_path / "kept").write_text("a file where the folder should be")
        self.open_once(path, IndexCache(tmp_path / "kept"))
