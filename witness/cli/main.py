"""The top of the command line: what is ours is run, what is not is handed to the real ``gt``."""

from __future__ import annotations

import sys

from witness.cli.commands import COMMANDS, SHARED
from witness.cli.exec_real_gt import find_real_gt, hand_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

_OWN_OPTIONS = ("-h", "--help", "--version")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 it failed, 2 bad usage or bad declaration."""
    try:
        _main(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:  # while a command was still being loaded
        sys.exit(130)


def _main(args: list[str]) -> None:
    if args == ["--version"]:
        from witness.version import __version__

        sys.stdout.write(f"gt-witness, version {__version__}\n")
        return
    if args and args[0] not in COMMANDS and args[0] not in _OWN_OPTIONS:
        _foreign(args)
    from witness.cli.program import run

    run(args)


def _foreign(args: list[str]) -> NoReturn:
    """Hand a command that is not ours to the real ``gt``, or say in one line that there is none."""
    if real := find_real_gt() or find_real_gt(any_other=True):
        hand_over(real, args)
    from witness.errors import did_you_mean

    meant = did_you_mean(args[0], COMMANDS) or "see 'gt --help'"
    sys.stderr.write(f"gt: no command named {args[0]!r} here, and no other gt on PATH to hand it to: {meant}\n")
    sys.exit(2)


def pass_to_real(args: Sequence[str]) -> None:
    """Hand over what we could not make sense of, when Gas Town has a command of that name and it may be its own form.

    Only what failed before anything was done comes here, so nothing is done twice. Returns when it stays with us.
    """
    command = next((arg for arg in args if not arg.startswith("-")), "")
    if command not in SHARED or (len(args) > 1 and args[1] in SHARED[command]):
        return
    if real := find_real_gt():
        hand_over(real, args)
