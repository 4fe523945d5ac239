"""The project's MCP servers and, where the user had them listed, their tools.

Servers are programs of the project: nothing here starts one. ``gt sidecar tools`` does, when the user calls it, and
leaves what they offer in ``.gt/mcp-tools.json``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LISTING = Path(".gt") / "mcp-tools.json"
DECLARED = ".mcp.json"
_LONGEST = 1_000_000


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


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _LONGEST:
            return {}
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
