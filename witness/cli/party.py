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
from witness.cli.tables import write_table
from witness.errors import UsageError, WitnessError
from witness.files import read_project

if TYPE_CHECKING:
    from sidecars.memory.sessions import Saved
    from sidecars.memory.store import MemoryStore
    from sidecars.party.party import Party
    from sidecars.party.record import PartyRecord
    from sidecars.party.run import Speaker
    from sidecars.party.turn_mailbox import Table
    from witness.journal.records import Usage

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


def _limits(command: _F) -> _F:
    for option in (
        click.option("--turn-limit", default="5m", show_default=True, help="With --polecats: of one turn."),
        click.option("--agent", "command", default="", metavar="CMD", help="With --polecats: what they run (claude)."),
        click.option("--polecats", is_flag=True, help="Each agent is a polecat in tmux instead of a model's turns."),
        click.option("--timeout", default="", metavar="TIME", help="How long the whole party may take (30m)."),
        click.option("--budget-usd", type=click.FloatRange(min=0, min_open=True), help="What its model may cost."),
    ):
        command = option(command)
    return command


@party.command()
@click.option("--agents", required=True, help="Comma separated; in a debate: proponent, opponent, arbitrator.")
@click.option("--topic", required=True)
@click.option("--mode", type=click.Choice(_MODES), default="discussion", show_default=True)
@click.option("--rounds", type=click.IntRange(1, 3), default=3, show_default=True)
@_limits
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
    timeout: str,
    budget_usd: float | None,
    project: Path | None,
    as_json: bool,
) -> None:
    """Hold a party for real and save it: by a model behind an endpoint, or with the agents as polecats."""
    from sidecars.party.party import start_party
    from sidecars.party.record import PartyRecord

    how = _how(polecats, command, turn_limit, timeout, budget_usd, as_json)
    store = open_store(project)

    def begin() -> _Begun:
        begun, briefings = start_party(store, _names(agents), topic, mode, rounds)
        return _Begun(begun, briefings, PartyRecord(begun.topic, begun.mode, begun.agents))

    _run(store, begin, how)


@party.command()
@click.argument("given", metavar="[PARTY]", required=False, default="")
@_limits
@project_option
@json_option
def resume(
    *,
    given: str,
    polecats: bool,
    command: str,
    turn_limit: str,
    timeout: str,
    budget_usd: float | None,
    project: Path | None,
    as_json: bool,
) -> None:
    """Go on with a party that broke off; what was said is not asked for again. The budget is for all of it."""
    from sidecars.party.party import find_party, resume_party

    how = _how(polecats, command, turn_limit, timeout, budget_usd, as_json)
    store = open_store(project)
    found = find_party(store.root, given)
    _run(store, lambda: _Begun(*resume_party(store, found)), how)


@party.command("list")
@project_option
@json_option
def list_parties(project: Path | None, as_json: bool) -> None:
    """The parties of this project: which ended, which are on, which broke off and why."""
    from sidecars.party.party import all_parties

    parties = all_parties(open_store(project).root)
    if as_json:
        print_json(
            [
                {**{name: getattr(each, name) for name in each.__slots__}, "state": _state(each), "party": each.id}
                for each in parties
            ]
        )
        return
    rows = [
        [each.id, each.mode, _state(each), ", ".join(each.agents), f"${each.dollars:.4f}", each.topic]
        for each in parties
    ]
    if rows:
        write_table(("party", "mode", "state", "agents", "cost", "topic"), rows)
    for each in parties:
        if each.failed:
            click.echo(f"{each.id} broke off: {each.failed}; 'gt party resume {each.id}' goes on", err=True)


def _state(each: Party) -> str:
    return "ended" if each.ended_at else "broken off" if each.failed else "on"


class _How(NamedTuple):
    polecats: bool
    command: str
    turn_limit: float
    timeout: float | None
    budget: float | None
    as_json: bool


class _Begun(NamedTuple):
    party: Party
    briefings: Mapping[str, str]
    record: PartyRecord


