"""``gt mcp``: distill and ask as tools of an MCP server on stdio."""

from __future__ import annotations

import asyncio
import itertools
import math
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote, urlparse

import click

from witness.clock import SystemClock
from witness.errors import UsageError, WitnessError

if TYPE_CHECKING:
    from mcp.server import MCPServer

_INSTRUCTIONS = (
    "Do not open a huge log, generated file or long document: put a narrow question to it with distill_artifact. "
    "What your sidecars know (specs, conventions, the issue) is asked with ask."
)


def server(backend: str = "auto", roots: Sequence[str] = ()) -> MCPServer:
    """The server, with its two tools.

    Args:
        backend: the backend of all questions.
        roots: folders that may be read beside the client's roots; without such, beside the work tree.

    Raises:
        UsageError: the ``mcp`` package is not installed.
    """
    try:
        from mcp.server import MCPServer
        from mcp.server.mcpserver import Context
        from pydantic import Field
    except ImportError as error:
        raise UsageError("gt mcp needs the package mcp: pip install 'gt-witness[mcp]'") from error

    from witness.version import __version__

    made = MCPServer("gt-witness", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING")
    question_field = Field(description="what you want to know, with the words that you expect to read")
    chars_field = Field(description="longest answer with its evidence, in characters", ge=200)
    timeout_field = Field(description="seconds for everything", gt=0)

    async def distill_artifact(
        ctx: Any, paths: Any, question: Any, max_output_chars: Any = 4000, timeout: Any = 120.0
    ) -> dict[str, Any]:
        """Answer a narrow question about huge files without opening them: logs, JSON, documents, archives, folders.

        Write the words that you expect to read into the question. Evidence was checked by machine when it is verified.
        """
        chosen = [paths] if isinstance(paths, str) else list(paths)
        _inside(chosen, [*await _roots_of(ctx), *map(Path, roots)])
        limits = {"max_output_chars": max_output_chars, "timeout": timeout}
        return await _answered(ctx, backend, limits, lambda asking: asking.artifacts(chosen, question))

    async def ask(
        ctx: Any, sidecar: Any, question: Any, max_output_chars: Any = 4000, timeout: Any = 120.0
    ) -> dict[str, Any]:
        """Ask what a sidecar knows, as "specs" or "toast/specs": its documents answer, with evidence."""
        limits = {"max_output_chars": max_output_chars, "timeout": timeout}
        return await _answered(ctx, backend, limits, lambda asking: asking.sidecar(sidecar, question))

    # The schema is made of these; written as annotations they would need mcp whenever this module is loaded.
    shared: dict[str, Any] = {
        "ctx": Context,
        "question": Annotated[str, question_field],
        "max_output_chars": Annotated[int, chars_field],
        "timeout": Annotated[float, timeout_field],
        "return": dict[str, Any],
    }
    paths_field = Field(description="a file or folder, or a list of them, below the roots of the client")
    sidecar_field = Field(description="the sidecar's name, outside of its polecat as target/sidecar")
    distill_artifact.__annotations__ = {**shared, "paths": Annotated[str | list[str], paths_field]}
    ask.__annotations__ = {**shared, "sidecar": Annotated[str, sidecar_field]}
    made.tool()(distill_artifact)
    made.tool()(ask)
    return made


async def _roots_of(ctx: Any) -> list[Path]:
    """The folders that the client has declared; without such, the work tree that the server was started in."""
    from mcp.shared.exceptions import MCPError

    known = ctx.session.client_capabilities
    if known is not None and known.roots is not None:
        # A client may declare roots on a connection over which it cannot be asked for them (Claude Code 2.1.332).
        with suppress(MCPError):
            found = await ctx.session.list_roots()
            return [Path(unquote(urlparse(str(each.uri)).path)) for each in found.roots]
    here = Path.cwd()
    return [next((above for above in (here, *here.parents) if (above / ".git").exists()), here)]


def _inside(paths: Sequence[str], roots: Sequence[Path]) -> None:
    from mcp.server.mcpserver.exceptions import ToolError

    real = [root.resolve() for root in roots]
    for path in paths:
        if not any(Path(path).resolve().is_relative_to(root) for root in real):
            below = ", ".join(map(str, real)) or "nowhere"
            raise ToolError(
                f"{path}: may not be read, only what lies below {below}: start gt mcp with --root DIR for more"
            )


class _UntilCancelled(SystemClock):
    """A clock for which all time is up when the client has taken its call back."""

    def __init__(self) -> None:
        super().__init__()
        self.cancelled = threading.Event()

    def monotonic(self) -> float:
        return math.inf if self.cancelled.is_set() else super().monotonic()


async def _answered(ctx: Any, backend: str, limits: dict[str, Any], question: Any) -> dict[str, Any]:
    from mcp.server.mcpserver.exceptions import ToolError

    from witness.cli.distill_service import Asking

    loop, clock, steps = asyncio.get_running_loop(), _UntilCancelled(), itertools.count(1)

    def progress(text: str) -> None:
        asyncio.run_coroutine_threadsafe(ctx.report_progress(next(steps), message=text), loop)

    try:
        answer = await asyncio.to_thread(question, Asking(backend, limits, progress, clock))
    except WitnessError as error:
        raise ToolError(f"{error} (exit code {int(error.exit_code)})") from error
    finally:
        clock.cancelled.set()  # after the answer it changes nothing
    return {"outcome": answer.outcome.name, **answer.to_dict()}


@click.command()
@click.option(
    "--backend",
    type=click.Choice(["auto", "model", "claude", "index"]),
    default="auto",
    show_default=True,
    help="who answers, as of gt distill",
)
@click.option("--root", "roots", multiple=True, metavar="DIR", help="a folder that may be read too; may be repeated")
def mcp(backend: str, roots: tuple[str, ...]) -> None:
    """Serve distill_artifact and ask to an agent over MCP, on stdin and stdout.

    Read is what lies below the client's roots, without such below the work tree.

    In Claude Code: claude mcp add gt -- gt mcp
    """
    server(backend, roots).run("stdio")
