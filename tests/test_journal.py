"""The journal's file is the user's alone, and opening it changes nothing of the process."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from witness.journal import Journal


def test_many_threads_that_open_journals_leave_the_umask_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:

        def open_one(number: int) -> int:
            path = tmp_path / f"{number}.db"
            with Journal(path) as journal:
                journal.remember("a", "b")
                return max(stat.S_IMODE(each.stat().st_mode) for each in tmp_path.glob(f"{number}.db*"))

        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(open_one, range(64))) == {0o600}
        now = os.umask(0o022)
        assert now == 0o022
    finally:
        os.umask(before)
