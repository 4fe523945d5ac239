"""However large the artifact, the memory stays."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MOST = 64 << 20

_MEASURE = """
import json, pathlib, resource, sys
from sidecars.distill import distill
from sidecars.distill.question import parse_question
from sidecars.distill.question import Matcher
import re2, sidecars.distill.decompress

def peak():
    # Not ru_maxrss where there is better: a new program begins with that of the process that has started it.
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

list(Matcher(parse_question("x y").terms).hits(b"x"))
before = peak()
if sys.argv[3:]:
    held = b"x" * int(sys.argv[3])
answer = distill([sys.argv[1]], sys.argv[2])
print(json.dumps({"more": peak() - before, **answer.to_dict()}))
"""


def measured(path: Path, question: str, *waste: str) -> dict[str, object]:
    """Answer in a process of its own; ``more`` is by how many bytes its memory rose above its start."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(path), question, *waste],
        capture_output=True, text=True, timeout=55, check=True,
    )  # fmt: skip
    result: dict[str, object] = json.loads(done.stdout)
    return result


def repeated(path: Path, block: bytes, size: int, needle: bytes = b"") -> Path:
    with path.open("wb") as out:
        written = 0
        while written < size:
            written += out.write(block)
            if needle and written > size // 2:
                written += out.write(needle)
                needle = b""
    return path


def test_the_measure_sees_what_is_wasted(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("the gasket ruptured\n")
    assert measured(tmp_path / "a", "what ruptured?")["more"] < 8 << 20  # type: ignore[operator]
    assert measured(tmp_path / "a", "what ruptured?", str(80 << 20))["more"] > MOST  # type: ignore[operator]


def test_one_line_of_100_mb(tmp_path: Path) -> None:
    path = repeated(tmp_path / "a", b"word and word " * 10_000, 100 << 20, b" the gasket ruptured ")
    found = measured(path, "what ruptured?")
    assert "the gasket ruptured" in str(found["evidence"])
    assert found["more"] < MOST  # type: ignore[operator]


@pytest.mark.real
def test_one_line_of_100_mb_that_is_json(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    item = json.dumps({"name": "x" * 60, "values": "y" * 940, "ok": True}).encode() + b", "
    with path.open("wb") as out:
        out.write(b'{"items": [')
        for number in range(100_000):
            out.write(item if number != 70_000 else b'{"name": "the gasket ruptured"}, ')
        out.write(b"null]}")
    assert path.stat().st_size > 100_000_000
    found = measured(path, "what ruptured?")
    assert "'/items/70000'" in str(found["evidence"])
    assert found["more"] < MOST  # type: ignore[operator]


@pytest.mark.real
def test_every_line_a_hit(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with path.open("w") as out:
        for number in range(400_000):
            out.write(f"request {number:x} failed {number * 7919 % 1_000_003:x} times at shard-{number % 977}\n")
    found = measured(path, "how many requests failed?")
    assert "fail: 400000" in str(found["answer"])
    assert found["more"] < MOST  # type: ignore[operator]


@pytest.mark.real
def test_a_compressed_file(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    with gzip.open(path, "wb", compresslevel=1) as out:
        for number in range(300):
            out.write(b"nothing to see on this line\n" * 30_000 + (b"the gasket ruptured\n" if number == 200 else b""))
    found = measured(path, "what ruptured?")
    assert "the gasket ruptured" in str(found["evidence"])
    assert found["more"] < MOST  # type: ignore[operator]


@pytest.mark.real
def test_a_sparse_file_of_5_gb(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with path.open("wb") as out:
        out.write(b"begin\n")
        out.seek(5 << 30)
        out.write(b"\nthe gasket ruptured\n")
    found = measured(path, "what ruptured?")
    assert "the gasket ruptured" in str(found["evidence"])
    assert found["more"] < MOST  # type: ignore[operator]
    os.truncate(path, 0)
