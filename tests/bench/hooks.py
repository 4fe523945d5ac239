"""The hooks: what they cost the real client per tool call, and what they cost alone."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.table import Row
from tests.clients import claude_program, versions
from witness.agents.client_extensions import VARIABLE, make_mod
from witness.agents.hook_entries import hook_command, interpreter
from witness.agents.hook_settings import session_settings
from witness.clock import SystemClock
from witness.config.resources import hooks_dir
from witness.delivery.nudge_queue import Nudge, NudgeQueue
from witness.events.spool_reader import SpoolReader, WakeSocket
from witness.testing import Block, MessagesServer, Request, say, use

_NEWEST = claude_program(versions()["CLAUDE_NEWEST"])
_CLAUDE = _NEWEST if _NEWEST.exists() else claude_program()
# Tool calls in a session, and sessions of each kind, interleaved so that other load meets all kinds alike.
_CALLS, _SESSIONS = 34, int(os.environ.get("BENCH_SESSIONS", "6"))
_RUNS = 60
_READS_ONLY = "import os\nwhile os.read(0, 1 << 20): pass"
_PAYLOAD = json.dumps(
    {
        "session_id": "s",
        "hook_event_name": "PostToolUse",
        "tool_name": "Edit",
        "tool_input": {"file_path": "/x/y.py", "old_string": "a", "new_string": "b"},
        "tool_response": {"filePath": "/x/y.py", "originalFile": "x" * 2000},
    }
).encode()


@contextmanager
def _scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="gt-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class _Polecat:
    """The files of a run."""

    folder: Path
    spool: Path = field(init=False)
    queue: NudgeQueue = field(init=False)

    def __post_init__(self) -> None:
        self.spool = self.folder / "run" / "spool"
        self.spool.mkdir(parents=True)
        (self.folder / "queue").mkdir()
        self.queue = NudgeQueue(self.folder / "queue", SystemClock(), depth=10_000)

    @property
    def variables(self) -> dict[str, str]:
        return {
            "GT_WITNESS_SPOOL": str(self.spool),
            "GT_WITNESS_QUEUE": str(self.queue.folder),
            "GT_WITNESS_HOOK_WAIT": "100",
        }

    def say(self, number: int = 1) -> None:
        for each in range(number):
            self.queue.enqueue(Nudge("sidecar:scope", f"[sidecar:scope] note {each}: " + "a few words more " * 5))


# -- with the real client ----------------------------------------------------------------------------------------------


def _only(command: list[str]) -> dict[str, Any]:
    handler = {"type": "command", "command": command[0], "args": command[1:], "timeout": 10}
    return {"hooks": {event: [{"matcher": "*", "hooks": [handler]}] for event in ("PostToolUse", "PostToolUseFailure")}}


# A mod that does nothing: the floor of any mod.
_EMPTY = "export const register = (on) => {\n  on('classic.PostToolUse', async ($, e, next) => ({}))\n}\n"


@dataclass(frozen=True)
class _Kind:
    """One way to be told of a call.

    Args:
        settings: the client's.
        nudged: something waits at each call.
        mod: ``empty`` (one that does nothing), ``asked`` (ours, that asks at each call), ``noted`` (ours, where no
            sidecar looks at the tool), ``unfollowed`` (our plugin in a session that nobody follows); none when not
            given.
    """

    settings: dict[str, Any]
    nudged: bool = False
    mod: str = ""


_KINDS: dict[str, _Kind] = {
    "no hooks": _Kind({}),
    "a hook that only reads (sh)": _Kind(_only(["/bin/sh", "-c", "cat >/dev/null"])),
    "a hook that only reads (python -S -I)": _Kind(_only([interpreter(), "-S", "-I", "-c", _READS_ONLY])),
    "our hook, nothing to deliver": _Kind(session_settings()),
    "our hook, one nudge each call": _Kind(session_settings(), nudged=True),
}
# Where the client runs mods.
_MOD_KINDS: dict[str, _Kind] = {
    "a mod that does nothing": _Kind({}, mod="empty"),
    "our plugin, a session that nobody follows": _Kind({}, mod="unfollowed"),
    "our mod, a call that needs no answer": _Kind(session_settings(), mod="noted"),
    "our mod, nothing to deliver": _Kind(session_settings(), mod="asked"),
    "our mod, one nudge each call": _Kind(session_settings(), nudged=True, mod="asked"),
}


def per_tool_call() -> list[Row]:
    """The real Claude Code against a scripted server: from its answer to the next request, per tool call (Read)."""
    if not _CLAUDE.exists():
        raise FileNotFoundError("the real Claude Code is not installed: make e2e installs it")
    kinds = _KINDS | (_MOD_KINDS if _CLAUDE == _NEWEST else {})
    gaps: dict[str, list[float]] = {name: [] for name in kinds}
    late: dict[str, int] = dict.fromkeys(kinds, 0)
    hooks: dict[str, int] = dict.fromkeys(kinds, 0)
    for _ in range(_SESSIONS):
        for name, kind in kinds.items():
            found, missed, by_hook = _session(kind)
            gaps[name] += found
            late[name] += missed
            hooks[name] += by_hook
    base = statistics.median(gaps["no hooks"])
    return [
        Row(
            hook=kind,
            calls=len(found),
            quarter_ms=1000 * _quarter(found),
            median_ms=1000 * statistics.median(found),
            p95_ms=1000 * statistics.quantiles(found, n=20)[-1],
            p99_ms=1000 * statistics.quantiles(found, n=100)[-1],
            added_quarter_ms=None if kind == "no hooks" else 1000 * (_quarter(found) - _quarter(gaps["no hooks"])),
            added_ms=None if kind == "no hooks" else 1000 * (statistics.median(found) - base),
            requests_late=late[kind] if kinds[kind].nudged else None,
            calls_by_hook=hooks[kind] if kinds[kind].mod in ("asked", "noted") else None,
        )
        for kind, found in gaps.items()
    ]


def late() -> list[Row]:
    """Requests that lack what was said before them, of as many calls as BENCH_LATE says (200), one remark each."""
    wanted = int(os.environ.get("BENCH_LATE", "200"))
    rows = []
    for name, kinds in (("our mod, one nudge each call", _MOD_KINDS), ("our hook, one nudge each call", _KINDS)):
        if kinds is _MOD_KINDS and _CLAUDE != _NEWEST:
            continue
        calls = missed = by_hook = 0
        while calls < wanted:
            found, without, hooks = _session(kinds[name])
            calls, missed, by_hook = calls + len(found), missed + without, by_hook + hooks
        rows.append(Row(hook=name, calls=calls, requests_late=missed, calls_by_hook=by_hook))
        wanted = max(1, wanted // 10)
    return rows


def _quarter(spans: list[float]) -> float:
    """The first quartile: what other load on the machine has disturbed least."""
    return statistics.quantiles(spans, n=4)[0]


def _session(kind: _Kind) -> tuple[list[float], int, int]:
    """Seconds from each answer to the next request, requests without their nudge, and calls that a mod left to us."""
    with _scratch() as folder, MessagesServer(client=True) as server:
        polecat = _Polecat(folder)
        work = folder / "work"
        work.mkdir()
        (work / "a.txt").write_text("one line\n")
        (folder / "settings.json").write_text(json.dumps(kind.settings))

        def step(request: Request) -> Block:
            if kind.nudged:
                polecat.say()
            return use("Read", file_path=str(work / "a.txt"))

        server.play(*[step] * _CALLS, say("Done."))
        environment = {
            "HOME": str(folder),
            "PATH": os.environ.get("PATH", os.defpath),
            **({} if kind.mod == "unfollowed" else polecat.variables),
            **server.environment(),
        }
        if kind.mod == "unfollowed":
            environment[VARIABLE] = str(shutil.copytree(hooks_dir() / "mod", folder / "mod"))
        elif kind.mod:
            mod = make_mod(folder / "mod", band=False)
            environment[VARIABLE] = str(mod)
            if kind.mod == "empty":
                (mod / "hooks" / "register.js").write_text(_EMPTY)
            if kind.mod == "noted":
                (polecat.spool / "scope.passes").write_text('["Read"]')
        argv = [str(_CLAUDE), "-p", "go", "--settings", str(folder / "settings.json"), "--allowedTools", "Read", "Bash"]
        subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, env=environment, cwd=work, timeout=120, check=True
        )
        requests = server.of("main")
        pairs = list(itertools.pairwise(requests))[1:_CALLS]
        missed = sum("[sidecar:scope] note" not in after.news for _, after in pairs)
        spans = [after.arrived - before.sent for before, after in pairs]
        return spans, missed, _by_hook(polecat.spool) if kind.mod in ("asked", "noted") else 0


def _by_hook(spool: Path) -> int:
    """Completed calls that the mod's server has not recorded itself."""
    pid = json.loads((spool / "mod.json").read_text())["pid"]
    events = SpoolReader(spool).read(10_000)
    calls = [event for event in events if event.payload.get("hook_event_name") == "PostToolUse"]
    return sum(not event.id.endswith(f"-{pid}") for event in calls)


