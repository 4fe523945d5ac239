"""Our commands as one click program, and the one place where errors become exit codes."""

from __future__ import annotations

import importlib
import io
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

import click

from witness.cli.commands import COMMANDS
from witness.cli.main import pass_over_a_fault, pass_to_real
from witness.errors import DeclarationError, JournalError, NotFoundError, WitnessError, did_you_mean
from witness.version import __version__


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


def run(args: Sequence[str]) -> None:
    """Run a command of ours and exit: 0 done, 1 it failed, 2 bad usage or bad declaration."""
    _bear_the_world()
    sys.stdout, sys.stderr = cast(TextIO, PlainOutput(sys.stdout)), cast(TextIO, PlainOutput(sys.stderr))
    try:
        # Without its standalone mode click hands the code of ctx.exit() back instead of ending with it.
        if isinstance(code := gt.main(args=list(args), prog_name=_name(), standalone_mode=False), int):
            sys.exit(code)
    except NotFoundError as error:
        if error.what == "polecat":  # Gas Town has agents that are none of ours: mayor, crew, dogs
            pass_to_real(args)
        _fail(error)
    except (JournalError, DeclarationError) as error:
        pass_over_a_fault(args, error)
        _fail(error)
    except WitnessError as error:
        _fail(error)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        pass_to_real(args)
        click.echo(f"gt: {_with_near(error)}", err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        # The reader left (`gt … | head`): that is no failure of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:  # a full disk, a read-only folder: one line, as for every other trouble
        click.echo(f"gt: {error.filename or 'the system says'}: {error.strerror or error}", err=True)
        sys.exit(1)


def _bear_the_world() -> None:
    """Print what a terminal's encoding knows, and have a home folder that is none where there is none to be had.

    A stream that the caller has closed leads nowhere: else the next file that is opened, the journal perhaps, has its
    number, and children print into it.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if not os.environ.get("HOME"):
        try:
            Path.home()
        except RuntimeError:  # a user id without an account, as containers have it
            os.environ["HOME"] = "/nonexistent"


def _with_near(error: click.ClickException) -> str:
    """The error's own words, and what to do: the nearest command, or where the right form stands."""
    text, context = error.format_message().replace("\n", " "), getattr(error, "ctx", None)
    if text.startswith("No such command") and context and isinstance(context.command, click.Group):
        given = text.split("'")[1] if "'" in text else ""
        names = context.command.list_commands(context)
        # Newer releases of click name a near command themselves, in words of their own.
        return f"No such command {given!r}: {did_you_mean(given, names) or 'there are: ' + ', '.join(names)}"
    told = isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter)
    if context and not told and "Did you mean" not in text:
        return f"{text.rstrip('.')}: see '{context.command_path} --help'"
    return text


def _name() -> str:
    """The name that we were called by: help and completion go by it."""
    return "gt-witness" if sys.argv and os.path.basename(sys.argv[0]) == "gt-witness" else "gt"  # noqa: PTH119


def _fail(error: WitnessError) -> NoReturn:
    for line in str(error).splitlines():
        click.echo(f"gt: {line}", err=True)
    sys.exit(error.exit_code)


# The one way to the terminal: whatever a command prints, no control byte of somebody's file name goes with it.

# Colours and styles, which only change how text looks; everything else that a terminal obeys, signs that turn the
# direction of writing included.
_STYLE = r"\x1b\[[0-9;:]*m"
_OBEYED = re.compile(f"({_STYLE})|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class PlainOutput:
    """A text stream without control characters but the line's end and the tab; styles pass to a terminal only.

    Args:
        stream: what is written to.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text; returns its length, as it was given."""
        self._stream.write(_OBEYED.sub(self._kept, text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def _kept(self, found: re.Match[str]) -> str:
        return found[1] if found[1] and self._stream.isatty() else ""
