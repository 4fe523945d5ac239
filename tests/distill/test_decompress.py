"""Compressed files and wide encodings become plain text; what is missing is said."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from sidecars.distill import decompress
from sidecars.distill.decompress import Expanded
from sidecars.distill.errors import TimeoutSpentError
from sidecars.distill.folder import IgnoreRules
from sidecars.distill.request import Deadline
from sidecars.distill.text import Text

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Opened = Callable[..., Text]
PLAIN = b"".join(b"line %d of the plain text\n" % number for number in range(20_000))
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": partial(lzma.compress, preset=0),
    "zst": zstd.compress,
    "bz2": bz2.compress,
}


@pytest.mark.parametrize("name", COMPRESS)
def test_compressed_files_are_read_as_what_they_hold(opened: Opened, name: str) -> None:
    packed = COMPRESS[name](PLAIN)
    text = opened(packed)
    assert text.compression == name
    assert text.read(0, text.size) == PLAIN
    assert text.lines == 20_000
    assert text.disk_size == len(packed)
    assert text.digest == hashlib.sha256(packed).hexdigest()
    assert text.gaps == []


@pytest.mark.parametrize("name", COMPRESS)
def test_a_stream_that_ends_early_gives_what_it_has_and_says_so(opened: Opened, name: str) -> None:
    noise = b"".join(os.urandom(20).hex().encode() + b"\n" for _ in range(50_000))
    packed = COMPRESS[name](noise)
    text = opened(packed[: len(packed) * 2 // 3])
    assert text.size > len(noise) // 4
    assert text.read(0, text.size) == noise[: text.size]
    assert len(text.gaps) == 1
    assert "ends early" in text.gaps[0]


def test_two_compressed_parts_in_a_row_are_one_text(opened: Opened) -> None:
    text = opened(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    assert text.read(0, 100) == b"one\ntwo\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_wide_encodings_are_read_as_utf_8(opened: Opened, encoding: str) -> None:
    text = opened("first line\r\nStraße 日本\n".encode(encoding))
    assert text.read(0, 100).decode() == "first line\r\nStraße 日本\n"
    assert text.encoding.startswith(encoding[:6])


def test_utf_16_inside_gz(opened: Opened) -> None:
    assert opened(gzip.compress("häagen\n".encode("utf-16"))).read(0, 100).decode() == "häagen\n"


def test_a_character_across_two_pieces_is_one(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompress, "PIECE", 7)
    plain = "\ufeff" + "𝄞 clef 日本 " * 10
    assert opened(plain.encode("utf-16-le")).read(0, 1000).decode() == plain[1:]


def test_utf_16_with_half_a_character_at_its_end_is_still_text(opened: Opened) -> None:
    assert opened("error here".encode("utf-16")[:-1]).read(0, 100).decode() == "error her\ufffd"


@pytest.mark.parametrize("content", [b"", b"\n", b"plain", b"\x1f\x8b", b"\xff\xfe", bytes(range(256))])
def test_plain_bytes_and_stumps_do_no_harm(opened: Opened, content: bytes) -> None:
    text = opened(content)
    assert text.lines >= 0


def test_a_bomb_is_cut_and_said(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompress, "MOST_EXPANDED", 3 << 20)
    text = opened(gzip.compress(bytes(64 << 20)))
    assert text.size <= 3 << 20
    assert "unfolds to more than" in text.gaps[0]


def test_the_temporary_file_has_no_name(opened: Opened, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    opened(gzip.compress(PLAIN))
    assert [name for name in os.listdir(str(tmp_path)) if name.startswith("gt-distill-")] == []


def test_a_million_members_that_hold_nothing_end_at_the_deadline(tmp_path: Path) -> None:
    path = tmp_path / "empty.gz"
    path.write_bytes(gzip.compress(b"") * 500_000)
    began = time.monotonic()
    with path.open("rb") as file, pytest.raises(TimeoutSpentError):
        Expanded(file.fileno(), path.stat().st_size, path.read_bytes()[:16], Deadline(0.3))
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("kind", ["xz", "zst"])
def test_a_dictionary_larger_than_we_grant_is_a_gap(tmp_path: Path, kind: str) -> None:
    if kind == "xz":
        filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 29}]
        data = lzma.compress(b"hello", format=lzma.FORMAT_XZ, filters=filters)
    else:
        # A frame whose header asks for a window of 1 GiB (RFC 8878, 3.1.1.1.2), and one raw block.
        data = b"\x28\xb5\x2f\xfd\x00" + bytes([20 << 3]) + b"\x29\x00\x00hello"
    path = tmp_path / "large"
    path.write_bytes(data)
    with path.open("rb") as file:
        plain = Expanded(file.fileno(), len(data), data[:16], Deadline(10))
    os.close(plain.fd)
    assert plain.size == 0
    assert "ends early or is damaged" in plain.gaps[0]


def test_padding_between_and_after_members_is_none_of_the_text(opened: Opened) -> None:
    padded = lzma.compress(b"one\n") + bytes(8) + lzma.compress(b"two\n") + bytes(4)
    assert opened(padded).read(0, 100) == b"one\ntwo\n"
    assert opened(gzip.compress(b"one\n") + bytes(100_000)).read(0, 100) == b"one\n"


@pytest.mark.parametrize("text", [b"*a" * 500_000, bytes(1 << 20), b"a\n" * 100_000, b"[" * 900, b"\\"])
def test_rules_to_leave_files_out_that_no_person_wrote_cost_nothing(tmp_path: Path, text: bytes) -> None:
    (tmp_path / ".gitignore").write_bytes(text)
    folder = os.open(tmp_path, os.O_RDONLY)
    began = time.monotonic()
    rules = IgnoreRules.of(folder)
    os.close(folder)
    if rules is not None:
        rules.verdict("a" * 200)
    assert time.monotonic() - began < 2
