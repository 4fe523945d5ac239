"""What a sidecar costs: its verdict, the way of an event, its idleness, and its calls of a model in an hour."""

from __future__ import annotations

import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from sidecars.observer.context.gather import gather
from sidecars.observer.judge.rules import RulesJudge
from sidecars.observer.observe.events import EventReader
from sidecars.tuning.evaluate import CASES_FILE, assignment_of, load_cases, payload_of
from sidecars.tuning.replay import NAIVE_SECONDS
from sidecars.type_reader.rule_reader import SHIPPED
from sidecars.type_reader.type_loader import load_type
from tests.bench.table import Row
from tests.sidecars.recordings.hour import LABELS, run
from tests.sidecars.recordings.record import HOUR
from witness.agents.hook_entries import hook_command
from witness.assignment import Assignment
from witness.events.spool_reader import append_event
from witness.journal import Journal
from witness.names import GroupId
from witness.process import ProcessId

_ROOT = Path(__file__).parents[2]
# Hooks wait for a verdict in a process of their own; here one process asks again and again.
_ASKER = """
import os, sys, time
from witness.events.spool_writer import append_record, wake
spool, queue = sys.argv[1], sys.argv[2]
for line in sys.stdin.buffer:
    began = time.perf_counter()
    append_record(spool, line)
    wake(spool, 10.0)
    seconds = time.perf_counter() - began
    queued = os.listdir(queue) if os.path.isdir(queue) else []
    for name in queued:
        if name.endswith(".json"):
            os.unlink(f"{queue}/{name}")
    print(seconds, sum(name.endswith(".json") for name in queued), flush=True)
"""


def rules_verdict() -> list[Row]:
    """Time of one rules verdict over the shipped cases' events; at most 1 ms in the median is asked for."""
    rows = []
    for name in sorted(path.parent.name for path in SHIPPED.glob(f"*/{CASES_FILE}")):
        kind = load_type(name)
        times = []
        for case in load_cases(SHIPPED / name / CASES_FILE):
            with tempfile.TemporaryDirectory() as folder:
                assignment = assignment_of(case, Path(folder))
                material = gather(kind, assignment)
                judge = RulesJudge((*material.rules, *kind.rules), material)
                reader = EventReader(assignment.workdir)
                for event in case.events:
                    payload = payload_of(event)
                    times += _times(lambda: judge.judge([seen] if (seen := reader.read(payload, "e")) else []), 50)  # noqa: B023
        rows.append(_row(type=name, times=times, unit=1e6, name="µs"))
    return rows


def event_to_nudge() -> list[Row]:
    """From a tool call's event to the nudge in the queue, through a real sidecar process; 20 ms median is asked for."""
    rows = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        assignment = _observed(folder, stack, "scope")
        _start(stack, assignment, folder)
        asker = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", _ASKER, str(assignment.spool), assignment.queue],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=_ROOT,
                env=_environment(),
            )
        )
        for name, path in (("silent", "src/{}.py"), ("nudge queued", "billing/{}.py")):
            times, queued = [], 0
            for number in range(200):
                seconds, count = _ask(asker, path.format(number))
                times.append(seconds)
                queued += count
            rows.append(_row(event=name, times=times, unit=1e3, name="ms", queued=queued))
        assert asker.stdin is not None
        asker.stdin.close()
        asker.wait()
    return rows


def late_or_lost() -> list[Row]:
    """Real hooks, three at a time, beside a real sidecar: 0 of 10,000 events late or lost is asked for.

    A tenth of the events is a violation. Late is a remark that none of the hooks which ran with its event has handed
    over; lost is an event without a decision, or a remark that nobody has. ``GT_BENCH_EVENTS`` says how many events one
    run has (300); the totals of all runs of one commit add up in ``.cache/bench-events.json``.
    """
    count = int(os.environ.get("GT_BENCH_EVENTS", "300"))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        assignment = replace(_observed(folder, stack, "scope"), name="scope")
        _start(stack, assignment, folder)
        variables = {
            "GT_WITNESS_SPOOL": str(assignment.spool), "GT_WITNESS_QUEUE": assignment.queue,
            "GT_WITNESS_HOOK_WAIT": "100", "GT_WITNESS_GROUP": "main/bench/run-1",
        }  # fmt: skip
        Path(assignment.queue).mkdir()
        heard: set[str] = set()
        late = 0
        spans: list[float] = []
        numbers = iter(range(count))
        while batch := list(itertools.islice(numbers, 3)):
            paths = [f"{'billing' if number % 10 == 0 else 'src'}/{number}.py" for number in batch]
            told, seconds = _hooks(paths, {**_environment(), **variables})
            spans += seconds
            wrong = {path for path in paths if path.startswith("billing")}
            late += sum(path not in told for path in wrong)
            heard |= set(re.findall(r"billing/\d+\.py", told))
        told, _ = _hooks(["src/last.py"], {**_environment(), **variables})
        heard |= set(re.findall(r"billing/\d+\.py", told))
        with Journal(Path(assignment.journal)) as journal:
            decided = len({each.event for each in journal.decisions.of("run-1", last=1_000_000)}) - 1
    lost = count - decided + len(range(0, count, 10)) - len(heard)
    total = _add_up({"events": count, "violations": len(range(0, count, 10)), "late": late, "lost": lost})
    return [
        _row(run="this one", times=spans, unit=1e3, name="ms", late=late, lost=lost),
        Row(
            {"run": f"all of {total['commit']}", "late": total["late"], "lost": total["lost"], "count": total["events"]}
        ),
    ]