# -- alone ----------------------------------------------------------------------------------------------


def process() -> list[Row]:
    """The hook as a process, from its start to its end, against programs that only read the same input."""
    kinds: dict[str, tuple[list[str], int, bool]] = {
        "sh that only reads": (["/bin/sh", "-c", "cat >/dev/null"], 0, False),
        "python -S -I that only reads": ([interpreter(), "-S", "-I", "-c", _READS_ONLY], 0, False),
        "ours, not a polecat": (hook_command("PostToolUse"), -1, False),
        "ours, nothing to deliver": (hook_command("PostToolUse"), 0, False),
        "ours, two sidecars answer first": (hook_command("PostToolUse"), 0, True),
        "ours, one nudge": (hook_command("PostToolUse"), 1, False),
        "ours, fifty nudges": (hook_command("PostToolUse"), 50, False),
    }
    spans: dict[str, list[float]] = {kind: [] for kind in kinds}
    shares: dict[str, list[float]] = {kind: [] for kind in kinds}
    with _scratch() as folder:
        polecat = _Polecat(folder)
        for _ in range(_RUNS):
            for kind, (argv, nudges, asked) in kinds.items():
                polecat.say(max(nudges, 0))
                environment = polecat.variables if nudges >= 0 else {}
                with _judges(polecat.spool, 2 if asked else 0):
                    span, share = _timed(argv, environment)
                spans[kind].append(span)
                shares[kind].append(share)
                while polecat.queue.pending():  # what did not fit into one answer
                    polecat.queue.acknowledge_all(polecat.queue.claim())
    return [
        Row(
            program=kind,
            runs=len(found),
            processor_ms=1000 * statistics.median(shares[kind]),
            quarter_ms=1000 * _quarter(found),
            median_ms=1000 * statistics.median(found),
            p95_ms=1000 * statistics.quantiles(found, n=20)[-1],
        )
        for kind, found in spans.items()
    ]


