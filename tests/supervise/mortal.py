"""A Witness that is killed at the n-th thing that it writes into its journal.

    python -m tests.supervise.mortal (spawn NAME | serve | patrol) TOWN STEP (before | after)

It kills itself by SIGKILL just before, or just after, the STEP-th write; where there are fewer, it does its work and
ends with 0.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

import witness.api.witness
import witness.daemon.loop
from witness.api import Witness
from witness.config.town import Town
from witness.daemon.__main__ import serve
from witness.journal import Journal

_WRITES = ("INSERT", "UPDATE", "DELETE", "COMMIT")


class MortalJournal(Journal):
    """A journal with a last write."""

    step, moment = 0, "before"
    written = 0

    def run(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if not sql.startswith(_WRITES):
            return super().run(sql, *values)
        MortalJournal.written += 1
        fatal = MortalJournal.written == self.step
        if fatal and self.moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        cursor = super().run(sql, *values)
        if fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return cursor


def main() -> None:
    *what, town_text, step, MortalJournal.moment = sys.argv[1:]
    MortalJournal.step = int(step)
    for module in (witness.daemon.loop, witness.api.witness):
        vars(module)["Journal"] = MortalJournal
    town = Town.at(Path(town_text))
    if what[0] == "serve":
        serve(town, linger=False)
        return
    with Witness(town, environ={}) as one:
        if what[0] == "spawn":
            one.spawn(what[1], workdir=town.root / "work", agent="sleep 60", sidecars="scope:issue.md", witness=False)
        else:
            one.patrol()


if __name__ == "__main__":
    main()
