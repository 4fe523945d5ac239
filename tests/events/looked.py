"""A real looker over a work tree, and tool calls in it as hooks tell of them."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

from tests.waiting import until
from witness.events.effects import Effects
from witness.events.spool_reader import SpooledEvent, SpoolReader
from witness.events.spool_writer import LOOKER, record_event

PATIENCE = 30.0
_PROGRAM = "import sys; from witness.events.looker import run; sys.exit(run(sys.argv[1], tuple(sys.argv[2:]), 0))"
# The same where the kernel gives no watches.
_NO_WATCHES = "import witness.events.tree_watch as t; t._open_inotify = lambda: None; "
_NUMBERS = itertools.count()


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


class Run:
    """One polecat's run: its spool, and its agent's calls."""

    def __init__(self, folder: Path, workdir: Path) -> None:
        self.workdir, self.spool = workdir, folder / "spool"
        self.spool.mkdir(parents=True)
        self.reader = SpoolReader(self.spool)

    def tell(self, event: str, wait: float = 0.0, **payload: Any) -> None:
        """What the hook does with an event."""
        payload = {"hook_event_name": event, "session_id": "s", "cwd": str(self.workdir), **payload}
        before = Path.cwd()
        try:
            record_event(str(self.spool), json.dumps(payload).encode(), wait=wait)
        finally:
            os.chdir(before)

    def prompt(self) -> None:
        """The person types something: what was changed until now is not the next call's."""
        self.tell("UserPromptSubmit", prompt="go on")
        # And something else takes what has changed until now.
        self.tell("PostToolUse", PATIENCE, tool_name="mcp__any__nothing", duration_ms=0)

    def end(self, command: str, began: float, code: int, **payload: Any) -> SpooledEvent:
        event = "PostToolUse" if code == 0 else "PostToolUseFailure"
        said: dict[str, Any] = {"tool_response": {"stdout": ""}} if code == 0 else {"error": f"Exit code {code}"}
        said |= {"tool_use_id": f"call-{next(_NUMBERS)}", "duration_ms": (time.time() - began) * 1000}
        self.reader = SpoolReader.at_end(self.spool)
        self.tell(
            event, **{"wait": PATIENCE, "tool_name": "Bash", "tool_input": {"command": command}, **said, **payload}
        )
        return self.reader.read()[0]

    def call(self, command: str, cwd: str = "", **payload: Any) -> Effects:
        """Run a shell command as the agent's tool does; what was seen of it."""
        began = time.time()
        done = subprocess.run(["bash", "-c", command], cwd=self.workdir / cwd, check=False, capture_output=True)
        effects = self.end(command, began, done.returncode, **payload).effects
        assert effects is not None, "nobody looked"
        return effects


class Looked:
    """A work tree with a looker; a context manager.

    Args:
        folder: where the runs have their files.
        tree: the work tree.
        environment: for the looker besides its own.
        watches: whether the kernel gives any.
    """

    def __init__(
        self, folder: Path, tree: Path, environment: dict[str, str] | None = None, *, watches: bool = True
    ) -> None:
        self._folder, self.tree, self._environment = folder, tree, environment or {}
        self._program = _PROGRAM if watches else _NO_WATCHES + _PROGRAM

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            [sys.executable, "-c", self._program, str(self.tree), str(self._folder / "runtime")],
            stdin=subprocess.PIPE,
            env={**os.environ, **self._environment},
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) in (0, -9)

    def run(self, name: str = "one", workdir: Path | None = None) -> Run:
        """A polecat that works here."""
        run = Run(self._folder / name, workdir or self.tree)
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"add": str(run.spool), "workdir": str(run.workdir)}).encode() + b"\n")
        self.process.stdin.flush()
        until((run.spool / LOOKER).exists, "the looker serves the run", below=run.spool)
        run.prompt()
        return run
