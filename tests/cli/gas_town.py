"""A town built by hand in the shape of a real one."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil

from witness.config.town import Town

RIGS = {"gastown": "gt", "beads": "bd"}


def make_gas_town(root: Path, *polecats: str) -> Town:
    """Make a town with two rigs.

    Args:
        root: where; made when missing.
        polecats: addresses (``gastown/Toast``) that have a worktree, in the newer layout.
    """
    (root / "mayor").mkdir(parents=True)
    (root / "mayor" / "town.json").write_text(json.dumps({"type": "town", "version": 2, "name": root.name}))
    rigs = {name: {"git_url": "x", "beads": {"prefix": prefix}} for name, prefix in RIGS.items()}
    (root / "mayor" / "rigs.json").write_text(json.dumps({"version": 1, "rigs": rigs}))
    for rig in RIGS:
        (root / rig / "polecats").mkdir(parents=True)
        (root / rig / "config.json").write_text(json.dumps({"type": "rig", "name": rig}))
    (root / ".beads" / "formulas").mkdir(parents=True)
    (root / ".runtime").mkdir()
    for address in polecats:
        rig, _, name = address.partition("/")
        (root / rig / "polecats" / name / rig).mkdir(parents=True)
    return Town.at(root)


def end_town(town: Town) -> None:
    """End the town's Witness, tmux server and fork_server, and nobody else's; the sidecars end with their agents."""
    from witness.launch import town_witness

    town_witness.stop_witness(town)
    environment = {"PATH": os.environ["PATH"]}
    subprocess.run(["tmux", "-L", town.socket, "kill-server"], capture_output=True, check=False, env=environment)
    # By its arguments: the test may have taken away the files that name it.
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cmdline()[-2:] == ["--forkserver", str(town.runtime)]:
                psutil.wait_procs(process.children(), timeout=20)
                process.terminate()
                process.wait(20)
