"""The totals over all runs, in one file: runs, seeds and commits add up there."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.invariants import INVARIANTS


@dataclass
class RunReport:
    """One run of chaos.

    Args:
        id: what no other run has.
        seed, commit: what it was.
        faults: how many faults there were so far, by kind.
        broken: what did not hold, by invariant.
        seconds: how long it took.
        settles: how often everything was looked at.
        nudges: how many were sent.
        polecats: how many runs of polecats there were.
        questions: how many questions a living Witness was asked.
        crowded: how many of them were late on a machine that was too crowded to tell why.
        longest: the longest that it left one open, in seconds, the machine's share taken off.
        skipped: what this machine did not let us do.
    """

    id: str
    seed: int
    commit: str
    faults: dict[str, int] = field(default_factory=dict)
    broken: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    settles: int = 0
    nudges: int = 0
    polecats: int = 0
    questions: int = 0
    crowded: int = 0
    longest: float = 0.0
    skipped: list[str] = field(default_factory=list)


def commit() -> str:
    """The commit that is tried, with a plus sign where files were changed since."""
    done = subprocess.run(["git", "describe", "--always", "--dirty=+"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def add(path: Path, run: RunReport) -> dict[str, Any]:
    """Write a run into the report, in place of what it said earlier of itself; returns the totals."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        runs: dict[str, Any] = json.loads(path.read_text())["runs"] if path.exists() else {}
        runs[run.id] = asdict(run)
        whole = {"totals": totals(runs), "runs": runs}
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(whole, indent=1) + "\n")
        fresh.replace(path)
    return dict(whole["totals"])


def totals(runs: dict[str, Any]) -> dict[str, Any]:
    """The sums over all runs, and over the commits."""
    kinds: Counter[str] = Counter()
    commits: Counter[str] = Counter()
    broken: Counter[str] = Counter(dict.fromkeys(INVARIANTS, 0))
    for run in runs.values():
        kinds.update(run["faults"])
        commits[run["commit"]] += sum(run["faults"].values())
        broken.update(run["broken"])
    return {
        "faults": kinds.total(),
        **{name: broken[name] for name in INVARIANTS},
        "longest_unanswered_seconds": round(max((run["longest"] for run in runs.values()), default=0.0), 3),
        **{
            name: round(sum(run.get(name, 0) for run in runs.values()))
            for name in ("seconds", "settles", "nudges", "polecats", "questions", "crowded")
        },
        "by_kind": dict(kinds.most_common()),
        "by_commit": dict(commits),
        "skipped": sorted({each for run in runs.values() for each in run["skipped"]}),
    }
