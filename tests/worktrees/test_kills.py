"""SIGKILL at random instants of spawn, nuke and done: ``tests.chaos.worktrees`` does it by the hundred."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.worktrees import KINDS, run


@pytest.mark.real
@pytest.mark.timeout(600)
def test_no_kill_loses_a_byte_or_leaves_a_worktree_that_nobody_knows(tmp_path: Path) -> None:
    totals = run(tmp_path / "kills", 20, seed=7, state=tmp_path / "totals.json")
    assert sum(totals[kind] for kind in KINDS if kind in totals) == 20
