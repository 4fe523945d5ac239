"""``gt sidecar log`` and ``gt sidecar costs``: what the sidecars decided and what it cost."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

import click

from witness.cli.completion import polecats_and_sidecars
from witness.cli.context import open_journal, print_json, since_when
from witness.cli.tables import write_lines, write_table
from witness.config.town import Town
from witness.errors import NotFoundError, UsageError
from witness.journal import Decision, Journal, MemberKind
from witness.journal.decisions import COSTS_BY
from witness.names import split_sidecar_address
from witness.state.records import rfc3339

_HEEDED = {"yes": "heeded", "no": "not heeded"}

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _whose(journal: Journal, target: str) -> tuple[str, str]:
    """(run, sidecar) that TARGET or TARGET/SIDECAR means; the sidecar is empty when all are meant."""
    try:
        return journal.groups.find(target, ended=True).id.run, ""
    except (NotFoundError, UsageError):
        if "/" not in target:
            raise
        polecat, sidecar = split_sidecar_address(target)
        group = journal.groups.find(polecat, ended=True)
        names = [each.name for each in journal.members.of(group.id.run) if each.kind is MemberKind.SIDECAR]
        if sidecar not in names and not journal.decisions.of(group.id.run, sidecar, last=1):
            raise NotFoundError(
                "sidecar", sidecar, f"{group.id.address} has {', '.join(names) or 'none'}", names
            ) from None
        return group.id.run, sidecar


@click.command()
@click.argument("target", metavar="TARGET[/SIDECAR]", shell_complete=polecats_and_sidecars)
@click.option("--outcome", type=click.Choice(["injected", "silent", "refused", "failed"]), help="Only these.")
@click.option("-n", "--last", default=100, show_default=True, help="So many at most, the newest.")
@_json
def log(target: str, outcome: str | None, last: int, as_json: bool) -> None:
    """Every decision of a polecat's sidecars: said or not, why, on what evidence, for how much."""
    with open_journal(Town.find()) as journal:
        run, sidecar = _whose(journal, target)
        decisions = journal.decisions.of(run, sidecar, last=1_000_000)
        notes = [event for event in journal.history(run, last=100_000) if event.member and event.data.get("reason")]
    decisions = [each for each in decisions if outcome in (None, each.outcome)][-last:]
    if as_json:
        print_json([_row(each) for each in decisions])
        return
    for note in notes:
        if sidecar in ("", note.member):
            click.echo(f"{_clock(note.time)} {note.member}: {note.data['reason']}", err=True)
    _table(decisions)


def _row(decision: Decision) -> dict[str, Any]:
    return {
        "time": rfc3339(decision.time),
        "sidecar": decision.sidecar,
        "outcome": decision.outcome,
        "reason": decision.reason,
        "message": decision.message,
        "evidence": decision.evidence,
        "usage": asdict(decision.usage) if decision.usage else None,
        "confidence": decision.confidence,
        "stage": decision.stage,
        "event": decision.event,
        "id": decision.id,
        "rule": decision.rule or None,
        "gate": decision.gate or None,
        "age": decision.age,
        "source": decision.source or None,
        "heeded": decision.heeded or None,
        "about": decision.about or None,
        "seen": decision.seen or None,
        "line": decision.line or None,
    }


def _clock(wall: float) -> str:
    return datetime.fromtimestamp(wall).astimezone().strftime("%H:%M:%S")


def _table(decisions: list[Decision]) -> None:
    """Two lines a decision, whole: what was decided, and below it what was said and why."""
    lines = []
    for each in decisions:
        usage = each.usage
        cost = (
            f"${usage.dollars:.5f}" if usage and usage.dollars else (f"{usage.seconds * 1000:.1f} ms" if usage else "")
        )
        states = ", ".join(filter(None, (each.stage, _HEEDED.get(each.heeded, ""))))
        outcome = f"{each.outcome} ({states})" if states else each.outcome
        lines.append("  ".join(filter(None, (_clock(each.time), each.sidecar, outcome, cost))))
        lines += [
            f"  {name}: {' '.join(text.split())}"
            for name, text in (("said", each.message), ("why", each.reason), ("evidence", each.evidence))
            if text
        ]
    write_lines(lines)


@click.command()
@click.argument("target", required=False, metavar="[TARGET[/SIDECAR]]", shell_complete=polecats_and_sidecars)
@click.option("--by", type=click.Choice(list(COSTS_BY)), default="sidecar", show_default=True)
@click.option("--since", default="", metavar="DURATION", help="Only what is younger, as 24h or 7d.")
@_json
def costs(target: str | None, by: str, since: str, as_json: bool) -> None:
    """What the sidecars cost, and what was heeded: by sidecar, rule, run or day."""
    begin = since_when(since)
    with open_journal(Town.find()) as journal:
        run, sidecar = _whose(journal, target) if target else ("", "")
        rows = journal.decisions.costs(by, run, sidecar, begin)
    if as_json:
        print_json(
            [{by: row.key, **{key: value for key, value in asdict(row).items() if key != "key"}} for row in rows]
        )
        return
    heads = (
        by, "decisions", "said", "unsaid", "heeded", "unheeded", "held out", "calls", "input", "cached", "output",
        "dollars",
    )  # fmt: skip
    table = []
    for row in rows:
        inputs = row.input_tokens + row.cache_written_tokens
        numbers = (
            row.decisions, row.injected, row.unsaid, row.heeded, row.unheeded, row.held_out, row.calls, inputs,
            row.cached_tokens, row.output_tokens,
        )  # fmt: skip
        table.append([row.key, *map(str, numbers), f"{row.dollars:.5f}"])
    keys = ("decisions", "injected", "unsaid", "heeded", "unheeded", "held_out", "calls")
    sums = (str(sum(getattr(row, key) for row in rows)) for key in keys)
    table.append(["all", *sums, "", "", "", f"{sum(row.dollars for row in rows):.5f}"])
    write_table(heads, table)
