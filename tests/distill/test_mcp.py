"""The MCP server, asked by the official client."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.distill.artifacts import QUESTION, EvalLog, write_eval_log
from witness.cli import mcp as mcp_module
from witness.errors import UsageError


@pytest.fixture
def log(tmp_path: Path) -> tuple[str, EvalLog]:
    return str(tmp_path / "eval.log"), write_eval_log(tmp_path / "eval.log")


def over_stdio(
    environment: dict[str, str], cwd: Path, *calls: tuple[str, dict[str, Any]]
) -> tuple[list[str], list[Any]]:
    """Start the server as an agent's client does; the names of its tools, and the results of some calls."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def talk() -> tuple[list[str], list[Any]]:
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "witness.cli", "mcp"], env=environment, cwd=cwd
        )
        # Its default is what stderr was at its import: the capture of another test, perhaps.
        with open(os.devnull, "w") as silence:
            async with stdio_client(server, errlog=silence) as streams, ClientSession(*streams) as session:
                await session.initialize()
                names = [tool.name for tool in (await session.list_tools()).tools]
                return names, [await session.call_tool(name, given) for name, given in calls]

    return asyncio.run(asyncio.wait_for(talk(), 50))


def test_the_tools_answer_over_stdio(log: tuple[str, EvalLog], tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path)}
    names, (good, gone, ask, outside) = over_stdio(
        environment,
        tmp_path,
        ("distill_artifact", {"paths": log[0], "question": QUESTION}),
        ("distill_artifact", {"paths": [f"{log[0]}.gone"], "question": QUESTION}),
        ("ask", {"sidecar": "toast/specs", "question": "x?"}),
        ("distill_artifact", {"paths": "/etc/passwd", "question": "root?"}),
    )
    assert names == ["distill_artifact", "ask"]
    answer = json.loads(good.content[0].text)
    assert answer["outcome"] == "ANSWERED"
    assert set(answer) == {"outcome", "answer", "evidence", "gaps", "followups", "usage"}
    for needed in log[1].needed:
        assert any(needed in each["quote"] for each in answer["evidence"])
    assert not good.is_error
    assert gone.is_error
    assert "exit code 4" in gone.content[0].text
    assert ask.is_error
    assert "no town" in ask.content[0].text
    assert outside.is_error
    assert "--root" in outside.content[0].text


def test_each_tool_says_when_to_use_it() -> None:
    tools = {tool.name: tool for tool in asyncio.run(mcp_module.server().list_tools())}
    assert "without opening them" in (tools["distill_artifact"].description or "")
    assert set(tools["distill_artifact"].input_schema["required"]) == {"paths", "question"}
    for tool in tools.values():
        assert all(each.get("description") for each in tool.input_schema["properties"].values())
    assert set(tools["ask"].input_schema["required"]) == {"sidecar", "question"}


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    with pytest.raises(UsageError, match="gt-witness\\[mcp\\]"):
        mcp_module.server()


def test_the_skill_is_printed_and_installed(tmp_path: Path) -> None:
    def gt(*arguments: str) -> str:
        command = [sys.executable, "-m", "witness.cli", "distill", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    text = gt("--skill")
    front = text.split("---")[1]
    assert "name: distill" in front
    assert "description: " in front
    assert "gt distill --artifact" in text
    gt("--install-skill", str(tmp_path / "skills"))
    assert (tmp_path / "skills" / "distill" / "SKILL.md").read_text() == text
