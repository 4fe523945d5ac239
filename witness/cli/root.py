"""The top of the command line: what is ours is run, what is not is handed to the real ``gt``, errors become exit codes.

Gas Town calls ``gt`` in every hook of every agent. So a command that is not ours is handed over before anything heavy
is imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from witness.cli.real_gt import find_real_gt, hand_over
from witness.errors import NotFoundError, WitnessError

# Each command stands in a module of its own that is imported only when it is called: `gt done` inside a polecat must
# not pay for rich tables and HTTP clients.
COMMANDS: dict[str, tuple[str, str]] = {
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
# Commands that Gas Town has too. What of them is not ours (`gt witness attach`, `gt hooks sync`, `gt peek mayor/`) is
# handed over as well; beside them, what only we have.
SHARED: dict[str, frozenset[str]] = {
    "doctor": frozenset(),
    "done": frozenset(),
    "hooks": frozenset(["uninstall"]),
    "init": frozenset(),
    "molecule": frozenset(["lint", "vars"]),
    "nudge": frozenset(),
    "peek": frozenset(),
    "polecat": frozenset(["spawn"]),
    "witness": frozenset(["run", "patrol", "install"]),
}
_OWN_OPTIONS = ("-h", "--help", "--version")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 it failed, 2 bad usage or bad declaration."""
    args = list(sys.argv[1:] if argv is None else argv)
    if args and args[0] not in COMMANDS and args[0] not in _OWN_OPTIONS:
        _foreign(args)
    import click

    from witness.cli.program import gt

    try:
        # Without its standalone mode click hands the code of ctx.exit() back instead of ending with it.
        if isinstance(code := gt.main(args=args, prog_name="gt", standalone_mode=False), int):
            sys.exit(code)
    except NotFoundError as error:
        if error.what == "polecat":  # Gas Town has agents that are none of ours: mayor, crew, dogs
            _pass_to_real(args)
        _fail(error)
    except WitnessError as error:
        _fail(error)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        _pass_to_real(args)
        click.echo(f"gt: {error.format_message()}", err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        # The reader left (`gt … | head`): that is no failure of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _fail(error: WitnessError) -> NoReturn:
    for line in str(error).splitlines():
        print(f"gt: {line}", file=sys.stderr)  # noqa: T201 - click need not be there yet
    sys.exit(error.exit_code)


def _foreign(args: list[str]) -> NoReturn:
    """Hand a command that is not ours to the real ``gt``, or say in one line that there is none."""
    real = find_real_gt()
    if real is not None:
        _become(real, args)
    print(f"gt: no command named {args[0]!r} here, and no other gt on PATH to hand it to: see 'gt --help'", file=sys.stderr)  # noqa: E501, T201 # fmt: skip
    sys.exit(2)


def _pass_to_real(args: list[str]) -> None:
    """Hand over what we could not make sense of, when Gas Town has a command of that name and it may be its own form.

    Only what failed before anything was done comes here, so nothing is done twice.
    """
    command = next((arg for arg in args if not arg.startswith("-")), "")
    if command not in SHARED or (len(args) > 1 and args[1] in SHARED[command]):
        return
    if (real := find_real_gt()) is not None:
        _become(real, args)


def _become(real: os.PathLike[str], args: list[str]) -> NoReturn:
    from pathlib import Path

    try:
        hand_over(Path(real), args)
    except OSError as error:
        print(f"gt: {real} cannot be started: {error.strerror}", file=sys.stderr)  # noqa: T201
        sys.exit(1)
