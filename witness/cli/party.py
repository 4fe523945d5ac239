"""``gt party``: several agents with their memories around one topic."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from witness.cli.context import print_json
from witness.cli.memory_options import json_option, open_store, project_option, tell_costs
from witness.errors import UsageError, WitnessError
from witness.files import read_project

if TYPE_CHECKING:
    from sidecars.memory.sessions import Saved
    from sidecars.memory.store import MemoryStore
    from sidecars.party.party import Party
    from sidecars.party.run import Speaker
    from sidecars.party.turn_mailbox import Table

_MODES = ("discussion", "debate", "consensus")

_F = TypeVar("_F", bound=Callable[..., Any])


def _seat(command: _F) -> _F:
    for option in (
        project_option,
        click.option("--as", "agent", envvar="GT_PARTY_AGENT", required=True, help="Whose turn; set in a polecat."),
        click.option("--party", "given", envvar="GT_PARTY", default="", help="Which party; set in a polecat."),
    ):
        command = option(command)
    return command


@click.group()
def party() -> None:
    """Several agents with their memories around one topic."""


@party.command()
@click.option("--agents", required=True, help="Comma separated; in a debate: proponent, opponent, arbitrator.")
@click.option("--topic", required=True)
@click.option("--mode", type=click.Choice(_MODES), default="discussion", show_default=True)
@project_option
@json_option
def start(*, agents: str, topic: str, mode: str, project: Path | None, as_json: bool) -> None:
    """Load every agent's memory and print their briefings."""
    from sidecars.party.party import start_party

    begun, briefings = start_party(open_store(project), _names(agents), topic, mode)
    if as_json:
        print_json({"party": begun.id, "topic": begun.topic, "mode": begun.mode, "briefings": briefings})
        return
    for agent, text in briefings.items():
        click.echo(f"=== {agent} ===\n{text}\n")
    click.echo(f"{begun.id}: end it with 'gt party end {begun.id} --record FILE'", err=True)


@party.command()
@click.argument("given", metavar="[PARTY]", required=False, default="")
@click.option("--record", type=click.Path(dir_okay=False, exists=True, path_type=Path), required=True)
@project_option
@json_option
def end(given: str, *, record: Path, project: Path | None, as_json: bool) -> None:
    """Take the RECORD of a party (docs/memory.md) and save it for each of its agents."""
    from sidecars.party.party import end_party, find_party
    from sidecars.party.reading import read_record

    store = open_store(project)
    found = find_party(store.root, given)
    ended, saved = end_party(store, found, read_record(read_project(record), str(record)))
    _print_end(ended, saved, as_json=as_json)


@party.command()
@click.option("--agents", required=True, help="Comma separated; in a debate: proponent, opponent, arbitrator.")
@click.option("--topic", required=True)
@click.option("--mode", type=click.Choice(_MODES), default="discussion", show_default=True)
@click.option("--rounds", type=click.IntRange(1, 3), default=3, show_default=True)
@click.option("--polecats", is_flag=True, help="Each agent is a polecat in tmux instead of a model's turns.")
@click.option("--agent", "command", default="", metavar="CMD", help="With --polecats: their command (default: claude).")
@click.option("--turn-limit", default="5m", show_default=True, help="With --polecats: how long a turn may take.")
@project_option
@json_option
def run(
    *,
    agents: str,
    topic: str,
    mode: str,
    rounds: int,
    polecats: bool,
    command: str,
    turn_limit: str,
    project: Path | None,
    as_json: bool,
) -> None:
    """Hold a party for real and save it: by a model behind an endpoint, or with the agents as polecats."""
    if command and not polecats:
        raise UsageError("--agent is the command of polecats: say --polecats with it")
    store = open_store(project)
    wanted = _Wanted(_names(agents), topic, mode, rounds, as_json)
    if polecats:
        _run_with_polecats(store, wanted, command, _seconds("--turn-limit", turn_limit))
    else:
        _run_with_model(store, wanted)


class _Wanted(NamedTuple):
    agents: tuple[str, ...]
    topic: str
    mode: str
    rounds: int
    as_json: bool


def _run_with_model(store: MemoryStore, wanted: _Wanted) -> None:
    from sidecars.memory.model import model_for
    from sidecars.party.party import start_party
    from sidecars.party.run import ModelSpeaker

    model = model_for(Path.cwd())
    try:
        begun, briefings = start_party(store, wanted.agents, wanted.topic, wanted.mode)
        _hold(store, begun, briefings, ModelSpeaker(model), wanted)
    finally:
        tell_costs(model.usage)
        model.close()


