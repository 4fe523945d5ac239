"""Gas Town's side of ending a polecat, by the real ``gt``: worktree, branch and bead are never ours to take away."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType

from witness.cli.exec_real_gt import NAME, find_real_gt, given_environment
from witness.config.town import Town
from witness.journal import Group
from witness.names import GroupId


def known_to_gas_town(town: Town, group: GroupId) -> bool:
    """Whether Gas Town has a worktree for it; a polecat of ours alone has none."""
    return town.gastown and town.worktree(group.rig, group.polecat) is not None


def nuke_there(
    town: Town, groups: Sequence[Group], *, force: bool, dry_run: bool, quiet: bool
) -> tuple[list[Group], list[Group]]:
    """Let the real ``gt polecat nuke`` end those that Gas Town knows, with its own safety checks.

    It goes first. It checks before it touches anything, so what it refuses to end is as it was; what it ends, we then
    make sure of.

    Args:
        town: the town.
        groups: the polecats to end.
        force: skip the safety checks.
        dry_run: only let it say what it would do.
        quiet: keep its words off stdout.

    Returns:
        (those that may be ended, those that it refused).
    """
    real = find_real_gt() if town.gastown else ""
    free: list[Group] = []
    refused: list[Group] = []
    for group in groups:
        if not real or not known_to_gas_town(town, group.id):
            free.append(group)
            continue
        flags = [flag for flag, given in (("--force", force), ("--dry-run", dry_run)) if given]
        code = run_real_gt(real, ["polecat", "nuke", group.id.address, *flags], quiet=quiet)
        (free if code == 0 else refused).append(group)
    return free, refused


def nuke_rig_there(
    town: Town, groups: Sequence[Group], rig: str, *, force: bool, dry_run: bool, quiet: bool
) -> tuple[list[Group], list[Group], int]:
    """Let the real ``gt polecat nuke RIG --all`` end all polecats of a rig, whoever has ever observed them.

    Args:
        town: the town.
        groups: those of the rig that are on our record.
        rig: its name.
        force, dry_run, quiet: as for ``nuke_there``.

    Returns:
        (those that may be ended: the real one has ended them, or never knew them; those that it kept; its exit code).
    """
    real = find_real_gt() if town.gastown else ""
    if not real:
        return list(groups), [], 0
    flags = [flag for flag, given in (("--force", force), ("--dry-run", dry_run)) if given]
    code = run_real_gt(real, ["polecat", "nuke", rig, "--all", *flags], quiet=quiet)
    kept = [group for group in groups if code and known_to_gas_town(town, group.id)]
    return [group for group in groups if group not in kept], kept, code


def done_there(town: Town, group: GroupId, args: Sequence[str]) -> int | None:
    """Let the real ``gt done`` submit the work.

    Returns:
        Its exit code; None when this polecat is none of Gas Town's, or no real ``gt`` is here.
    """
    if not known_to_gas_town(town, group):
        return None
    real = find_real_gt()
    return run_real_gt(real, ["done", *args]) if real else None


# Running the real `gt` as a child, where its outcome decides what we do next.


def run_real_gt(real: str, args: Sequence[str], *, quiet: bool = False) -> int:
    """Run the real ``gt`` on our own streams, and wait for its end.

    A signal that interrupts or ends us is meant for the child: signals are passed on, and its end decides.

    Args:
        real: the program.
        args: its arguments.
        quiet: send what it prints to our stderr, because our stdout is for JSON alone.

    Returns:
        Its exit code; 128 + n when signal n ended it.

    Raises:
        OSError: it cannot be started.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    stdout = sys.stderr if quiet else None
    child = subprocess.Popen([NAME, *args], executable=real, env=given_environment(), stdout=stdout)

    def pass_on(number: int, _: FrameType | None) -> None:
        if number != signal.SIGINT:  # the terminal sends that one to the child as well
            child.send_signal(number)

    kept = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        code = child.wait()
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code
