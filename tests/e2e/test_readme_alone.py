"""Somebody follows the README and nothing else, in a fresh folder, with the newest real client.

What is typed and what must be seen is read from the README's first block. The figure in its table, commands and seconds
to the first remark, is what this measures; ``-s`` shows it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.clients import claude_program, versions
from tests.docs.console import blocks
from witness.config.resources import molecules_dir
from witness.config.town import Town
from witness.testing import MessagesServer, say, supervised, use

README = Path(__file__).resolve().parents[2] / "README.md"
#: The issue's own limits.
COMMANDS, SECONDS = 3, 60.0


@pytest.mark.timeout(180)
def test_three_commands_bring_the_first_remark(server: MessagesServer, home: Path, tmp_path: Path) -> None:
    claude = claude_program(versions()["CLAUDE_NEWEST"])
    if not claude.exists():
        pytest.skip(f"not installed: .ci/need-claude {versions()['CLAUDE_NEWEST']}")
    # A client that its user has started once: logged in, and past its first dialogs. It knows nothing of the folder.
    approved = {"approved": ["sk-test"], "rejected": []}
    known = {"hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": approved}
    (home / ".claude.json").write_text(json.dumps(known))
    project = tmp_path / "shop"
    shutil.copytree(molecules_dir() / "demo-repo", project)
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    path = [claude.parent, Path(sys.executable).parent, os.environ["PATH"]]
    environment = {**os.environ, "PATH": os.pathsep.join(map(str, path))}
    server.play(
        use("Read", file_path=str(project / "orders" / "service.py")),
        use("Write", file_path=str(project / "billing" / "totals.py"), content="TOTAL = 0\n"),
        say("Done."),
    )
    commands = blocks(README)[0].commands
    began, seen = time.monotonic(), 0.0
    try:
        for command in commands:
            while True:
                done = subprocess.run(
                    ["/bin/sh", "-c", command.text], cwd=project, env=environment, stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=SECONDS,
                )  # fmt: skip
                if not seen and "[sidecar:scope]" in done.stdout:
                    seen = time.monotonic() - began
                if command.fits(done.stdout) or not command.patient or time.monotonic() - began > SECONDS:
                    break
            assert command.fits(done.stdout), f"{command.place}: $ {command.text}\n{done.stdout}"
        assert server.wait_for(lambda request: "[sidecar:scope]" in request.news)
    finally:
        with supervised(Town.at(project)):
            pass
    print(f"\n{len(commands)} commands, {seen:.1f} s to the first remark")
    assert len(commands) <= COMMANDS
    assert 0 < seen <= SECONDS
