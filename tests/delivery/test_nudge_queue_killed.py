"""Ten processes write and ten drain, and some of each are killed at any instant: each nudge arrives once, in order."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import until
from witness.delivery import queue_files

WRITERS = DRAINERS = 10
EACH = 30

WRITER = """
import sys
from witness.clock import SystemClock
from witness.errors import QueueFullError
from witness.delivery.nudge_queue import Nudge, NudgeQueue
folder, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
queue = NudgeQueue(folder, SystemClock(), depth=10_000)
for number in range(count):
    queue.enqueue(Nudge(name, f"{name} {number:04d}."))
    print(number, flush=True)
"""

# The agent's transcript is what was really handed over: one write, then the acknowledgement, as in a hook.
DRAINER = """
import os, sys
from witness.clock import SystemClock
from witness.delivery.nudge_queue import NudgeQueue
folder, transcript, stop = sys.argv[1:]
def delivered(nudge):
    return nudge.message.encode() in open(transcript, "rb").read()
def hand_over(taken):
    os.write(out, "".join(claim.nudge.message + "\\n" for claim in taken).encode())
queue = NudgeQueue(folder, SystemClock(), delivered)
out = os.open(transcript, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
print("ready", flush=True)
while True:
    over = os.path.exists(stop)
    taken = queue.deliver(hand_over, room=300)
    if over and not taken and not queue.pending():
        break
"""


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


def _delivered(transcript: Path, more: int) -> None:
    """Wait until so many more were handed over."""
    before = transcript.read_bytes().count(b"\n")
    until(lambda: transcript.read_bytes().count(b"\n") >= before + more)


def test_each_nudge_is_delivered_once_and_in_order(tmp_path: Path, processes: list[subprocess.Popen[str]]) -> None:
    chance = random.Random(7)  # noqa: S311 - which process dies when
    folder, transcript, stop = tmp_path / "queue", tmp_path / "transcript", tmp_path / "stop"
    folder.mkdir()
    transcript.touch()
    drainers = [start(DRAINER, folder, transcript, stop) for _ in range(DRAINERS)]
    processes += drainers
    for drainer in drainers:
        assert drainer.stdout
        assert drainer.stdout.readline() == "ready\n"
    writers = {f"w{number}": start(WRITER, folder, f"w{number}", EACH) for number in range(WRITERS)}
    processes += writers.values()

    # Half of the drainers and three writers die in the middle of it, wherever they are just then.
    for drainer in drainers[: DRAINERS // 2]:
        _delivered(transcript, chance.randrange(1, 12))
        drainer.send_signal(signal.SIGKILL)
    for name in ("w0", "w1", "w2"):
        _delivered(transcript, chance.randrange(4))
        writers[name].send_signal(signal.SIGKILL)
    written: dict[str, int] = {}
    for name, writer in writers.items():
        assert writer.stdout
        written[name] = len(writer.stdout.readlines())
        writer.wait()

    stop.touch()
    for drainer in drainers[DRAINERS // 2 :]:
        drainer.wait(40)
    # What is claimed now was claimed by the dead; it comes back once it is stale, and that is not waited for.
    past = time.time() - queue_files.STALE - 60
    for claimed in queue_files.claims(str(folder)):
        aged = folder / f"{claimed.partition(queue_files.CLAIM)[0]}{queue_files.CLAIM}{int(past):08x}"
        (folder / claimed).rename(aged)
        os.utime(aged, (past, past))
    last = start(DRAINER, folder, transcript, stop)
    processes.append(last)
    last.wait(40)

    arrived = transcript.read_text().splitlines()
    counts = Counter(arrived)
    doubled = {text for text, count in counts.items() if count > 1}
    assert not doubled
    for name, count in written.items():
        # A writer that was killed right after the rename did not come to say so.
        own = [text for text in arrived if text.startswith(f"{name} ")]
        assert count <= len(own) <= count + 1
        assert {f"{name} {number:04d}." for number in range(count)} <= set(own)
    assert queue_files.waiting(str(folder)) == []
    assert queue_files.claims(str(folder)) == []
    assert not (folder / queue_files.MALFORMED).exists()
    facts = [json.loads(line) for line in (folder / queue_files.LEDGER).read_text().splitlines() if line]
    assert {fact["stage"] for fact in facts} <= {"drained", "put-back"}
    put_back = {fact["message"] for fact in facts if fact["stage"] == "put-back"}
    for name in written:
        # In order, but for what a dead drainer had held.
        own = [text for text in arrived if text.startswith(f"{name} ") and text not in put_back]
        assert own == sorted(own)
