"""Ten thousand nudges both ways: Gas Town's writers and ours, its drain and ours, all at once."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.gastown.observed import group
from tests.gastown.real_town import RealPolecat, RealTown
from witness.api import Witness
from witness.clock import SystemClock
from witness.config.resources import hooks_dir
from witness.delivery import queue_files
from witness.delivery.nudge_queue import Nudge, NudgeQueue
from witness.errors import QueueFullError

ROOT = Path(__file__).resolve().parents[2]
NUMBER = int(os.environ.get("GASTOWN_NUDGES", "10000"))


class Traffic:
    """What is said to one polecat by many, and what comes out where."""

    def __init__(self, town: RealTown, polecat: RealPolecat, run: str) -> None:
        self.town, self.polecat, self.run = town, polecat, run
        self.queue = NudgeQueue(town.town.queue_dir(polecat.session), SystemClock())
        self.said: list[str] = []
        self.by_hooks: list[str] = []
        self.by_watch: list[str] = []
        self.by_theirs: list[str] = []
        # Gas Town's drain runs without a pause: one turn of it for some of ours, so that each has its share.
        self._turns = threading.Semaphore(0)

    def write_theirs(self, name: str, number: int) -> None:
        """Gas Town's own writer: create, then write; it waits while the queue is full."""
        self.said += [f"{name}-{at:04}" for at in range(number)]
        self.town.run("nq", "enq", str(self.town.root), self.polecat.session, str(number), name, seconds=280)

    def write_by_gt(self, number: int) -> None:
        """The real ``gt nudge``, which refuses what finds the queue full."""
        for name in (f"gt-{at:04}" for at in range(number)):
            if not self.town.run("gt", "nudge", self.polecat.address, name, "--mode", "queue", check=False).returncode:
                self.said.append(name)

    def write_ours(self, number: int) -> None:
        """A sidecar's writer."""
        for name in (f"ours-{at:04}" for at in range(number)):
            while True:
                try:
                    note = Nudge("sidecar:scope", name, kind="sidecar", thread_id=f"scope/{name}", run=self.run)
                    self.queue.enqueue(note, durable=False)
                    break
                except QueueFullError:
                    os.sched_yield()
            self.said.append(name)

    def drain_by_hook(self) -> None:
        """The hook after a tool call."""
        payload = json.dumps({"hook_event_name": "PostToolUse", "tool_name": "Read", "tool_input": {"file_path": "/x"}})
        argv = (sys.executable, "-S", "-I", str(hooks_dir() / "gt_hook.py"), "PostToolUse")
        self.by_hooks.append(self.polecat.run(*argv, stdin=payload).stdout)
        self._turns.release()

    def drain_by_watch(self) -> None:
        """The watch beside an idle prompt."""
        argv = (sys.executable, "-S", "-I", str(hooks_dir() / "gt_hook.py"), "Idle")
        self.wake()
        told = {"CLAUDE_CODE_ENTRYPOINT": "cli", "AI_AGENT": "claude-code_2-1-332_harness"}
        self.by_watch.append(self.polecat.run(*argv, stdin="{}", **told).stderr)

    def wake(self) -> None:
        """Something for the watch to end with; a full queue has enough."""
        with suppress(QueueFullError):
            self.queue.enqueue(Nudge("human", "wake", run=self.run), durable=False)

    def drain_by_theirs(self) -> None:
        """Gas Town's own drain: deletes, then prints; what it cannot parse it deletes too."""
        for _ in range(20):
            self._turns.acquire(timeout=5.0)
        done = self.town.run("nq", "drain", str(self.town.root), self.polecat.session, "1", check=False)
        self.by_theirs.append(done.stdout)

    def drain_by_mail_check(self) -> None:
        """The real hook of a prompt."""
        self.by_theirs.append(self.polecat.run("gt", "mail", "check", "--inject", stdin="{}").stdout)

    def ledger(self) -> Counter[str]:
        """How often each file's nudge is told of in our ledger as handed over or buried."""
        found: Counter[str] = Counter()
        for line in (self.queue.folder / queue_files.LEDGER).read_text().splitlines():
            if line and (fact := json.loads(line))["stage"] in ("drained", "undelivered"):
                found[fact.get("message", "")] += 1
        return found


@pytest.mark.timeout(600)
def test_none_is_lost_by_us_and_none_comes_twice(gastown: RealTown, witness: Witness, observed: RealPolecat) -> None:
    """Point 2."""
    found = group(witness, observed)
    assert found is not None
    traffic = Traffic(gastown, observed, found.id.run)
    each = (NUMBER - 20) // 3
    writing = [
        threading.Thread(target=traffic.write_theirs, args=("one", each)),
        threading.Thread(target=traffic.write_theirs, args=("two", each)),
        threading.Thread(target=traffic.write_ours, args=(NUMBER - 20 - 2 * each,)),
        threading.Thread(target=traffic.write_by_gt, args=(20,)),
    ]
    stop = threading.Event()

    def again(drain: Callable[[], None]) -> None:
        while not stop.is_set():
            drain()

    drains = (traffic.drain_by_hook, traffic.drain_by_hook, traffic.drain_by_watch, traffic.drain_by_theirs,
              traffic.drain_by_mail_check)  # fmt: skip
    draining = [threading.Thread(target=again, args=(drain,)) for drain in drains]
    began = time.monotonic()
    for thread in (*writing, *draining):
        thread.start()
    for thread in writing:
        thread.join()
    stop.set()
    for thread in draining:
        while thread.is_alive():
            traffic.wake()
            thread.join(1.0)
    traffic.drain_by_hook()
    while traffic.queue.pending():
        traffic.drain_by_hook()
    places = {"our hook": traffic.by_hooks, "our watch": traffic.by_watch, "Gas Town's drain": traffic.by_theirs}
    heard = {where: _words(texts, set(traffic.said)) for where, texts in places.items()}
    total = sum(heard.values(), Counter[str]())
    ledger = traffic.ledger()
    by_us = heard["our hook"] + heard["our watch"]
    assert {name: count for name, count in total.items() if count > 1} == {}, "one came twice"
    missing = [name for name in traffic.said if not total[name]]
    # What our ledger says we had, or what lies in our folders, would be a loss of ours.
    ours = [name for name in missing if ledger[name]]
    assert ours == [], "lost by us"
    assert not list((traffic.queue.folder / "malformed").glob("*.json"))
    assert {name for name in by_us if not ledger[name]} == set(), "handed over without a line"
    report = {
        "said": len(traffic.said), "seconds": round(time.monotonic() - began, 1), "load": os.getloadavg()[0],
        "heard": {where: sum(count.values()) for where, count in heard.items()},
        "lost_by_gas_towns_drain": missing,
    }  # fmt: skip
    (ROOT / ".cache").mkdir(exist_ok=True)
    (ROOT / ".cache" / "gastown-nudges.json").write_text(json.dumps(report, indent=1))
    print(json.dumps({**report, "lost_by_gas_towns_drain": len(missing)}))


def _words(texts: list[str], said: set[str]) -> Counter[str]:
    found = re.findall(r"\b(?:one|two|ours|gt)-\d{4}\b", "\n".join(texts))
    return Counter(each for each in found if each in said)
