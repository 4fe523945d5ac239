"""The project's MCP servers and, where the user had them listed, their tools.

Servers are programs of the project: nothing here starts one. ``gt sidecar tools`` does, when the user calls it, and
leaves what they offer in ``.gt/mcp-tools.json``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from witness.errors import UsageError
from witness.files import check_within, parse_json, read_project, replace_file

LISTING = Path(".gt") / "mcp-tools.json"
DECLARED = ".mcp.json"
_LONGEST = 1_000_000
_SERVER_SECONDS = 20.0


def declared_servers(workdir: Path) -> dict[str, Any]:
    """The servers that ``.mcp.json`` declares, by name; none when there is no such file, or it is not readable."""
    servers = _read(workdir / DECLARED).get("mcpServers")
    return {name: each for name, each in servers.items() if isinstance(each, dict)} if isinstance(servers, dict) else {}


def describe_servers(workdir: Path) -> str:
    """One line a tool, as a model reads it; empty when the project has no server."""
    listing = _read(workdir / LISTING)
    lines = []
    for name in sorted({*declared_servers(workdir), *listing}):
        tools = listing.get(name)
        if not isinstance(tools, list):
            lines.append(f"server {name}")
            continue
        for tool in tools:
            if isinstance(tool, dict):
                about = " ".join(str(tool.get("description", "")).split())[:200]
                lines.append(f"mcp__{name}__{tool.get('name', '')}: {about}")
    return "\n".join(lines)


def list_tools(workdir: Path, servers: Mapping[str, Any]) -> tuple[dict[str, list[dict[str, str]]], dict[str, str]]:
    """Start servers, ask each for its tools, end them, and keep the answers in ``LISTING``.

    Args:
        workdir: the project.
        servers: from ``declared_servers``.

    Returns:
        (tools by server, what went wrong by server).

    Raises:
        UsageError: the ``mcp`` package is not installed.
    """
    try:
        import mcp  # noqa: F401
    except ImportError as error:
        raise UsageError("listing MCP tools needs the package mcp: pip install 'gt-witness[mcp]'") from error
    import asyncio

    found: dict[str, list[dict[str, str]]] = {}
    failures: dict[str, str] = {}
    for name, server in servers.items():
        try:
            found[name] = asyncio.run(asyncio.wait_for(_ask_server(server, workdir), _SERVER_SECONDS))
        except TimeoutError:
            failures[name] = f"no answer within {_SERVER_SECONDS:g} s"
        except Exception as error:  # noqa: BLE001 - a foreign program may fail in any way; the others are listed all the same
            failures[name] = " ".join(str(error).split())[:200] or type(error).__name__
    place = workdir / LISTING
    place.parent.mkdir(exist_ok=True)
    check_within(place.parent)
    replace_file(place, json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    return found, failures


async def _ask_server(server: Mapping[str, Any], workdir: Path) -> list[dict[str, str]]:
    from contextlib import AsyncExitStack

    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async with AsyncExitStack() as stack:
        if server.get("url"):
            from mcp.client.streamable_http import streamable_http_client

            streams = (await stack.enter_async_context(streamable_http_client(str(server["url"]))))[:2]
        else:
            parameters = StdioServerParameters(
                command=str(server.get("command", "")),
                args=[str(each) for each in server.get("args", [])],
                env={str(name): str(value) for name, value in (server.get("env") or {}).items()},
                cwd=workdir,
            )
            # What a server logs is its own business.
            silence = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
            streams = await stack.enter_async_context(stdio_client(parameters, errlog=silence))
        session = await stack.enter_async_context(ClientSession(*streams))
        await session.initialize()
        return [
            {"name": tool.name, "description": tool.description or ""} for tool in (await session.list_tools()).tools
        ]


def _read(path: Path) -> dict[str, Any]:
    try:
        value = parse_json(read_project(path, _LONGEST))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
