"""``make soak``: thirty busy polecats for a while, and what grows meanwhile.

python -m tests.chaos.soak [--minutes N] [--polecats N] [--step SECONDS] [--report FILE]

Nothing is done to them. Each agent takes a step every few seconds, with a hook, events for its sidecars and now and
then a nudge. Twice a minute it is written down how much memory each kind of our processes has (PSS), how many
descriptors the Witness and the fork server hold, and how large the journal is; the slopes are fitted over the second
half, when everything has warmed up.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.chaos.__main__ import leave_environment, people
from tests.chaos.faults import Faults
from tests.chaos.invariants import Invariants
from tests.chaos.probe import Probe
from tests.chaos.report import commit
from tests.chaos.town import ChaosTown
from witness.process.table import command_line, read_table

_EVERY = 30.0
_REPORT = Path(__file__).parent.parent.parent / ".cache" / "soak.json"
_MIB = 1 << 20


def sample(town: ChaosTown) -> dict[str, float]:
    """One line of what is measured; memory in MiB."""
    found: Counter[str] = Counter()
    runs = town.runs()
    for row in read_table().values():
        if kind := _kind(town, runs, command_line(row.process)):
            found[f"{kind}_mib"] += _pss(row.process.pid)
            found[kind] += 1
    for name, process in (("witness", town.witness()), ("fork_server", town.fork_server())):
        if process:
            found[f"{name}_mib"] = _pss(process.pid)
            found[f"{name}_handles"] = len(os.listdir(f"/proc/{process.pid}/fd"))
    folder = town.town.runtime
    found["journal_mib"] = sum(path.stat().st_size for path in folder.glob("witness.db*"))
    found["logs_mib"] = sum(path.stat().st_size for path in folder.rglob("*.log"))
    return {name: value / _MIB if name.endswith("_mib") else float(value) for name, value in sorted(found.items())}


def _kind(town: ChaosTown, runs: set[str], words: str) -> str:
    if words.startswith("gt-sidecar "):
        return "sidecars" if words.split()[1].rpartition("/")[2] in runs else ""
    if str(town.base) not in words:
        return ""
    if words.startswith("tmux "):
        return ""  # its argument list names the first reaper that it started
    return "lookers" if words.startswith("gt-looker ") else "reapers" if "reaper.py" in words else ""


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)


def slope(points: list[tuple[float, float]]) -> float:
    """The least-squares slope of (seconds, value), for an hour."""
    middle = sum(at for at, _ in points) / len(points)
    spread = sum((at - middle) ** 2 for at, _ in points)
    return 3600 * sum((at - middle) * value for at, value in points) / spread if spread else 0.0


def soak(minutes: float, polecats: int, step: float, path: Path) -> int:
    """Run it; returns the number of broken invariants."""
    base = Path(tempfile.mkdtemp(prefix="gt-soak-"))
    town = ChaosTown(base, mount=False, step=step)
    nothing, samples = Faults(town, random.Random(0)), list[dict[str, float]]()  # noqa: S311
    probe = Probe(town.town, town.facts)
    look = Invariants(town, nothing, probe)
    began = time.monotonic()
    try:
        people(town, polecats)
        while time.monotonic() - began < 60 * minutes:
            for _ in range(3):
                nothing.nudge()
            town.finish_commands()
            samples.append({"seconds": round(time.monotonic() - began, 1), **sample(town)})
            town.attend(_EVERY)
        broken = look.settle()
        broken += [f"{name}: {line}" for name, lines in look.broken().items() for line in lines]
        half = samples[len(samples) // 2 :]
        report = {
            "commit": commit(),
            "minutes": round((time.monotonic() - began) / 60, 1),
            "polecats": polecats,
            "step_seconds": step,
            "steps": sum(path.read_bytes().count(b'"assistant"') for path in town.facts.glob("*.jsonl")),
            "nudges": len(nothing.sent),
            "longest_unanswered_seconds": round(look.longest, 3),
            "broken": broken,
            "first": samples[0],
            "last": samples[-1],
            "slope_an_hour": {
                name: round(slope([(each["seconds"], each.get(name, 0.0)) for each in half]), 3)
                for name in half[-1]
                if name != "seconds"
            },
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**report, "samples": samples}, indent=1) + "\n")
        print(json.dumps(report, indent=1))
        return len(broken)
    finally:
        town.close()
        shutil.rmtree(base, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak")
    parser.add_argument("--minutes", type=float, default=45.0)
    parser.add_argument("--polecats", type=int, default=30)
    parser.add_argument("--step", type=float, default=5.0, help="seconds between two steps of an agent")
    parser.add_argument("--report", type=Path, default=_REPORT)
    given = parser.parse_args()
    leave_environment()
    return 1 if soak(given.minutes, given.polecats, given.step, given.report) else 0


if __name__ == "__main__":
    sys.exit(main())
