"""Looking at what calls do to the files of a large work tree."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.table import Row
from tests.events.looked import Looked, Run, git
from witness.events.tree_files import Tree
from witness.events.tree_watch import TreeWatch

_FOLDERS, _FILES = 5_000, 20
_CALLS = 60
_PATIENCE = 30.0


@contextmanager
def _repository() -> Iterator[Path]:
    """A repository of a hundred thousand files, all of them committed."""
    root = Path(os.path.realpath(tempfile.mkdtemp(prefix="gt-bench-")))
    try:
        for folder in range(_FOLDERS):
            where = root / "tree" / f"package{folder % 50}" / f"part{folder}"
            where.mkdir(parents=True)
            for number in range(_FILES):
                (where / f"file{number}.py").write_text(f"x = {folder}\ny = {number}\n" * 5)
        git(root / "tree", "init", "-q")
        git(root / "tree", "add", "-A")
        git(root / "tree", "commit", "-qm", "all")
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _row(what: str, seconds: list[float]) -> Row:
    return Row(
        look=what,
        calls=len(seconds),
        quarter_ms=1000 * (statistics.quantiles(seconds, n=4)[0] if len(seconds) > 1 else seconds[0]),
        median_ms=1000 * statistics.median(seconds),
        p95_ms=1000 * statistics.quantiles(seconds, n=20)[-1] if len(seconds) > 1 else None,
    )


def _timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def looks() -> list[Row]:
    """What recording an event costs with a look and without, in a repository of 100,000 files; the hook's own start is
    not in it (hooks.process)."""
    with _repository() as root:
        tree = root / "tree"
        part = tree / "package1" / "part1"

        def ask(run: Run) -> float:
            said = {"tool_name": "Bash", "tool_input": {"command": "true"}, "duration_ms": 5}
            return _timed(lambda: run.tell("PostToolUse", _PATIENCE, **said))

        began = time.perf_counter()
        with Looked(root / "runs", tree) as looked:
            run = looked.run()
            first = time.perf_counter() - began
            bare = Run(root / "bare", tree)
            rows = [
                _row("none: nobody looks", [ask(bare) for _ in range(_CALLS)]),
                _row("nothing changed", [ask(run) for _ in range(_CALLS)]),
            ]
            changed, created = [], []
            for number in range(_CALLS):
                (part / "file1.py").write_text(f"x = {number}\n")
                changed.append(ask(run))
                (part / f"new{number}.py").write_text("x\n")
                created.append(ask(run))
            rows += [_row("one file changed", changed), _row("one file created", created)]
        watch = TreeWatch(Tree(str(tree)), watches=False)
        compared = [_timed(watch.settle) for _ in range(5)]
        rows += [
            _row("no watches: the whole tree compared", compared),
            _row("the first, with the looker's start", [first]),
        ]
        return rows
