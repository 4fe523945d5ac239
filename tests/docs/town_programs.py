"""Stand-ins for the programs that docs/gas-town.md calls: the real ``gt``, ``bd`` and ``pipx``, as small as can be.

Run as ``python town_programs.py NAME ARGS…`` by the start scripts that ``install()`` writes.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

# What the polecat's pane runs: it waits until the test opens the gate, then becomes the scripted agent.
_WAITING_AGENT = """
import os, sys
open(os.environ["GATE"]).read()
os.execv(sys.executable, [sys.executable, "-m", "witness.cli.scripted_agent"])
"""
# As pip writes it where the interpreter's path may hold spaces: read by sh first, by Python then.
_HEAD = f"#!/bin/sh\n'''exec' {shlex.quote(sys.executable)} \"$0\" \"$@\"\n' '''\n"


def install(folder: Path, *names: str) -> None:
    """Write start scripts for these stand-ins."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(__file__)} {name} "$@"\n')
        script.chmod(0o755)


def _town() -> Path:
    return Path(os.environ["HOME"]) / "gt"


def _tell(kind: str, actor: str, **payload: str) -> None:
    line = {
        "ts": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "source": "gt", "type": kind, "actor": actor, "payload": payload, "visibility": "feed",
    }  # fmt: skip
    with (_town() / ".events.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def _tmux(*args: str) -> None:
    from witness.config.town import Town

    subprocess.run(["tmux", "-L", Town.at(_town()).socket, *args], check=True)


def gt(args: list[str]) -> int:
    """``gt sling``, ``gt done`` and ``gt polecat nuke`` for the one polecat that there is."""
    worktree = _town() / "gastown" / "polecats" / "Toast" / "gastown"
    if args[0] == "sling":
        given = [value for flag, value in pairwise(args) if flag == "--var"]
        shutil.copytree(os.environ["SAMPLE"], worktree)
        issue = (worktree / "docs" / "issue.md").read_text()
        bead = {
            "id": args[1],
            "title": "Orders",
            "status": "hooked",
            "description": f"{issue}\nattached_vars: {json.dumps(given)}",
        }
        (_town() / "bead.json").write_text(json.dumps([bead]))
        own = {
            "GT_SESSION": "gt-Toast", "GT_TOWN_ROOT": str(_town()), "GT_ROLE": "gastown/polecats/Toast",
            "GT_WITNESS_SETTINGS": str(Path(os.environ["HOME"]) / ".claude" / "settings.json"),
        }  # fmt: skip
        environment = [flag for name, value in {**own, **_kept()}.items() for flag in ("-e", f"{name}={value}")]
        _tmux("new-session", "-d", "-s", "gt-Toast", "-c", str(worktree), *environment,
              sys.executable, "-c", _WAITING_AGENT)  # fmt: skip
        _tell("spawn", "gt", rig="gastown", polecat="Toast")
        _tell("sling", "mayor", bead=args[1], target="gastown/polecats/Toast")
    elif args[0] == "done":
        _tell("done", os.environ["GT_ROLE"], bead="gt-abc", branch="polecat/Toast/gt-abc")
    elif args[:2] == ["polecat", "nuke"]:
        _tmux("kill-session", "-t", "=gt-Toast")
        _tell("kill", "mayor", rig="gastown", target="Toast", reason="nuke")
        shutil.rmtree(worktree.parent)
    else:
        sys.stderr.write(f"unknown command {args}\n")
        return 1
    return 0


def _kept() -> dict[str, str]:
    names = ("PATH", "HOME", "GATE", "SCRIPTED_AGENT_PAUSE", "PYTHONPATH", "TMUX_TMPDIR")
    return {name: os.environ[name] for name in names if name in os.environ}


def bd(args: list[str]) -> int:
    """``bd list``: the one bead there is."""
    path = _town() / "bead.json"
    hooked = "--status=hooked" in args and "--assignee=gastown/polecats/Toast" in args
    sys.stdout.write(path.read_text() if hooked and path.exists() else "No issues found.\n")
    return 0


def pipx(args: list[str]) -> int:
    """Puts the two start scripts into ``~/.local/bin`` or takes them away, as pipx does."""
    folder = Path(os.environ["HOME"]) / ".local" / "bin"
    for name in ("gt", "gt-witness"):
        script = folder / name
        if args[0] == "uninstall":
            script.unlink(missing_ok=True)
        elif not script.exists():
            folder.mkdir(parents=True, exist_ok=True)
            front = (Path(__file__).resolve().parents[2] / "witness" / "cli" / "gt").read_text()
            script.write_text(front if name == "gt" else _HEAD + "from witness.cli import main\nmain()\n")
            script.chmod(0o755)
    return 0


if __name__ == "__main__":
    sys.exit({"gt": gt, "bd": bd, "pipx": pipx}[sys.argv[1]](sys.argv[2:]))
