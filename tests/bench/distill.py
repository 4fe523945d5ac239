"""Questions about huge artifacts: found, how small, how fast, in how much memory, and with how many tokens."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.table import Row
from tests.distill.artifacts import QUESTION, EvalLog, write_big_log, write_eval_log
from tests.distill.test_memory import measured, repeated
from witness.testing import MessagesServer, say, use

_RUNS = 7
_MIB = 1 << 20


def index() -> list[Row]:
    """The index backend as a command, without any cache, beside grep over the same file in turn (medians of 7).

    Demanded: every line needed is quoted, output at most 1/125 of the input, at most 5 times grep -c on 200 MB, at most
    64 MiB of memory above the start.
    """
    with tempfile.TemporaryDirectory(prefix="gt-bench-", dir="/var/tmp") as folder:
        small, big = Path(folder) / "eval.log", Path(folder) / "big.log"
        return [_row(path, facts) for path, facts in ((small, write_eval_log(small)), (big, write_big_log(big)))]


def _row(path: Path, facts: EvalLog) -> Row:
    ours, word, words = [], [], []
    output = ""
    for run in range(_RUNS):
        *times, output = _timed(
            [sys.executable, "-m", "witness.cli", "distill", "--artifact", str(path), "--question", QUESTION, "--json"],
            XDG_CACHE_HOME=str(path.parent / f"cache-{run}"),
            XDG_STATE_HOME=str(path.parent / "state"),
        )
        ours.append(times)
        word.append(_timed(["grep", "-c", "fail", str(path)])[:2])
        words.append(_timed(["grep", "-c", "-i", "-E", "eval|case|pass|fail|check", str(path)])[:2])
    wall, processor = (statistics.median(each[at] for each in ours) for at in (0, 1))
    grep_wall, grep_processor = (statistics.median(each[at] for each in word) for at in (0, 1))
    answer = json.loads(output)
    found = sum(
        any(needed in each["quote"] and each["verified"] for each in answer["evidence"]) for needed in facts.needed
    )
    size = path.stat().st_size
    more = measured(path, QUESTION)["more"]
    assert isinstance(more, int)
    return Row(
        {
            "artifact": f"log, {size / 1e6:.3g} MB",
            "lines needed": f"{found} of {len(facts.needed)} quoted",
            "output": f"{len(output.encode())} bytes, 1/{size // len(output.encode())}",
            "gt distill, s": wall,
            "grep -c fail, s": grep_wall,
            "times grep -c": wall / grep_wall,
            "in processor time": processor / grep_processor,
            "grep -ciE of the question's words, s": statistics.median(each[0] for each in words),
            "memory above start, MiB": more / _MIB,
        }
    )


def _timed(command: list[str], **environment: str) -> tuple[float, float, str]:
    """Seconds on the wall, seconds on a processor, and what it printed."""
    with tempfile.TemporaryFile() as out:
        began = time.perf_counter()
        program = subprocess.Popen(command, stdout=out, stdin=subprocess.DEVNULL, env={**os.environ, **environment})
        _, status, used = os.wait4(program.pid, 0)
        wall = time.perf_counter() - began
        program.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return wall, used.ru_utime + used.ru_stime, out.read().decode()


def shapes() -> list[Row]:
    """Memory and time of awkward shapes, each in a process of its own (one run each).

    Demanded: at most 64 MiB above the start, whatever the size.
    """
    needle = b" the gasket ruptured "
    block = b"nothing to see in this part of it, nor in the next one either\n" * 16_000
    rows = []
    with tempfile.TemporaryDirectory(prefix="gt-bench-", dir="/var/tmp") as folder:
        place = Path(folder)

        def row(name: str, path: Path) -> None:
            began = time.perf_counter()
            found = measured(path, "what ruptured?")
            seconds = time.perf_counter() - began
            more = found["more"]
            assert isinstance(more, int)
            quoted = "the gasket ruptured" in str(found["evidence"])
            rows.append(
                Row(
                    {
                        "artifact": name,
                        "needle quoted": quoted,
                        "seconds": seconds,
                        "memory above start, MiB": more / _MIB,
                    }
                )
            )
            path.unlink()

        row("one line of 100 MiB", repeated(place / "a", b"word and word " * 10_000, 100 * _MIB, needle))
        row("JSON on one line, 100 MiB", _json(place / "b.json", 100 * _MIB))
        row("1 GiB of lines", repeated(place / "c", block, 1024 * _MIB, needle + b"\n"))
        packed = repeated(place / "d", block, 512 * _MIB, needle + b"\n")
        for tool, ending in (("gzip", ".gz"), ("zstd", ".zst"), ("xz", ".xz")):
            if subprocess.run(["which", tool], capture_output=True, check=False).returncode == 0:
                with open(f"{packed}{ending}", "wb") as out:
                    subprocess.run([tool, "-1", "-c", "-q", str(packed)], stdout=out, check=True)
                row(f"512 MiB in {ending}", Path(f"{packed}{ending}"))
    return rows


def _json(path: Path, size: int) -> Path:
    item = json.dumps({"name": "x" * 60, "value": "y" * 400, "ok": True}).encode() + b", "
    with path.open("wb") as out:
        written = out.write(b'{"items": [')
        while written < size:
            written += out.write(item)
            if size // 2 <= written < size // 2 + len(item):
                written += out.write(b'{"name": "the gasket ruptured"}, ')
        out.write(b"null]}")
    return path


def model() -> list[Row]:
    """The model backend on the 190 KB log, with a scripted model that answers at once, or after two looks.

    Demanded: at most 6 steps and 8,000 tokens sent (counted by the server, 3.5 bytes each).
    """
    from sidecars.distill import Limits, distill
    from sidecars.llm.client import Endpoint

    rows = []
    with tempfile.TemporaryDirectory(prefix="gt-bench-") as folder:
        path = Path(folder) / "eval.log"
        facts = write_eval_log(path)
        evidence = [{"path": "eval.log", "locator": "L1", "quote": quote} for quote in facts.needed]
        last = say(json.dumps({"answer": "17 of 18 passed; merge-conflict failed on clean-tree", "evidence": evidence}))
        looks = [use("Grep", pattern="FAIL|summary", context=1), use("Read", path="eval.log", first=430, last=436)]
        for name, steps in (("answers at once", [last]), ("looks twice", [*looks, last])):
            with MessagesServer() as server:
                server.play(*steps)
                answer = distill(
                    [path],
                    QUESTION,
                    backend="model",
                    endpoint=Endpoint("sk-bench", url=server.url),
                    limits=Limits(timeout=60),
                )
                rows.append(
                    Row(
                        {
                            "model": name,
                            "steps": answer.spending.steps,
                            "tokens sent": sum(request.tokens for request in server.requests),
                            "dollars": answer.spending.dollars,
                            "evidence verified": answer.verified,
                        }
                    )
                )
    return rows
