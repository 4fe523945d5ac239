"""The top of the command line: what is ours is run, what is not is handed to the real ``gt``."""

from __future__ import annotations

import os
import sys

from witness.cli.commands import COMMANDS, SHARED
from witness.cli.exec_real_gt import find_real_gt, hand_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

# Set by witness/cli/gt, the shell script that stands before Gas Town's gt: the name that was typed.
_CALLED_AS = "GT_WITNESS_AS"
_OWN_OPTIONS = ("-h", "--help", "--version")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 it failed, 2 bad usage or bad declaration."""
    if name := os.environ.pop(_CALLED_AS, ""):
        sys.argv[0] = os.path.join(os.path.dirname(sys.argv[0]), name)  # noqa: PTH118, PTH120 - pathlib takes 10 ms
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


def pass_over_a_fault(args: Sequence[str], fault: object) -> None:
    """Hand an end or a look of Gas Town's own to it although our state is at fault, and say what the fault is.

    For faults that come before anything was done. Returns when it stays with us: outside of a Gas Town, without
    another ``gt``, and for what Gas Town does not have.
    """
    words = [arg for arg in args if not arg.startswith("-")]
    ours = (words[:1] != ["done"] and words[:1] not in (["nudge"], ["peek"])
            and words[:2] not in (["polecat", "nuke"], ["polecat", "status"]))  # fmt: skip
    if ours or "--json" in args or os.environ.get("GT_WITNESS_GROUP"):
        return
    from witness.config.town import Town

    if (real := find_real_gt()) and Town.around_is_gas_town():
        sys.stderr.write(f"gt: {fault}\ngt: handed to Gas Town's own: {real}\n")
        hand_over(real, args)


def pass_to_real(args: Sequence[str]) -> None:
    """Hand over what we could not make sense of, when Gas Town has a command of that name and it may be its own form.

    Only what failed before anything was done comes here, so nothing is done twice. Returns when it stays with us.
    """
    command = next((arg for arg in args if not arg.startswith("-")), "")
    if command not in SHARED or (len(args) > 1 and args[1] in SHARED[command]):
        return
    if real := find_real_gt():
        hand_over(real, args)
