"""``gt party``: several agents with their memories around one topic."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from witness.cli.context import print_json
from witness.cli.memory_options import json_option, open_store, project_option
from witness.errors import UsageError, WitnessError

if TYPE_CHECKING:
    from sidecars.memory.party import Party
    from sidecars.memory.sessions import Saved

_MODES = ("discussion", "debate", "consensus")


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
    from sidecars.memory.party import start_party

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
    from sidecars.memory.party import end_party, find_party
    from sidecars.memory.party_reading import read_record

    store = open_store(project)
    found = find_party(store.root, given)
    ended, saved = end_party(store, found, read_record(record.read_bytes(), str(record)))
    _print_end(ended, saved, as_json=as_json)


@party.command()
@click.option("--agents", required=True, help="Comma separated; in a debate: proponent, opponent, arbitrator.")
@click.option("--topic", required=True)
@click.option("--mode", type=click.Choice(_MODES), default="discussion", show_default=True)
@click.option("--rounds", type=click.IntRange(1, 3), default=3, show_default=True)
@project_option
@json_option
def run(*, agents: str, topic: str, mode: str, rounds: int, project: Path | None, as_json: bool) -> None:
    """Hold a party for real, the agents' turns spoken by a model, and save it."""
    from sidecars.memory.model import model_for
    from sidecars.memory.party import end_party, record_path, start_party, write_record
    from sidecars.memory.party_run import ModelSpeaker, PartyRun

    store = open_store(project)
    model = model_for(Path.cwd())
    begun, briefings = start_party(store, _names(agents), topic, mode)
    held = PartyRun(begun, briefings, ModelSpeaker(model), lambda record: write_record(store.root, begun, record))
    try:
        record = held.hold(rounds)
    except WitnessError as error:
        path = record_path(store.root, begun.id)
        if not held.record.contributions:
            raise
        raise WitnessError(
            f"{error}; what was said until then is in {path}: 'gt party end {begun.id} --record {path}' saves it"
        ) from error
    finally:
        model.close()
    for turn in record.contributions if not as_json else ():
        click.echo(f"[{turn.round} {turn.type}] {turn.agent}: {turn.content}")
    ended, saved = end_party(store, begun, record)
    _print_end(ended, saved, as_json=as_json)


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
