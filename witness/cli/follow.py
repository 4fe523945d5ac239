"""``gt follow``: sidecars for a session that a person has started."""

from __future__ import annotations

import click

from witness.api import Witness
from witness.cli.completion import type_list
from witness.cli.context import own_group, print_json, tell_withheld
from witness.config.town import Town
from witness.errors import UsageError
from witness.trust.settings import trusted_settings


@click.command(
    epilog="Examples, at the prompt of Claude Code:\n\n"
    "  ! gt-witness follow --sidecars conventions,tools\n\n"
    "  ! gt-witness follow --stop"
)
@click.option("--sidecars", default="", shell_complete=type_list, metavar="SPEC", help="type[:argument] by comma.")
@click.option("--name", default="", help="What it is called in lists (default: session-PID).")
@click.option("--pid", type=click.IntRange(2), default=None, help="The client's process (default: the one around us).")
@click.option("--stop", is_flag=True, help="End its sidecars; the session goes on.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--at-start", is_flag=True, hidden=True, help="Asked by the plugin as a session begins.")
def follow(sidecars: str, name: str, pid: int | None, stop: bool, as_json: bool, at_start: bool) -> None:
    """Have sidecars observe a session of Claude Code that you have started yourself, in any terminal.

    It needs our plugin in the client (gt hooks plugin). The session is shown in lists and can be nudged; it is never
    ended by us: gt polecat nuke and gt done end its sidecars only.
    """
    from sidecars.observer.factory import prospects
    from witness.api.following import follow as begin
    from witness.api.following import session_around, unfollow

    if group := own_group():
        raise UsageError(f"this is polecat {group.address}: it has been given its sidecars at its spawn")
    session = session_around(pid or 0)
    town = Town.find(session.workdir)
    if at_start and not trusted_settings(town.root, town.rig_of(session.workdir)).follow:
        return
    with Witness(town) as witness:
        if stop:
            group = unfollow(witness, session).id
            if as_json:
                print_json({"address": group.address, "run": group.run})
            else:
                click.echo(f"{group.address}: its sidecars have ended; the session goes on")
            return
        result = begin(witness, session, sidecars, name, prospects)
        members = witness.journal.members.of(result.group.id.run)
    tell_withheld(result.withheld)
    specs = [each for each in members if each.name != "agent"]
    if as_json:
        print_json(
            {
                "address": result.group.id.address,
                "run": result.group.id.run,
                "pid": session.process.pid,
                "channel": result.group.run_state.channel,
                "sidecars": [{"name": each.name, "type": each.type} for each in specs],
            }
        )
        return
    click.echo(f"{result.group.id.address} is followed (Claude Code, pid {session.process.pid})")
    for each in specs:
        click.echo(f"  {each.name}" + (f" holds it to {text}" if (text := result.found.get(each.name)) else ""))
        if reason := result.mute.get(each.name):
            click.echo(f"    it can never speak: {reason}")
    click.echo("  its end, or gt-witness follow --stop, ends the sidecars")
