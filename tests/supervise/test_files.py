"""The runtime's files are the user's alone, and a stopped town leaves no sockets."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from witness.testing import make_town, supervised

pytestmark = pytest.mark.xdist_group("tmux")


def test_nobody_else_may_read_the_runtime_and_a_stop_takes_the_sockets_away(tmp_path: Path) -> None:
    town = make_town(tmp_path / "town")
    with supervised(town) as witness:
        witness.spawn("toast", workdir=town.root / "repo", sidecars="scope:docs/issue.md", agent="sleep 600")
        files = [path for path in town.runtime.rglob("*") if not path.is_symlink()]
        assert {path.name for path in files} >= {
            "witness.db",
            "forkserver.json",
            "witness.json",
            "tmux.json",
            "scope.json",
        }
        assert [path for path in files if stat.S_IMODE(path.stat().st_mode) & 0o077] == []
        witness.nuke(["toast"])
        witness.stop()
    assert list(town.runtime.glob("*.sock")) == []
