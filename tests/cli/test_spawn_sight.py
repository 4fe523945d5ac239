"""``gt polecat spawn`` says what the agent shows first, and answers the folder's question when it is told to."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scripts import BASE_PYTHON
from tests.supervise.command import GT, gt
from witness.api import Witness
from witness.config.town import Town
from witness.testing import make_town, supervised

RULE = "─" * 60
TRUST = (
    "\n Accessing workspace:\n\n /work\n\n Quick safety check: Is this a project you created or one you trust?\n\n"
    " ❯ 1. Yes, I trust this folder\n   2. No, exit\n\n Enter to confirm · Esc to cancel\n"
)
PROMPT = f"{RULE}\n❯\u00a0\n{RULE}\n  ? for shortcuts\n"
WORK = f"✶ Thinking… (3s)\n\n{RULE}\n❯\u00a0\n{RULE}\n  esc to interrupt\n"
LOGIN = " Select login method:\n\n ❯ 1. Claude account\n   2. API usage billing\n"
NETWORK = f"  ⎿  Unable to connect to API\n\n{PROMPT}"
MCP = "\n New MCP server found in .mcp.json: db\n\n ❯ 1. Use this MCP server\n   2. Continue without\n\n Enter to confirm · Esc to cancel\n"  # noqa: E501


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Town, Witness]]:
    town = make_town(tmp_path / "town")
    (town.root / "settings").mkdir()
    (town.root / "settings" / "witness.yaml").write_text("containment: reaper\n")
    with supervised(town) as witness:
        yield town, witness


def client(folder: Path, text: str, then: str = "signal.pause()") -> str:
    program = folder / "claude"
    program.write_text(
        f"#!{BASE_PYTHON}\nimport json, os, signal, sys, time\n"
        f"print({text!r} or open(os.environ['HOME'] + '/.claude.json').read(), flush=True)\n{then}\n"
    )
    program.chmod(0o700)
    return shlex.quote(str(program))


@pytest.mark.parametrize(
    ("text", "saw", "waits_for", "told"),
    [
        (TRUST, "dialog", "trust", "waits at the folder dialog of Claude Code"),
        (PROMPT, "prompt", None, "is at its prompt"),
        (WORK, "work", None, "works"),
        (LOGIN, "dialog", "login", "waits for a login"),
        (MCP, "dialog", "mcp", "waits at the dialog of an MCP server"),
        (NETWORK, "dialog", "network", "waits for the network"),
    ],
)
def test_what_the_agent_shows_first_is_told(
    place: tuple[Town, Witness], tmp_path: Path, text: str, saw: str, waits_for: str | None, told: str
) -> None:
    town, _ = place
    agent = client(tmp_path, text)
    done = gt(town.root, "polecat", "spawn", "a", "--workdir", "repo", "--agent", agent, "--json", "--no-witness")
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout)["first"]
    assert (first["saw"], (first["waiting"] or {}).get("for")) == (saw, waits_for)
    done = gt(town.root, "polecat", "spawn", "b", "--workdir", "repo", "--agent", agent, "--no-witness")
    assert told in done.stdout
    if waits_for == "trust":
        assert "gt attach b" in done.stdout
        assert "--accept-folder" in done.stdout


def test_an_agent_that_ends_meanwhile_is_told_with_its_last_words(place: tuple[Town, Witness], tmp_path: Path) -> None:
    town, _ = place
    go = tmp_path / "go"
    os.mkfifo(go)
    agent = client(tmp_path, "boom: no config", f"open({str(go)!r}).read(); sys.exit(3)")
    argv = [*GT, "polecat", "spawn", "a", "--workdir", "repo", "--agent", agent, "--no-witness"]
    with subprocess.Popen(argv, cwd=town.root, text=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as spawn:
        assert spawn.stdout
        assert "runs in session" in spawn.stdout.readline()  # it has settled
        go.write_text("")
        told = spawn.communicate(timeout=30)[1]
    assert spawn.returncode == 1
    assert told.count("\n") == 1
    assert "exit status 3" in told
    assert "boom: no config" in told


def test_no_wait_returns_at_once_and_unknown_agents_are_not_waited_for(
    place: tuple[Town, Witness], tmp_path: Path
) -> None:
    town, _ = place
    agent = client(tmp_path, "a screen that nobody knows")
    common = ("--workdir", "repo", "--json", "--no-witness")
    done = gt(town.root, "polecat", "spawn", "a", "--agent", agent, "--no-wait", *common)
    assert "first" not in json.loads(done.stdout)
    done = gt(town.root, "polecat", "spawn", "b", "--agent", "sleep 60", *common)
    assert "first" not in json.loads(done.stdout)


@pytest.mark.parametrize("setting", ["", "folders: accept\n"])
def test_the_folder_is_accepted_before_the_client_starts_and_shown(
    place: tuple[Town, Witness], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    town, _ = place
    with (town.root / "settings" / "witness.yaml").open("a") as file:
        file.write(setting)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    agent = client(tmp_path, "")  # shows what it found in its file
    flag = () if setting else ("--accept-folder",)
    done = gt(
        town.root, "polecat", "spawn", "a", "--workdir", "repo", "--agent", agent, "--no-witness", "--no-wait", *flag
    )
    assert done.returncode == 0, done.stderr
    repo = town.root / "repo"
    assert f"{repo}" in done.stderr
    assert ".claude.json" in done.stderr
    found = json.loads((tmp_path / ".claude.json").read_text())
    assert found == {"projects": {str(repo): {"hasTrustDialogAccepted": True}}}


def test_never_means_never_and_nothing_starts(place: tuple[Town, Witness], tmp_path: Path) -> None:
    town, witness = place
    with (town.root / "settings" / "witness.yaml").open("a") as file:
        file.write("folders: never\n")
    done = gt(
        town.root, "polecat", "spawn", "a", "--workdir", "repo", "--agent", client(tmp_path, TRUST), "--accept-folder"
    )
    assert done.returncode == 2
    assert "folders: never" in done.stderr
    assert witness.polecats() == []
