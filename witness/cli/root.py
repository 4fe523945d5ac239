"""The top of the command line, and the one place where errors become exit codes."""

from __future__ import annotations

import importlib
import os
import sys

import click

from witness import __version__
from witness.errors import WitnessError

# Each command stands in a module of its own that is imported only when it is called: `gt done` inside a polecat must
# not pay for rich tables and HTTP clients.
_COMMANDS: dict[str, tuple[str, str]] = {
    "ask": ("witness.cli.distill:ask", "put a question to what a sidecar knows"),
    "demo": ("witness.cli.demo:demo", "the main job, shown in a scratch town"),
    "distill": ("witness.cli.distill:distill", "ask a narrow question of a huge file"),
    "doctor": ("witness.cli.doctor:doctor", "what was found here, what is wrong, how to mend it"),
    "done": ("witness.cli.done:done", "inside a polecat: the work is finished, end the group"),
    "hooks": ("witness.cli.hooks:hooks", "the hooks in the agent's client: install, uninstall, status"),
    "init": ("witness.cli.init:init", "make a standalone town"),
    "mcp": ("witness.cli.mcp:mcp", "serve distill and ask to an agent over MCP"),
    "memory": ("witness.cli.memory:memory", "what an agent remembers from session to session"),
    "molecule": ("witness.cli.molecule:molecule", "lint, show and resolve molecules"),
    "nudge": ("witness.cli.nudge:nudge", "send a polecat a line of text"),
    "party": ("witness.cli.party:party", "several agents with their memories around one topic"),
    "peek": ("witness.cli.peek:peek", "read a polecat's pane"),
    "polecat": ("witness.cli.polecat:polecat", "spawn, list and nuke polecats with their sidecars"),
    "prompt": ("witness.cli.prompt:prompt", "render, parse and lint prompts made of typed blocks"),
    "sidecar": ("witness.cli.sidecar:sidecar", "types, lint, log, costs, replay and eval of sidecars"),
    "witness": ("witness.cli.witness:witness", "the supervisor: run, start, stop, status, patrol"),
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)  # noqa: S101
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # The short helps stand in the table, so that --help imports no command.
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gt-witness")
def gt() -> None:
    """Spawn coding agents with their sidecars, keep them alive, end them without survivors."""


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 it failed, 2 bad usage or bad declaration."""
    try:
        gt.main(args=argv, prog_name="gt", standalone_mode=False)
    except WitnessError as error:
        for line in str(error).splitlines():
            click.echo(f"gt: {line}", err=True)
        sys.exit(error.exit_code)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.ClickException as error:
        click.echo(f"gt: {error.format_message()}", err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        # The reader left (`gt … | head`): that is no failure of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