def _timed(argv: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Seconds from start to end, and seconds on a processor: the latter hardly know of other load."""
    began = time.perf_counter()
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment)
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # outside of a polecat nothing is read
        process.stdin.write(_PAYLOAD)
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    span = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return span, usage.ru_utime + usage.ru_stime


@contextmanager
def _judges(spool: Path, number: int) -> Iterator[None]:
    """Sidecars that answer at once, as rules judges do after some microseconds."""
    import select
    import threading

    sockets = [WakeSocket(spool, f"judge{each}", asked=True).__enter__() for each in range(number)]
    done, signal = os.pipe()

    def serve() -> None:
        while True:
            ready, _, _ = select.select([done, *(sock.fileno() for sock in sockets)], [], [])
            if done in ready:
                return
            for sock in sockets:
                for wake in sock.accept():
                    wake.answer()

    thread = threading.Thread(target=serve)
    if sockets:
        thread.start()
    try:
        yield
    finally:
        os.close(signal)
        if sockets:
            thread.join()
        os.close(done)
        for sock in sockets:
            sock.__exit__(None, None, None)


def queue() -> list[Row]:
    """The nudge queue in process: writing one (with its fsync), draining fifty."""
    return [
        Row(operation="enqueue one", **_spread(lambda queue: queue.enqueue(Nudge("a", "b" * 200)), 0)),
        Row(operation="drain 50", **_spread(lambda queue: queue.deliver(lambda taken: None), 50)),
    ]


def _spread(work: Callable[[NudgeQueue], object], waiting: int) -> dict[str, float | int]:
    spans = []
    with _scratch() as folder:
        polecat = _Polecat(folder)
        for _ in range(30):
            polecat.say(waiting)
            began = time.perf_counter()
            work(polecat.queue)
            spans.append(time.perf_counter() - began)
    return {
        "runs": len(spans),
        "quarter_ms": 1000 * _quarter(spans),
        "median_ms": 1000 * statistics.median(spans),
        "p95_ms": 1000 * statistics.quantiles(spans, n=20)[-1],
    }
