"""``gt polecat``: spawn, list, status, nuke, restart, pause, resume, reset."""

from __future__ import annotations

import sys
from typing import Any

import click

from witness.api import NukeResult, Witness
from witness.cli.completion import polecats
from witness.cli.context import ask_for_force, print_json, since_when
from witness.cli.tables import group_rows, show_groups, write_lines
from witness.cli.worktree import ask_to_discard
from witness.config.town import Town
from witness.errors import UsageError, WitnessError
from witness.journal import Group, GroupState, Worktree, WorktreeState
from witness.names import split_address
from witness.state.records import rfc3339


class _Polecat(click.Group):
    """``spawn`` reads declarations, prompts and memories; whoever lists does not pay for them."""

    _SPAWN = "spawn"

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), self._SPAWN])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == self._SPAWN:
            from witness.cli.spawn import spawn

            return spawn
        return super().get_command(ctx, cmd_name)


@click.group(cls=_Polecat)
def polecat() -> None:
    """Spawn, list and nuke polecats with their sidecars."""


@polecat.command(name="list", epilog="Examples:\n\n  gt polecat list\n\n  gt polecat list --all --since 24h")
@click.option("--rig", default="", help="Only this rig.")
@click.option("--all", "everybody", is_flag=True, help="Those that have ended, too.")
@click.option("--since", default="", metavar="DURATION", help="With --all: only what ended later than so long ago.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def list_polecats(rig: str, everybody: bool, since: str, as_json: bool) -> None:
    """The polecats that live: what each does, what it waits for, and its sidecars."""
    if since and not everybody:
        raise UsageError("--since goes with --all: what lives is always shown")
    begin = since_when(since)
    with Witness(Town.find()) as witness:
        groups = witness.polecats(rig)
        if everybody:
            ended = witness.journal.groups.ended(begin, rig)
            groups += [(group, witness.journal.members.of(group.id.run)) for group in ended]
        rows = group_rows(witness, groups)
    if as_json:
        print_json(rows)
    else:
        show_groups(rows)


@polecat.command()
@click.argument("name", shell_complete=polecats)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(name: str, as_json: bool) -> None:
    """One polecat, living or ended: what it does, its sidecars, and what happened last."""
    from witness.state.history import event_line

    with Witness(Town.find()) as witness:
        group = witness.find(name, ended=True)
        row = group_rows(witness, [(group, witness.journal.members.of(group.id.run))])[0]
        history = witness.journal.history(group.id.run, 20)
    if as_json:
        print_json(
            {
                **row,
                "history": [
                    {"time": e.time, "at": rfc3339(e.time), "kind": e.kind, "member": e.member, **e.data}
                    for e in history
                ],
            }
        )
        return
    show_groups([row])
    write_lines(f"  {event_line(event)}" for event in history)


@polecat.command(epilog="Examples:\n\n  gt polecat nuke toast\n\n  gt polecat nuke --all --dry-run")
@click.argument("names", nargs=-1, shell_complete=polecats)
@click.option("--all", "everybody", is_flag=True, help="Every polecat of the town, or of --rig.")
@click.option("--rig", default="", help="With --all: only this rig.")
@click.option("--dry-run", is_flag=True, help="Only say who would be ended.")
@click.option("--force", "-f", is_flag=True, help="From another polecat; in a Gas Town: skip its checks.")
@click.option("--discard", is_flag=True, help="Remove their worktrees too, with all that is in them; asks first.")
@click.option("--yes", is_flag=True, help="With --discard: do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def nuke(
    names: tuple[str, ...],
    everybody: bool,
    rig: str,
    dry_run: bool,
    force: bool,
    discard: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """End polecats with all their sidecars and descendants, and prove that nothing survived.

    A worktree that holds work is kept, and named; --discard removes it, also that of a polecat which has ended.

    In a Gas Town the real gt polecat nuke goes first, for each polecat that has a worktree there. What its safety
    checks keep is kept whole.
    """
    from witness.cli.gas_town import nuke_rig_there, nuke_there

    town, code = Town.find(), 0
    if whole_rig := everybody and len(names) == 1 and names[0] in town.rigs:
        rig, names = names[0], ()  # as Gas Town writes it: gt polecat nuke RIG --all
    if bool(names) == everybody:
        raise UsageError("name the polecats to end, or say --all")
    with Witness(town) as witness:
        groups = [_meant(witness, name, discard=discard) for name in names]
        groups = groups or [group for group, _ in witness.polecats(rig)]
        ask_for_force(witness.journal, groups, force=force or dry_run)
        if discard and not dry_run:
            ask_to_discard(witness, _standing(witness, groups), yes=yes)
        if whole_rig:
            free, refused, code = nuke_rig_there(town, groups, rig, force=force, dry_run=dry_run, quiet=as_json)
        else:
            free, refused = nuke_there(town, groups, force=force, dry_run=dry_run, quiet=as_json)
        nuked = witness.end(free, dry_run=dry_run, discard=discard)
    rows = [each.as_json() for each in nuked]
    if as_json:
        print_json(rows)
    theirs = {group.id.run for group in free if group.run_state.by_person}
    for each, row in zip(nuked, rows, strict=True):
        if not as_json:
            goes_on = "; the session is a person's own, and goes on" if each.group.id.run in theirs else ""
            click.echo(_sentence(each, row, dry_run) + goes_on)
            if each.worktree:
                click.echo(f"  {each.worktree}")
        for survivor in row["survivors"]:
            click.echo(f"gt: {row['polecat']}: still alive: {survivor['pid']} {survivor['name']}", err=True)
    for group in refused:
        click.echo(f"gt: {group.id.address}: the real gt refused to nuke it; nothing of it was ended", err=True)
    if refused or code or any(row["survivors"] for row in rows):
        sys.exit(code or 1)


def _meant(witness: Witness, name: str, *, discard: bool) -> Group:
    """The polecat of that name; to discard a worktree, also the ended one that has left it."""
    if not discard or witness.journal.groups.named(*reversed(split_address(name))):
        return witness.find(name)
    group = witness.journal.groups.get(witness.worktree(name).run)
    return group or witness.find(name)


def _standing(witness: Witness, groups: list[Group]) -> list[Worktree]:
    found = witness.journal.worktrees.of_runs([group.id.run for group in groups]).values()
    return [each for each in found if each.state is not WorktreeState.REMOVED]


def _sentence(nuked: NukeResult, row: dict[str, Any], dry_run: bool) -> str:
    if dry_run:
        return f"{row['polecat']}: would end {len(nuked.processes)} processes: {' '.join(map(str, nuked.processes))}"
    if nuked.group.state is GroupState.NUKED:
        return f"{row['polecat']}: it had ended already"
    if nuked.result is None:
        return f"{row['polecat']}: we run inside of it, so the Witness ends it"
    outcome = f"{len(row['survivors'])} SURVIVED" if row["survivors"] else "none survived"
    return f"{row['polecat']}: {row['ended']} processes ended in {row['seconds']:.2f} s, {outcome}"


@polecat.command(epilog="Examples:\n\n  gt polecat restart toast\n\n  gt polecat restart --all-of-last-boot")
@click.argument("name", default="", shell_complete=polecats)
@click.option("--fresh", is_flag=True, help="Begin a new conversation, with the task as its first prompt.")
@click.option("--all-of-last-boot", "everybody", is_flag=True, help="Every polecat that the machine's restart ended.")
@click.option("--no-wait", is_flag=True, help="Do not wait until the agent shows a prompt, works or asks.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each.")
def restart(name: str, fresh: bool, everybody: bool, no_wait: bool, as_json: bool) -> None:
    """Start a polecat again where it was: its folder or worktree, its task, its sidecars and what they have said.

    One that lives is ended first. The client's own conversation goes on where it has a way to (Claude Code); else, and
    with --fresh, a new one begins with the task. Variables of --env are not kept: export them, or spawn anew.
    """
    from sidecars.observer.factory import prospects
    from witness.api.restarting import of_last_boot, restart_polecat
    from witness.cli.memory_options import memory_provider
    from witness.cli.spawn import report_spawned, undone_when_told_to_end

    if bool(name) == everybody:
        raise UsageError("name the polecat to restart, or say --all-of-last-boot")
    failed: list[str] = []
    with Witness(Town.find()) as witness:
        names = [group.id.address for group in of_last_boot(witness)] if everybody else [name]
        if everybody and not names:
            click.echo("no polecat was ended by a restart of the machine", err=True)
        for each in names:
            try:
                with undone_when_told_to_end():
                    spawned = restart_polecat(
                        witness, each, fresh=fresh, memory_provider=memory_provider, check=prospects
                    )
                report_spawned(witness, spawned, no_wait=no_wait, as_json=as_json)
            except WitnessError as error:
                if not everybody:
                    raise
                failed.append(f"{each}: {error}")
    if failed:
        raise WitnessError("; ".join(failed))


@polecat.command()
@click.argument("names", nargs=-1, required=True, shell_complete=polecats)
def pause(names: tuple[str, ...]) -> None:
    """Stop a polecat's agent with all that it started, until gt polecat resume; nothing is ended.

    It counts as neither hung nor idle meanwhile, and what is said to it waits.
    """
    from witness.api.pausing import pause_polecat

    with Witness(Town.find()) as witness:
        for group in [witness.find(name) for name in names]:
            stopped = pause_polecat(witness, group)
            click.echo(f"{group.id.address}: paused, {stopped} processes stopped; gt polecat resume {group.id.polecat}")


@polecat.command()
@click.argument("names", nargs=-1, required=True, shell_complete=polecats)
def resume(names: tuple[str, ...]) -> None:
    """Let a paused polecat go on."""
    from witness.api.pausing import resume_polecat

    with Witness(Town.find()) as witness:
        for group in [witness.find(name) for name in names]:
            goes_on = resume_polecat(witness, group)
            click.echo(f"{group.id.address}: {'goes on' if goes_on else 'was not paused'}")


@polecat.command()
@click.argument("name", shell_complete=polecats)
@click.argument("sidecar", default="")
def reset(name: str, sidecar: str) -> None:
    """Try FAILED sidecars of a polecat again: one, or all."""
    with Witness(Town.find()) as witness:
        names = witness.reset(name, sidecar)
    click.echo(f"tried again: {', '.join(names)}" if names else "none of its sidecars is FAILED")


# A command that is told to end while it is at work undoes what it has begun.
