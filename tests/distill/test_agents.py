"""The skill and the MCP server inside the real Claude Code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.distill.artifacts import QUESTION, EvalLog, write_eval_log
from tests.distill.test_claude_backend import CLAUDE, reader_server
from witness.testing import MessagesServer, say, use

pytestmark = pytest.mark.e2e


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MessagesServer]:
    if not CLAUDE.exists():
        pytest.skip("the real Claude Code is not installed: make e2e")
    with reader_server() as server:
        monkeypatch.setenv("HOME", str(tmp_path))
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def log(tmp_path: Path) -> tuple[Path, EvalLog]:
    (tmp_path / "work").mkdir()
    return tmp_path / "work" / "eval.log", write_eval_log(tmp_path / "work" / "eval.log")


def headless(work: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(CLAUDE), "-p", "do the work", *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=work, timeout=50, check=True,
    )  # fmt: skip


def test_the_server_answers_the_client(log: tuple[Path, EvalLog], server: MessagesServer, tmp_path: Path) -> None:
    gt = {"command": sys.executable, "args": ["-m", "witness.cli", "mcp"], "env": {"PATH": os.environ["PATH"]}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"gt": gt}}))
    # The client does not wait for a server to start until it is told to.
    server.play(use("WaitForMcpServers"))
    server.play(use("mcp__gt__distill_artifact", paths=[str(log[0])], question=QUESTION), say("Done."))
    headless(
        log[0].parent, "--mcp-config", str(tmp_path / "mcp.json"), "--strict-mcp-config",
        "--allowedTools", "mcp__gt__distill_artifact", "mcp__gt__ask",
    )  # fmt: skip
    names = {tool["name"] for tool in server.requests[1].body["tools"]}
    # A client with a search for tools names none of a server's tools until the model has looked for them.
    assert "ToolSearch" in names or {"mcp__gt__distill_artifact", "mcp__gt__ask"} <= names
    result = server.wait_for(lambda request: "ANSWERED" in request.news).news
    for needed in log[1].needed:
        assert json.dumps(needed)[1:-1] in result


def test_the_client_knows_the_skill(log: tuple[Path, EvalLog], server: MessagesServer, tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "skills"
    install = [sys.executable, "-m", "witness.cli", "distill", "--install-skill", str(folder)]
    subprocess.run(install, check=True, stdout=subprocess.DEVNULL)
    server.play(use("Skill", skill="distill"), say("Done."))
    headless(log[0].parent, "--allowedTools", "Skill")
    assert "Answer a narrow question about a huge log" in json.dumps(server.requests[0].body)
    assert "gt distill --artifact PATH" in server.requests[-1].text
