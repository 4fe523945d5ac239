"""The first minutes with the real client: its dialog about the folder is named, and answered where it is to be."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

from tests.e2e.conftest import PERMITTED
from tests.supervise.command import gt
from witness.testing import MessagesServer, make_town, say, supervised


def test_the_folder_dialog_is_named_and_answered(
    either_claude: Path, server: MessagesServer, home: Path, tmp_path: Path
) -> None:
    approved = {"approved": ["sk-test"], "rejected": []}
    first = {"hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": approved}
    (home / ".claude.json").write_text(json.dumps(first))
    town = make_town(tmp_path / "a town")
    work = town.root / "repo" / "orders"  # below a repository, where only this folder is accepted
    subprocess.run(["git", "init", "-q", str(town.root / "repo")], check=True)
    agent = shlex.join([str(either_claude), *PERMITTED])
    server.play(say("Done."))
    common = ("--workdir", str(work), "--agent", agent, "--task", "say done", "--no-witness")
    with supervised(town) as witness:
        done = gt(town.root, "polecat", "spawn", "a", *common)
        assert "waits at the folder dialog of Claude Code" in done.stdout, done.stdout
        assert "gt attach a" in done.stdout
        assert not server.of("main")
        witness.nuke(["a"])
        done = gt(town.root, "polecat", "spawn", "b", *common, "--accept-folder", "--json")
        assert json.loads(done.stdout)["first"]["saw"] in ("prompt", "work"), done.stdout
        server.wait_for(lambda request: "say done" in request.text)
        known = json.loads((home / ".claude.json").read_text())["projects"]
        assert [place for place, entry in known.items() if entry.get("hasTrustDialogAccepted")] == [str(work)]
