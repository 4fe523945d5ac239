"""``gt-sidecar`` beside the real client: no Witness, no town, no hooks; what is found is typed into the idle prompt."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.e2e.conftest import PERMITTED, Session, wait_until
from witness.testing import MessagesServer, say, use


def test_it_reads_the_screen_and_types_when_the_client_is_idle(
    session: Session, server: MessagesServer, work: Path, tmp_path: Path
) -> None:
    (work / "issue.md").write_text("---\nnot: [app.py]\n---\nLeave app.py alone.\n")
    server.play(
        use("Read", file_path=str(work / "app.py")),
        use("Edit", file_path=str(work / "app.py"), old_string="a - b", new_string="a + b"),
        say("I have changed it."),
    )
    session.settings.write_text("{}")
    session.start(*PERMITTED)
    session.type("fix the add function")
    wait_until(lambda: "I have changed it" in session.screen() and session.idle(), "the end of the turn")
    watched = subprocess.run(
        [sys.executable, "-m", "sidecars", "--session", session.name, "--socket", session.tmux.socket,
         "--type", "scope", "--spec", "issue.md", "--workdir", str(work), "--once"],
        capture_output=True, text=True, check=True, env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
    )  # fmt: skip
    assert watched.stdout.startswith("injected: [sidecar:scope] app.py was changed"), watched.stdout + session.screen()
    server.wait_for(lambda request: request.kind == "main" and "[sidecar:scope] app.py was changed" in request.news)
