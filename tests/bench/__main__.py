"""``make bench``: measure us and our peers in one run, print the tables, write them down.

python -m tests.bench [--only NAME]... [--out FILE] [--list]
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.machine import describe
from tests.bench.table import Row, markdown, show

# Each of these modules holds plain functions without parameters that return rows; every such public function is one
# table. A module that is not there is passed over.
_MODULES = ("supervision", "groups", "hooks", "effects", "observers", "rules", "distill", "retrieval")


@dataclass(frozen=True, slots=True)
class Bench:
    """One table.

    Args:
        name: ``module.function``.
        words: the function's docstring.
        measure: returns the rows.
    """

    name: str
    words: str
    measure: Callable[[], Sequence[Row]]


def benches() -> Iterator[Bench]:
    """All tables, in the order in which they are measured."""
    for name in _MODULES:
        full = f"tests.bench.{name}"
        if importlib.util.find_spec(full) is None:
            continue
        module = importlib.import_module(full)
        for attribute, found in vars(module).items():
            if attribute.startswith("_") or not inspect.isfunction(found) or found.__module__ != full:
                continue
            signature = inspect.signature(found)
            if not signature.parameters and "list[" in str(signature.return_annotation):
                yield Bench(f"{name}.{attribute}", inspect.getdoc(found) or "", found)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benches that are asked for; 1 when one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure us and our peers.")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a table, or all of a module")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the tables as Markdown too")
    parser.add_argument(
        "--note", action="append", default=[], metavar="TEXT", help="a line about this run, written too"
    )
    parser.add_argument("--list", action="store_true", help="list the tables and end")
    given = parser.parse_args(argv)
    chosen = [
        bench for bench in benches() if not given.only or {bench.name, bench.name.partition(".")[0]} & {*given.only}
    ]
    if given.list:
        for bench in chosen:
            print(f"{bench.name:28} {bench.words.splitlines()[0]}")
        return 0
    for line in describe():
        print(line)
    sections, failed = [], False
    for bench in chosen:
        began = time.monotonic()
        try:
            rows = bench.measure()
        except Exception as error:  # noqa: BLE001 - one that fails must not take the others' figures with it
            failed = True
            print(f"{bench.name} failed: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        if rows:
            show(f"{bench.name} ({time.monotonic() - began:.0f} s)", rows)
            sections.append(markdown(bench.name, bench.words, rows))
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(
            _HEAD.format("\n".join(f"- {line}" for line in [*describe(), *given.note])) + "\n".join(sections)
        )
    return int(failed)


_HEAD = """# Benchmarks

Made by `make bench`, in one run on one machine. A ratio in parentheses is to the first row of its table.

{}

"""

if __name__ == "__main__":
    sys.exit(main())
