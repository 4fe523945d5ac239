"""``gt demo``: the main job, shown. What ``make run`` does."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from witness.api import Witness
from witness.cli.tables import group_rows, tree
from witness.config.resources import molecules_dir
from witness.config.town import Town
from witness.errors import WitnessError
from witness.journal import Group, GroupState, MemberKind, MemberState
from witness.launch.spawn_request import SpawnRequest
from witness.process.exits import wait_gone
from witness.process.table import GroupMembership, Markers, is_alive, read_table, send
from witness.state.reader import StateReader
from witness.tmux import Tmux

if TYPE_CHECKING:
    from rich.console import Console

_SECONDS = 180.0
_REFRESH_SECONDS = 0.25
_PANE_LINES = 12
_SAMPLE_ENVIRONMENT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


@click.command()
@click.option("--agent", default="", metavar="CMD", help="Any command as the agent (default: a scripted one).")
@click.option("--keep", is_flag=True, help="Keep the scratch town.")
def demo(agent: str, keep: bool) -> None:
    """Show the main job in a scratch town: spawn, observe, inject, respawn, done, nothing left."""
    with _scratch_town(keep) as town, Witness(town) as witness:
        try:
            _show(witness, _agent(agent))
        finally:
            groups = [group for group, _ in witness.polecats()]
            if groups:
                witness.end(groups)
            witness.stop()


def _agent(command: str) -> str:
    """The agent's command. Without one the scripted agent plays, whatever is installed and whatever keys are set."""
    if not command:
        click.echo(
            "the agent is scripted; the pane, the hooks and the sidecars are real (--agent claude: the real one)"
        )
        return shlex.join([sys.executable, str(Path(__file__).with_name("scripted_agent.py"))])
    if command == "claude":
        click.echo("the agent is the real Claude Code: it uses your login or key, and a few cents of it")
        click.echo("its question about the demo's own folder is answered beforehand")
        return "claude --permission-mode acceptEdits"
    return command


@contextmanager
def _scratch_town(keep: bool) -> Iterator[Town]:
    root = Path(tempfile.mkdtemp(prefix="gt-demo-"))
    try:
        town = Town.init(root)
        shutil.copytree(molecules_dir() / "demo-repo", root / "repo")
        if shutil.which("git"):
            environment = {**os.environ, **_SAMPLE_ENVIRONMENT}
            subprocess.run(["git", "init", "-q", str(root / "repo")], env=environment, check=False)
        yield town
    finally:
        if keep:
            click.echo(f"kept: {root}")
        else:
            shutil.rmtree(root, ignore_errors=True)


def _show(witness: Witness, agent: str) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    molecule = molecules_dir() / "mol-demo.toml"
    console.print(f"[bold]$ gt polecat spawn toast --molecule {molecule.name}[/bold]")
    spawned = witness.spawn_request(
        SpawnRequest(
            "toast",
            workdir=witness.town.root / "repo",
            molecule=str(molecule),
            issue="docs/issue.md",
            agent=agent,
            accept_folder=True,  # the folder is the demo's own
        )
    )
    console.print(f"watch it: cd {witness.town.root} && gt attach {spawned.group.polecat}", style="dim")
    group = witness.find("toast")
    killed = _watch(witness, group, console)
    _summary(witness, group, console, killed)


def _watch(witness: Witness, group: Group, console: Console) -> str:
    """Show the tree until the group has ended; returns the sidecar that was killed on the way."""
    from rich.console import Group as Stacked
    from rich.live import Live
    from rich.panel import Panel
    from rich.text import Text

    killed = shown = pane = ""
    reader = StateReader(witness.town, witness.journal)
    with Live(console=console, refresh_per_second=8, transient=False) as live:
        for _ in range(round(_SECONDS / _REFRESH_SECONDS)):
            now = witness.journal.groups.get(group.id.run) or group
            members = witness.journal.members.of(group.id.run)
            rows = group_rows(witness, [(now, members)], reader)
            pane = _pane(witness, group) or pane
            live.update(
                Stacked(tree(rows), Panel(Text.from_ansi(pane), title="the agent's pane", height=_PANE_LINES + 2))
            )
            state = repr(
                [
                    (
                        rows[0]["state"],
                        [(each["state"], each["restarts"], each["injections"]) for each in rows[0]["sidecars"]],
                    )
                ]
            )
            if not console.is_terminal and state != shown:
                console.print(tree(rows))
            shown = state
            if now.state is GroupState.NUKED:
                return killed
            if not killed and any(each["injections"] for each in rows[0]["sidecars"]):
                killed = _kill_one(witness, group, live.console)
            agent = next(member for member in members if member.kind is MemberKind.AGENT)
            # The pause between two frames ends early when the agent does.
            wait_gone({agent.process} if agent.process else (), _REFRESH_SECONDS)
    raise WitnessError(f"the agent did not come to an end within {_SECONDS:.0f} s")


def _pane(witness: Witness, group: Group) -> str:
    try:
        return Tmux(*witness.town.tmux_place).capture(group.pane, _PANE_LINES)
    except WitnessError:
        return ""  # it has ended, or is just ending


def _kill_one(witness: Witness, group: Group, console: Console) -> str:
    for member in reversed(witness.journal.members.of(group.id.run)):
        if member.kind is MemberKind.SIDECAR and member.state is MemberState.RUNNING and member.process:
            console.print(f"[bold]$ kill -9 {member.process.pid}[/bold]  (the sidecar {member.name})")
            send(member.process, signal.SIGKILL)
            return member.name
    return ""


def _summary(witness: Witness, group: Group, console: Console, killed: str) -> None:
    run = group.id.run
    console.print("\n[bold]what was injected[/bold]")
    for decision in witness.journal.decisions.injected(run):
        console.print(f"  {decision.message}  ({decision.stage or 'enqueued'})", markup=False)
    members = witness.journal.members.of(run)
    restarted = [f"{each.name} x{each.restarts}" for each in members if each.restarts]
    console.print(f"[bold]respawned[/bold]  {', '.join(restarted) or 'nobody'}")
    end = next((event for event in reversed(witness.journal.history(run)) if event.kind == "nuked"), None)
    if end is None:
        raise WitnessError("the group's end is not in the journal")
    console.print(
        f"[bold]ended[/bold]      {end.data['ended']} processes in {end.data['seconds']} s ({end.data['reason']})"
    )
    table = read_table()
    recorded = {member.process for member in members if member.process} | witness.journal.groups.seen(run)
    alive = {each for each in recorded if is_alive(each, table)}
    alive |= GroupMembership(table, Markers().marks(table)).group(group.id.marker, (), pane=group.run_state.pane)
    session = Tmux(*witness.town.tmux_place).has_session(group.session)
    if alive or session:
        raise WitnessError(f"still alive: {sorted(each.pid for each in alive)}, session stands: {session}")
    console.print("[bold]survivors[/bold]  none: no recorded process, no marked process, no tmux session")
    if killed and not any(each.name == killed and each.restarts for each in members):
        raise WitnessError(f"the sidecar {killed} was killed and did not come back")
