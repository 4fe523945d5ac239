"""docs/gas-town.md, from the installation to the first injection and back, command by command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.gas_town import end_town, make_gas_town
from tests.docs import town_programs
from tests.docs.commands import commands
from witness.config.resources import molecules_dir
from witness.config.town import Town
from witness.journal import Journal, MemberState
from witness.launch import town_witness

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "gas-town.md"
SETTINGS = '{"model":"opus",\n\t"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}'


class Machine:
    """A home directory with a town in it, and a shell that runs one command after the other."""

    def __init__(self, home: Path) -> None:
        self.home, self.place = home, home
        town_programs.install(home / "go" / "bin", "gt")
        town_programs.install(home / "system", "bd", "pipx")
        (home / ".claude").mkdir()
        (home / ".claude" / "settings.json").write_text(SETTINGS)
        (home / "src" / "shop").mkdir(parents=True)
        self.gate = home / "gate"
        os.mkfifo(self.gate)
        self.town = make_gas_town(home / "gt")
        path = [home / "go" / "bin", home / ".local" / "bin", home / "system"]
        self.environment = {
            "HOME": str(home),
            "PATH": os.pathsep.join([*map(str, path), os.environ["PATH"]]),
            "PYTHONPATH": str(ROOT),
            "SAMPLE": str(molecules_dir() / "demo-repo"),
            "GATE": str(self.gate),
            "SCRIPTED_AGENT_PAUSE": "0",
            "COLUMNS": "250",
        }

    def run(self, command: str) -> str:
        """Run one line of the page as a person's shell would, and return what it printed."""
        if command.startswith("cd "):
            self.place = Path(command[3:].replace("~", str(self.home)))
            return ""
        shell = ["/bin/sh", "-c", command]
        done = subprocess.run(shell, env=self.environment, cwd=self.place, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def files(self) -> dict[str, bytes]:
        """Every file with its content."""
        return {
            str(path.relative_to(self.home)): path.read_bytes()
            for path in sorted(self.home.rglob("*"))
            if path.is_file()
        }


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    end_town(machine.town)


def _until_followed(town: Town) -> None:
    """Wait until the sidecar observes, so that the scripted agent, which takes no time, cannot be done before it.

    Each request is a full look of the Witness, so this waits for its work and not for time.
    """
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        answer = town_witness.ask(town, {"op": "patrol"}, 20.0)
        assert answer is not None
        assert answer["errors"] == []
        with Journal(town.journal_path) as journal:
            living = [member for members in journal.members.of_living().values() for member in members]
        if any(member.name == "scope" and member.state is MemberState.RUNNING for member in living):
            return
    raise AssertionError("the Witness did not adopt the polecat")


@pytest.mark.timeout(120)
def test_from_install_to_the_first_injection_and_back(machine: Machine) -> None:
    before = machine.files()
    seen: dict[str, str] = {}
    for command in commands(PAGE):
        seen[command] = machine.run(command)
        if command.startswith("gt sling"):
            _until_followed(machine.town)
        if command == "gt-witness polecat list":
            assert "scope" in seen[command]
            machine.gate.open("w").close()
            _until_said(machine)
    assert "billing/invoice.py" in seen["gt-witness sidecar log gastown/Toast"]
    assert "Gas Town" in seen["gt-witness doctor"]
    after = machine.files()
    assert {name: after.get(name) for name in before} == before
    theirs = ("gt/.events.jsonl", "gt/bead.json", ".claude/transcript.jsonl")
    assert {name for name in after if name not in before and name not in theirs} == set()


def _until_said(machine: Machine) -> None:
    """Wait for the agent's own record: the line that a hook has handed to it."""
    transcript = machine.home / ".claude" / "transcript.jsonl"
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if transcript.exists() and "[sidecar:scope]" in transcript.read_text():
            return
        town_witness.ask(machine.town, {"op": "status"}, 20.0)
    raise AssertionError("no sidecar spoke up")


def test_the_pages_snippets_are_what_they_say(tmp_path: Path) -> None:
    import re
    import tomllib

    import yaml

    text = PAGE.read_text() + (ROOT / "docs" / "molecules.md").read_text()
    for kind, block in re.findall(r"^```(toml|yaml)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        (tomllib.loads if kind == "toml" else yaml.safe_load)(block)


def test_the_molecules_of_the_page_pass_the_linter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import re

    from witness.declare.molecule import Molecule

    for page in ("gas-town.md", "molecules.md"):
        for block in re.findall(r"^```toml\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL):
            path = tmp_path / "m.formula.toml"
            path.write_text(block)
            assert Molecule.load(path, workdir=tmp_path, strict=True).sidecars({})
            done = subprocess.run(
                [sys.executable, "-m", "witness.cli", "molecule", "show", str(path), "--json"],
                capture_output=True, text=True, check=True, cwd=ROOT,
            )  # fmt: skip
            assert json.loads(done.stdout)["steps"]
