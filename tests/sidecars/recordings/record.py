"""Records ``hour.jsonl.gz``: the real Claude Code at work on a scripted hour, seen by hooks and on its screen.

    python -m tests.sidecars.recordings.record

The client is the real one, with its spinners, timers and foldings; a scripted Messages server makes it call some
seventy tools in about two minutes, which are then stretched to an hour. Edits that contradict the specification of the
scripted project are labelled with what must be said of them.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.conftest import CLAUDE, Session, wait_until
from witness.events.spool_reader import SpoolReader
from witness.testing import Block, MessagesServer, Request, say, use
from witness.tmux import Tmux

HERE = Path(__file__).parent
HOUR = 3600.0
FRAME_SECONDS = 0.25
SPEC = """# Orders API
Input that breaks a rule must be answered with status 422. An unknown order must be answered with 404.
An order has at most 50 lines. Totals are always whole cents in `total_cents`.
"""
# What the scripted agent writes against the specification, by the step at which it does.
WRONG = {
    7: "status = 400  # bad input",
    19: "MAX_LINES = 500",
    31: 'body = {"total": 11.80}',
    44: "status = 410  # unknown order",
}


def script(work: Path, chance: random.Random) -> list[Callable[[Request], Block]]:
    """The agent's steps."""
    code = str(work / "orders" / "http.py")
    steps = [use("Read", file_path=code), use("Read", file_path=str(work / "docs" / "api.md"))]
    for number in range(60):
        kind = chance.choice(["edit", "edit", "bash", "bash", "read", "grep", "slow"])
        if number in WRONG or kind == "edit":
            line = WRONG.get(number, f"value_{number} = load({number})")
            steps.append(use("Edit", file_path=code, old_string=f"# slot {number}\n", new_string=f"{line}\n"))
        elif kind == "bash":
            steps.append(use("Bash", command=f"seq {chance.randint(1, 60)}; echo part {number} is done"))
        elif kind == "slow":
            steps.append(use("Bash", command=f"sleep {chance.uniform(1.5, 3):.1f}; echo the suite has passed {number}"))
        elif kind == "read":
            steps.append(use("Read", file_path=str(work / "docs" / "api.md")))
        else:
            steps.append(use("Bash", command=f"grep -n value_{number} orders/http.py || true"))
    return [_thoughtful(step, chance.uniform(0.2, 1.6) if chance.random() < 0.85 else 4.0) for step in steps]


def _thoughtful(step: Block, seconds: float) -> Callable[[Request], Block]:
    def think(_: Request) -> Block:
        time.sleep(seconds)  # a model that takes its time, with a spinner on the screen
        return step

    return think


def record() -> None:
    with tempfile.TemporaryDirectory() as folder, MessagesServer(client=True) as server:
        root = Path(folder).resolve()
        session = _prepare(root, server)
        server.play(*script(session.work, random.Random(7)), say("All of it is done."))  # noqa: S311
        frames: list[tuple[float, str]] = []
        over = threading.Event()
        try:
            session.start()
            session.type("make the orders API whole")
            began = time.time()
            filming = threading.Thread(target=_film, args=(session, frames, over))
            filming.start()
            wait_until(lambda: "All of it is done" in session.screen() and session.idle(), "the end of the work", 400)
            over.set()
            filming.join()
        finally:
            over.set()
            session.tmux.run("kill-server")
        _write(root, session, frames, began)


def _prepare(root: Path, server: MessagesServer) -> Session:
    work = root / "shop"
    (work / "orders").mkdir(parents=True)
    (work / "docs").mkdir()
    (work / "docs" / "api.md").write_text(SPEC)
    (work / "orders" / "http.py").write_text("".join(f"# slot {number}\n" for number in range(60)))
    home = root / "home"
    home.mkdir()
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    (home / ".claude.json").write_text(
        json.dumps(
            {
                "hasCompletedOnboarding": True,
                "theme": "dark",
                "customApiKeyResponses": {"approved": ["sk-test"], "rejected": []},
                "projects": {str(work): trusted},
            }
        )
    )
    os.environ.update(server.environment(), HOME=str(home))
    return Session(CLAUDE, work, root, Tmux(f"gt-record-{os.getpid()}"))


def _film(session: Session, frames: list[tuple[float, str]], over: threading.Event) -> None:
    while not over.wait(FRAME_SECONDS):
        frames.append((time.time(), session.screen()))


def _write(root: Path, session: Session, frames: list[tuple[float, str]], began: float) -> None:
    events: list[tuple[float, dict[str, Any]]] = []
    reader = SpoolReader(session.spool)
    while found := reader.read():
        events += [(event.time, event.payload) for event in found]
    stretch = HOUR / (frames[-1][0] - began)
    rows = [{"t": (at - began) * stretch, "screen": screen} for at, screen in frames]
    rows += [{"t": (at - began) * stretch, "event": payload} for at, payload in events]
    text = "".join(json.dumps(row) + "\n" for row in sorted(rows, key=lambda row: float(str(row["t"]))))
    text = text.replace(str(root / "shop"), "/home/dev/shop").replace(str(root / "home"), "/home/dev")
    text = text.replace(str(root), "/home/dev").replace(str(root).replace("/", "-"), "-home-dev")
    (HERE / "hour.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(events)} events, {len(frames)} screens, stretched {stretch:.1f} times")


if __name__ == "__main__":
    record()
