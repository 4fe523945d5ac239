"""Our commands as one click program; each command's module is imported when it is called."""

from __future__ import annotations

import importlib

import click

from witness import __version__
from witness.cli.root import COMMANDS


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)  # noqa: S101
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # The short helps stand in the table, so that --help imports no command.
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gt-witness")
def gt() -> None:
    """Spawn coding agents with their sidecars, keep them alive, end them without survivors.

    A command that is not listed here is handed to the next gt on PATH.
    """
