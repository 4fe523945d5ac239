"""Gas Town's polecats as the real ``gt`` leaves them: sessions, beads, heartbeats and events."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from tests.scripts import BASE_PYTHON
from witness.config.town import Town
from witness.process import ProcessId
from witness.process.table import identify
from witness.tmux import Tmux

AGENT = "import signal; signal.pause()"


class Polecats:
    """Gas Town's polecats: sessions, beads, heartbeats and events as the real ``gt`` leaves them."""

    def __init__(self, town: Town, bin_folder: Path) -> None:
        self.town, self.tmux = town, Tmux(town.socket)
        self._beads = bin_folder / "beads.json"
        self._beads.write_text("{}")
        self.bd_calls = bin_folder / "bd.calls"
        program = bin_folder / "bd"
        program.write_text(
            f"#!{BASE_PYTHON} -IS\n"
            "import json, os, sys\n"
            f"open({str(self.bd_calls)!r}, 'a').write(json.dumps([sys.argv[1:], dict(os.environ)]) + '\\n')\n"
            "flags = dict(arg.partition('=')[::2] for arg in sys.argv[2:])\n"
            f"bead = json.load(open({str(self._beads)!r})).get(os.getcwd() + ' ' + flags['--assignee'])\n"
            "print(json.dumps([bead]) if bead and bead['status'] == flags['--status'] else 'No issues found.')\n"
        )
        program.chmod(0o755)

    def hook(self, address: str, description: str, status: str = "hooked", bead: str = "gt-1") -> None:
        beads = json.loads(self._beads.read_text())
        rig, _, name = address.partition("/")
        worktree = self.town.root / rig / "polecats" / name / rig
        beads[f"{worktree} {rig}/polecats/{name}"] = {
            "id": bead, "title": "Fix it", "status": status, "description": description,
        }  # fmt: skip
        self._beads.write_text(json.dumps(beads))

    def start(self, address: str) -> ProcessId:
        rig, _, name = address.partition("/")
        worktree = self.town.root / rig / "polecats" / name / rig
        worktree.mkdir(parents=True, exist_ok=True)
        pane = self.tmux.new_session(
            self.town.session(rig, name), str(worktree), [sys.executable, "-c", AGENT], {}, (80, 24)
        )
        process = identify(pane.pid)
        assert process is not None
        return process

    def heartbeat(self, session: str, state: str) -> Path:
        folder = self.town.root / ".runtime" / "heartbeats"
        folder.mkdir(exist_ok=True)
        stamp = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "123Z")
        path = folder / f"{session}.json"
        path.write_text(json.dumps({"timestamp": stamp, **({"state": state} if state else {})}))
        return path

    def tell(self, kind: str, actor: str, seconds: float = 2.0, **payload: str) -> None:
        stamp = datetime.fromtimestamp(datetime.now(UTC).timestamp() + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        line = {"ts": stamp, "source": "gt", "type": kind, "actor": actor, "payload": payload, "visibility": "feed"}
        with (self.town.root / ".events.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
