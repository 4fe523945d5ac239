"""docs/gas-town.md, command by command, in a town that the real programs have made."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.commands import commands
from tests.gastown.real_town import RealPolecat, RealTown, real_town
from tests.waiting import until
from witness.config.resources import hooks_dir

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "gas-town.md"
ISSUE = "---\nfiles: [src/**]\nnot: [billing/**]\n---\nFix the orders."


@pytest.fixture
def town() -> Iterator[RealTown]:
    yield from real_town(name="gt", rig="gastown", prefix="gt")


@pytest.mark.timeout(600)
def test_the_page_holds_in_a_real_town(town: RealTown) -> None:
    """Point 1: the page's commands, with the name that Gas Town has given its polecat in the place of ``Toast``."""
    (town.home / "src" / "shop").mkdir(parents=True)
    (town.home / ".claude").mkdir()
    settings = town.home / ".claude" / "settings.json"
    settings.write_text('{"model":"opus"}')
    before = settings.read_text()
    town.bead("Orders", ISSUE, "gt-abc")
    place, polecat = town.home, None
    # Gas Town's gt comes first, ours has its own name: as the page begins.
    path = {"PATH": f"{town.environment['PATH']}:{Path(sys.executable).parent}", "COLUMNS": "250"}
    said: dict[str, str] = {}
    for line in commands(PAGE):
        command = line.replace("gastown/Toast", polecat.address) if polecat else line
        if line.startswith("pipx"):
            continue  # it would bring and take the programs that PATH has here
        if line.startswith("cd "):
            place = Path(line[3:].replace("~", str(town.home)))
            continue
        done = town.run("/bin/sh", "-c", command, cwd=place, env=path, check=False)
        said[line] = done.stdout + done.stderr
        assert done.returncode == 0, f"{command}: {said[line][-1500:]}"
        if line.startswith("gt sling"):
            polecat = town.slung("gt-abc")
            until(lambda: "RUNNING" in _listed(town, path), "the sidecar", 60, below=town.agents, every=0.3)
        if line == "gt-witness polecat list":
            assert polecat is not None
            assert "scope" in said[line]
            _touch(polecat)
    assert polecat is not None
    assert "billing/invoice.py" in said["gt-witness sidecar log gastown/Toast"]
    assert "Gas Town" in said["gt-witness doctor"]
    assert settings.read_text() == before
    assert not (town.root / ".runtime" / "witness").exists()


def _listed(town: RealTown, path: dict[str, str]) -> list[str]:
    done = town.run("gt-witness", "polecat", "list", "--json", env=path)
    return [each["state"] for row in json.loads(done.stdout) for each in row["sidecars"]]


def _touch(polecat: RealPolecat) -> None:
    """The agent opens a file that its issue puts out of scope, and is told in the same turn."""
    payload = json.dumps({"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_use_id": "t1",
                          "tool_input": {"file_path": "billing/invoice.py", "old_string": "a", "new_string": "b"},
                          "tool_response": {"filePath": "billing/invoice.py"}})  # fmt: skip
    argv = (sys.executable, "-S", "-I", str(hooks_dir() / "gt_hook.py"), "PostToolUse")
    heard = [polecat.run(*argv, stdin=payload).stdout]

    def told() -> bool:
        heard.append(polecat.run(*argv, stdin='{"tool_name":"Read"}').stdout)
        return any("[sidecar:scope" in text for text in heard)

    until(told, "its words", 30, below=polecat.folder, every=0.3)
