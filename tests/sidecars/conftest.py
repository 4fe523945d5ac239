"""A scratch town with one assignment, and events as the client's hooks record them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sidecars.observer.factory import Components, assemble
from sidecars.observer.inject.gate import Gates
from sidecars.observer.judge.verdict import Judge, Verdict
from sidecars.observer.pipeline import DecisionPipeline
from sidecars.type_reader.sidecar_type import SidecarType
from witness.assignment import Assignment
from witness.clock import ManualClock
from witness.config.settings import Settings
from witness.journal import Journal
from witness.judging.observation import Observation
from witness.names import GroupId
from witness.process import ProcessId

ISSUE = "---\nfiles: [src/**, tests/**]\nnot:\n  - src/private/**\n  - '*.env'\n---\nMake the sum right.\n"


@pytest.fixture
def assignment(tmp_path: Path) -> Assignment:
    run_dir = tmp_path / ".runtime" / "witness" / "runs" / "run-1"
    (run_dir / "spool").mkdir(parents=True)
    workdir = tmp_path / "work"
    workdir.mkdir()
    return Assignment(
        group=GroupId("main", "toast", "run-1"),
        name="scope",
        type="scope",
        argument="",
        session="gt-toast",
        socket="gt-test",
        town=str(tmp_path),
        workdir=str(workdir),
        run_dir=str(run_dir),
        journal=str(tmp_path / ".runtime" / "witness" / "witness.db"),
        queue=str(tmp_path / ".runtime" / "nudge_queue" / "gt-toast"),
        agent=ProcessId(0, 0),
        task=ISSUE,
    )


@pytest.fixture
def journal() -> Iterator[Journal]:
    with Journal(Path(":memory:")) as journal:
        yield journal


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def start_ticks(pid: int) -> int:
    """When a process was started, as the kernel says."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


@pytest.fixture
def agent() -> Iterator[subprocess.Popen[bytes]]:
    """A process to observe; it ends when its stdin is closed."""
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def tool_event(tool: str, response: Any = None, **given: Any) -> dict[str, Any]:
    """What Claude Code gives to a PostToolUse hook."""
    return {"hook_event_name": "PostToolUse", "tool_name": tool, "tool_input": given, "tool_response": response}


def as_payload(event: dict[str, Any]) -> bytes:
    return json.dumps(event).encode()


class ScriptedJudge:
    """Answers each call with the next verdicts of a list, and keeps what it was asked."""

    def __init__(self, *answers: list[Verdict]) -> None:
        self.answers = list(answers)
        self.asked: list[list[Observation]] = []

    def close(self) -> None:
        pass

    def sift(self, seen: Any) -> tuple[list[Verdict], list[Observation]]:
        return self.judge(seen), []

    def judge(self, seen: Any, said: Any = ()) -> list[Verdict]:
        self.asked.append(list(seen))
        self.said = list(said)
        return self.answers.pop(0)


class SlowJudge(ScriptedJudge):
    """One that has to be asked, as a model."""

    def sift(self, seen: Any) -> tuple[list[Verdict], list[Observation]]:
        return [], list(seen)


@pytest.fixture
def make_observer(assignment: Assignment, journal: Journal, clock: ManualClock) -> Callable[..., DecisionPipeline]:
    """An observer with a judge of the test's choice; fields of the type, and settings, may be changed."""

    def make(
        mind: Judge, /, name: str = "scope", settings: Settings | None = None, deliverer: Any = None, **fields: Any
    ) -> DecisionPipeline:
        kind = replace(SidecarType(name=name, judge="rules", cooldown=0.0, gap=0.0), **fields)
        mine = replace(assignment, name=name)
        gates = Gates(kind, mine, settings or Settings(), journal, clock)
        return DecisionPipeline(kind, mine, judge=mind, gates=gates, journal=journal, clock=clock, deliverer=deliverer)

    return make


@pytest.fixture
def scope(assignment: Assignment) -> Components:
    return assemble(assignment)
