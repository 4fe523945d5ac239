"""The main job with the real client: spawn, observe, inject in time, respawn, done, nothing left behind."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.clients import versions
from tests.e2e.conftest import PERMITTED, wait_until
from witness.journal import GroupState
from witness.testing import Block, MessagesServer, Request, living_of, make_town, say, supervised, use
from witness.tmux import Tmux


def listed(repo: Path) -> dict[str, Any]:
    """``gt polecat list --json`` as another program sees it."""
    argv = [sys.executable, "-m", "witness.cli", "polecat", "list", "--json"]
    rows = json.loads(subprocess.run(argv, cwd=repo, capture_output=True, check=True).stdout)
    assert isinstance(rows[0], dict)
    return rows[0]


def test_an_out_of_scope_edit_is_known_at_the_next_request_and_done_leaves_nothing(
    either_claude: Path, server: MessagesServer, home: Path, trust: Callable[[Path], Path], tmp_path: Path
) -> None:
    town = make_town(tmp_path / "a town")
    repo = trust(town.root / "repo")
    respawned: list[dict[str, Any]] = []

    def kill_the_sidecar(request: Request) -> Block:
        before = listed(repo)["sidecars"][0]
        os.kill(before["pid"], signal.SIGKILL)

        def is_back() -> bool:
            sidecar = listed(repo)["sidecars"][0]
            respawned[:] = [sidecar]
            return sidecar["state"] == "RUNNING" and sidecar["pid"] not in (None, before["pid"])

        wait_until(is_back, "the sidecar to come back")
        return use("Bash", command="gt done")

    server.play(
        use("Read", file_path=str(repo / "docs" / "issue.md")),
        use("Write", file_path=str(repo / "billing" / "totals.py"), content="TOTAL = 0\n"),
        kill_the_sidecar,
        say("Done."),
    )
    with supervised(town) as witness:
        spawned = witness.spawn(
            "toast",
            workdir=repo,
            sidecars="scope:docs/issue.md",
            issue="docs/issue.md",
            agent=shlex.join([str(either_claude), *PERMITTED]),
        )
        group = witness.find("toast")
        server.wait_for(lambda request: "out of scope" in request.news)
        wait_until(
            lambda: (now := witness.journal.groups.get(spawned.group.run)) and now.state is GroupState.NUKED,
            "the Witness to end the group",
        )
        requests = server.of("main")
        assert "docs/issue.md" in requests[0].text
        assert ["[sidecar:scope]" in request.news for request in requests[:3]] == [False, False, True]
        assert respawned[0]["restarts"] == 1
        assert living_of(witness, group) == set()
        assert not Tmux(town.socket).has_session(spawned.session)
        said = [decision.sidecar for decision in witness.journal.decisions.injected(spawned.group.run)]
        assert said == ["scope"]
        served_by_mod = (town.run_dir(spawned.group.run) / "spool" / "mod.json").exists()
        assert served_by_mod == (witness.find("toast", ended=True).run_state.channel == "mod")
        assert served_by_mod == (versions()["CLAUDE_NEWEST"] in str(either_claude))