def _run_with_polecats(store: MemoryStore, wanted: _Wanted, command: str, limit: float) -> None:
    from sidecars.party.party import start_party
    from sidecars.party.turn_mailbox import Table, TableSpeaker
    from witness.api import Witness
    from witness.cli.party_polecats import Guests
    from witness.clock import SystemClock
    from witness.config.town import Town

    clock, place = SystemClock(), Path.cwd()
    with Witness(Town.find(place)) as witness:
        begun, briefings = start_party(store, wanted.agents, wanted.topic, wanted.mode)
        table = Table(store.root, begun.id)
        guests = Guests(witness, begun, briefings, table, root=store.root, workdir=place, command=command, clock=clock)
        with guests:
            _hold(store, begun, briefings, TableSpeaker(table, clock, guests.alive, limit), wanted)


def _hold(store: MemoryStore, begun: Party, briefings: Mapping[str, str], speaker: Speaker, wanted: _Wanted) -> None:
    from sidecars.party.party import end_party, record_path, write_record
    from sidecars.party.run import PartyRun

    held = PartyRun(begun, briefings, speaker, lambda record: write_record(store.root, begun, record))
    try:
        record = held.hold(wanted.rounds)
    except WitnessError as error:
        if not held.record.contributions:
            raise
        end_it = ["gt", "party", "end", begun.id, "--record", str(record_path(store.root, begun.id))]
        raise WitnessError(f"{error}; to save what was said until then: {shlex.join(end_it)}") from error
    for said in record.contributions if not wanted.as_json else ():
        click.echo(f"[{said.round} {said.type}] {said.agent}: {said.content}")
    ended, saved = end_party(store, begun, record)
    _print_end(ended, saved, as_json=wanted.as_json)


# -- the agents' side -------------------------------------------------------------------------------------------------


@party.command()
@click.option("--wait", default="60s", show_default=True, help="How long to wait for it.")
@_seat
def turn(*, wait: str, given: str, agent: str, project: Path | None) -> None:
    """Inside a party's polecat: wait for your turn and print what is asked."""
    _print_turn(_table(project, given), agent, wait)


@party.command()
@click.option("--wait", default="60s", show_default=True, help="How long to wait for the next turn.")
@_seat
def answer(*, wait: str, given: str, agent: str, project: Path | None) -> None:
    """Inside a party's polecat: answer your turn with a JSON object on stdin, and get the next one."""
    table = _table(project, given)
    try:
        value = json.loads(sys.stdin.read())
    except ValueError as error:
        raise UsageError(f"the answer is not JSON: {error}") from error
    table.answer(agent, value)
    _print_turn(table, agent, wait)


def _table(project: Path | None, given: str) -> Table:
    from sidecars.party.party import find_party
    from sidecars.party.turn_mailbox import Table

    root = open_store(project).root
    return Table(root, find_party(root, given).id)


def _print_turn(table: Table, agent: str, wait: str) -> None:
    from witness.clock import SystemClock

    ask = table.wait_for_turn(agent, SystemClock(), _seconds("--wait", wait))
    if ask is not None:
        click.echo(ask.text())
    elif table.is_over:
        click.echo("The party is over. Run: gt done")
    else:
        click.echo("Not your turn yet. Run again: gt party turn")


def _seconds(flag: str, text: str) -> float:
    from witness.config.settings import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from error


def _names(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(","))
    if not all(names):
        raise UsageError("--agents has an empty name: write it like a,b,c")
    return names


def _print_end(ended: Party, saved: dict[str, Saved], *, as_json: bool) -> None:
    for each in saved.values():
        for line in each.refused:
            click.echo(f"left out: {line}", err=True)
    if as_json:
        agents = {
            agent: {"sessions_participated": each.sidecar.sessions_participated, "memories": len(each.sidecar.memories)}
            for agent, each in saved.items()
        }
        print_json({"party": ended.id, "decisions": list(ended.decisions), "agents": agents})
        return
    for number in ended.decisions:
        click.echo(f"{number} recorded")
    for agent, each in saved.items():
        click.echo(f"{agent}: {each.sidecar.sessions_participated} sessions, {len(each.sidecar.memories)} memories")
