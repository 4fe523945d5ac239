"""``gt mcp``: distill and ask as tools of an MCP server on stdio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from witness.errors import UsageError, WitnessError

if TYPE_CHECKING:
    from mcp.server import MCPServer

_INSTRUCTIONS = (
    "Do not open a huge log, generated file or long document: put a narrow question to it with distill_artifact. "
    "What your sidecars know (specs, conventions, the issue) is asked with ask."
)


def server(backend: str = "auto") -> MCPServer:
    """The server, with its two tools.

    Args:
        backend: the backend of all questions.

    Raises:
        UsageError: the ``mcp`` package is not installed.
    """
    try:
        from mcp.server import MCPServer
    except ImportError as error:
        raise UsageError("gt mcp needs the package mcp: pip install 'gt-witness[mcp]'") from error

    from witness import __version__

    made = MCPServer("gt-witness", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING")

    @made.tool()
    async def distill_artifact(
        paths: list[str], question: str, max_output_chars: int = 4000, timeout: float = 120.0
    ) -> dict[str, Any]:
        """Answer a narrow question about huge files without opening them: logs, JSON, archives, folders.

        Write the words that you expect to read into the question. Evidence was checked by machine when it is verified.
        """
        limits = {"max_output_chars": max_output_chars, "timeout": timeout}
        return await asyncio.to_thread(_answered, backend, limits, lambda asking: asking.artifacts(paths, question))

    @made.tool()
    async def ask(sidecar: str, question: str, max_output_chars: int = 4000, timeout: float = 120.0) -> dict[str, Any]:
        """Ask what a sidecar knows, as "specs" or "toast/specs": its documents answer, with evidence."""
        limits = {"max_output_chars": max_output_chars, "timeout": timeout}
        return await asyncio.to_thread(_answered, backend, limits, lambda asking: asking.sidecar(sidecar, question))

    return made


def _answered(backend: str, limits: dict[str, Any], question: Any) -> dict[str, Any]:
    from witness.cli.distill_service import Asking

    try:
        answer = question(Asking(backend, limits))
    except WitnessError as error:
        # An agent that is told why acts on it; a protocol error would only look like a broken server.
        return {"outcome": f"FAILED ({error.exit_code})", "error": str(error)}
    return {"outcome": answer.outcome.name, **answer.to_dict()}


@click.command()
@click.option(
    "--backend",
    type=click.Choice(["auto", "model", "claude", "index"]),
    default="auto",
    show_default=True,
    help="who answers, as of gt distill",
)
def mcp(backend: str) -> None:
    """Serve distill_artifact and ask to an agent over MCP, on stdin and stdout.

    In Claude Code: claude mcp add gt -- gt mcp
    """
    server(backend).run("stdio")