def _how(polecats: bool, command: str, turn_limit: str, timeout: str, budget: float | None, as_json: bool) -> _How:
    if command and not polecats:
        raise UsageError("--agent is the command of polecats: say --polecats with it")
    if budget is not None and polecats:
        raise UsageError("--budget-usd counts a model's turns; what polecats spend is their clients': leave it out")
    seconds = _seconds("--timeout", timeout) if timeout else None
    return _How(polecats, command, _seconds("--turn-limit", turn_limit), seconds, budget, as_json)


def _run(store: MemoryStore, begin: Callable[[], _Begun], how: _How) -> None:
    if how.polecats:
        _run_with_polecats(store, begin, how)
    else:
        _run_with_model(store, begin, how)


def _run_with_model(store: MemoryStore, begin: Callable[[], _Begun], how: _How) -> None:
    from sidecars.memory.model import model_for
    from sidecars.party.run import ModelSpeaker

    model = model_for(Path.cwd())
    try:
        begun = begin()
        before = begun.party.dollars

        def over_budget() -> str:
            spent = before + model.usage.dollars
            if how.budget is None or spent < how.budget:
                return ""
            return f"the budget of ${how.budget:g} is spent (${spent:.4f})"

        _hold(store, begun, ModelSpeaker(model), how, usage=lambda: model.usage, over_budget=over_budget)
    finally:
        tell_costs(model.usage)
        model.close()


def _run_with_polecats(store: MemoryStore, begin: Callable[[], _Begun], how: _How) -> None:
    from sidecars.party.turn_mailbox import Table, TableSpeaker
    from witness.api import Witness
    from witness.cli.party_polecats import Guests
    from witness.clock import SystemClock
    from witness.config.town import Town

    clock, place = SystemClock(), Path.cwd()
    with Witness(Town.find(place)) as witness:
        begun = begin()
        table = Table(store.root, begun.party.id)
        table.reopen()
        guests = Guests(
            witness,
            begun.party,
            begun.briefings,
            table,
            root=store.root,
            workdir=place,
            command=how.command,
            clock=clock,
        )
        with guests:
            _hold(store, begun, TableSpeaker(table, clock, guests.alive, how.turn_limit), how)


def _hold(
    store: MemoryStore,
    begun: _Begun,
    speaker: Speaker,
    how: _How,
    *,
    usage: Callable[[], Usage] | None = None,
    over_budget: Callable[[], str] = lambda: "",
) -> None:
    from sidecars.party.party import broke_off, end_party, note_costs, record_path, write_record
    from sidecars.party.run import PartyRun
    from witness.clock import SystemClock

    clock = SystemClock()
    deadline = None if how.timeout is None else clock.monotonic() + how.timeout

    def stop() -> str:
        if deadline is not None and clock.monotonic() >= deadline:
            return f"the party has taken its {how.timeout:g} s"
        return over_budget()

    party = begun.party
    held = PartyRun(
        party,
        begun.briefings,
        speaker,
        lambda record: write_record(store.root, party, record),
        record=begun.record,
        stop=stop,
    )
    try:
        record = held.hold(party.rounds)
    except (WitnessError, KeyboardInterrupt) as error:
        why = str(error) or "it was interrupted"
        if usage is not None:
            party = note_costs(store.root, party, usage(), store.now)
        broke_off(store, party, why)
        if not held.record.contributions:
            raise
        path = str(record_path(store.root, party.id))
        go_on, end_it = ("gt", "party", "resume", party.id), ("gt", "party", "end", party.id, "--record", path)
        raise WitnessError(
            f"{why}; to go on: {shlex.join(go_on)}; to save what was said until then: {shlex.join(end_it)}"
        ) from error
    if usage is not None:
        party = note_costs(store.root, party, usage(), store.now)
    for said in record.contributions if not how.as_json else ():
        click.echo(f"[{said.round} {said.type}] {said.agent}: {said.content}")
    for each in record.extra.get("turns", ()):
        if each.get("outcome") == "skipped":
            click.echo(f"skipped: {each['agent']}'s {each['type']}: {each.get('reason')}", err=True)
    ended, saved = end_party(store, party, record)
    _print_end(ended, saved, as_json=how.as_json)


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