def _hooks(paths: Sequence[str], environment: dict[str, str]) -> tuple[str, list[float]]:
    """All that hooks which run at the same time hand over, and how long each took."""
    with ThreadPoolExecutor(len(paths)) as pool:
        done = list(pool.map(lambda path: _hook(path, environment), paths))
    return "".join(text for text, _ in done), [seconds for _, seconds in done]


def _hook(path: str, environment: dict[str, str]) -> tuple[str, float]:
    began = time.perf_counter()
    done = subprocess.run(
        hook_command("PostToolUse"), input=_edit(path), env=environment, capture_output=True, check=True
    )
    return done.stdout.decode(), time.perf_counter() - began


def _add_up(figures: dict[str, int]) -> dict[str, Any]:
    """Add a run's figures to those of earlier runs of the same commit."""
    path = _ROOT / ".cache" / "bench-events.json"
    commit = subprocess.run(
        ["git", "-C", str(_ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    known = json.loads(path.read_text()) if path.exists() else {}
    if known.get("commit") != commit:
        known = {"commit": commit}
    total = {"commit": commit, **{key: known.get(key, 0) + value for key, value in figures.items()}}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(total))
    return total


def idle_sidecars() -> list[Row]:
    """CPU of 100 idle sidecars in all, forked from one warm process; at most 3 % of a core is asked for."""
    count, seconds = 100, 30.0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        first = _observed(folder, stack, "scope")
        names = [f"{kind}-{number}" for number in range(count // 4) for kind in ("scope", "specs", "tools", "blocks")]
        for name in names:
            kind = name.partition("-")[0]
            # The poll intervals are the shipped ones, and the agent has hooks: it has recorded an event.
            mine = replace(first, name=name, type=kind, argument="", session="", socket="")
            (folder / f"{name}.json").write_text(mine.to_json())
        append_event(first.spool, _edit("src/a.py"))
        fork_server = stack.enter_context(_forked(folder, names))
        assert fork_server.stdout is not None
        lines = [fork_server.stdout.readline().strip() for _ in range(2 * len(names))]
        pids = [int(line) for line in lines if line != "ready"]
        processes = [psutil.Process(pid) for pid in pids]
        before = [sum(process.cpu_times()[:2]) for process in processes]
        began = time.monotonic()
        time.sleep(seconds)
        spent = sum(sum(process.cpu_times()[:2]) - used for process, used in zip(processes, before, strict=True))
        share = 100 * spent / (time.monotonic() - began)
        memory = statistics.median(process.memory_full_info().uss for process in processes) / 1e6
        for process in processes:
            process.kill()
    return [Row({"sidecars": count, "seconds": seconds, "% of a core": share, "median MB of its own": memory})]


def hour_of_a_model() -> list[Row]:
    """Model calls in a recorded hour of the real Claude Code; at most a tenth of a call every 10 s is asked for."""
    rows = []
    naive = round(HOUR / NAIVE_SECONDS)
    for source, words in (("event", "hooks"), ("screen", "the pane")):
        for judge in ("model", "rules+model"):
            with tempfile.TemporaryDirectory() as folder:
                done, oracle = run(Path(folder), source, judge)
                cost, _ = run(Path(folder), source, judge, estimate=True)
            found = sum(any(label in each.message for each in done.spoken) for label in LABELS)
            figures = {"calls": oracle.calls, "naive calls": naive, "% of naive": 100 * oracle.calls / naive}
            costs = {"$ (estimate)": cost.dollars, "naive $": cost.naive_dollars}
            labels = {"labelled signals": len(LABELS), "said": found}
            rows.append(Row({"seen through": words, "judge": judge, **figures, **costs, **labels}))
    return rows


def start_of_a_sidecar() -> list[Row]:
    """From the start of a sidecar's process to its first look."""
    times = []
    for _ in range(5):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            assignment = _observed(folder, stack, "scope")
            began = time.perf_counter()
            _start(stack, assignment, folder)
            times.append(time.perf_counter() - began)
    light = [
        sys.executable,
        "-c",
        "import time; b = time.perf_counter(); import sidecars.observer.process; print(time.perf_counter() - b)",
    ]
    imports = [float(subprocess.run(light, capture_output=True, check=True, cwd=_ROOT).stdout) for _ in range(5)]
    return [
        _row(what="process to ready", times=times, unit=1e3, name="ms"),
        _row(what="import sidecars.observer.process", times=imports, unit=1e3, name="ms"),
    ]


# -- parts ------------------------------------------------------------------------------------------------------------


def _times(action: Callable[[], object], count: int) -> list[float]:
    found = []
    for _ in range(count):
        began = time.perf_counter()
        action()
        found.append(time.perf_counter() - began)
    return found


def _row(*, times: Sequence[float], unit: float, name: str, **more: str | int) -> Row:
    ordered = sorted(times)
    figures = {
        f"median {name}": statistics.median(ordered) * unit,
        f"p95 {name}": ordered[len(ordered) * 95 // 100] * unit,
        f"worst {name}": ordered[-1] * unit,
    }
    return Row({**more, **figures, "count": len(ordered)})


def _edit(path: str) -> bytes:
    event = {"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_use_id": path, "session_id": "s",
             "tool_input": {"file_path": path, "new_string": "x"}}  # fmt: skip
    return json.dumps(event).encode()


def _ask(asker: subprocess.Popen[bytes], path: str) -> tuple[float, int]:
    assert asker.stdin is not None
    assert asker.stdout is not None
    asker.stdin.write(_edit(path) + b"\n")
    asker.stdin.flush()
    seconds, count = asker.stdout.readline().split()
    return float(seconds), int(count)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("GT_", "TMUX"))}


def _observed(folder: Path, stack: ExitStack, name: str) -> Assignment:
    """An assignment in a scratch town, with an agent that is a process without a task."""
    agent = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    stack.callback(agent.wait)
    stack.callback(agent.kill)
    run_dir = folder / "run"
    (run_dir / "spool").mkdir(parents=True)
    (folder / "work").mkdir()
    started = int(Path(f"/proc/{agent.pid}/stat").read_text().rpartition(")")[2].split()[19])
    return Assignment(
        group=GroupId("main", "bench", "run-1"), name=name, type=name, argument="", session="", socket="",
        town=str(folder), workdir=str(folder / "work"), run_dir=str(run_dir), journal=str(folder / "witness.db"),
        queue=str(folder / "queue"), agent=ProcessId(agent.pid, started),
        task="---\nfiles: [src/**]\nnot: [billing/**]\n---\n", overrides={"cap": 1000},
    )  # fmt: skip


def _start(stack: ExitStack, assignment: Assignment, folder: Path) -> None:
    (folder / "one.json").write_text(assignment.to_json())
    sidecar = stack.enter_context(
        subprocess.Popen([sys.executable, "-m", "sidecars", "--assignment", str(folder / "one.json")],
                         stdout=subprocess.PIPE, cwd=_ROOT, env=_environment())
    )  # fmt: skip
    stack.callback(sidecar.kill)
    assert sidecar.stdout is not None
    sidecar.stdout.readline()


def _forked(folder: Path, names: Sequence[str]) -> subprocess.Popen[str]:
    """A process that imports once and forks every sidecar, as the fork server does; prints pids, then readiness."""
    code = """
import os, sys
import sidecars.observer.watcher, sidecars.observer.factory
from sidecars.observer.process import run
from witness.assignment import Assignment
children = []
for path in sys.argv[1:]:
    pid = os.fork()
    if pid == 0:
        os._exit(run(Assignment.from_json(open(path).read()), lambda: os.write(1, b"ready\\n")))
    children.append(pid)
    os.write(1, b"%d\\n" % pid)
for pid in children:
    os.waitpid(pid, 0)
"""
    paths = [str(folder / f"{name}.json") for name in names]
    return subprocess.Popen(
        [sys.executable, "-c", code, *paths], stdout=subprocess.PIPE, text=True, cwd=_ROOT, env=_environment()
    )
