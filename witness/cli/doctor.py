"""``gt doctor``: what was found here, what is wrong, how to mend it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from witness.cli.context import print_json
from witness.cli.exec_real_gt import find_real_gt, is_graphite
from witness.config.town import Town
from witness.doctor import Examination, Finding, Level, examine
from witness.doctor.checks import find_start, mend
from witness.doctor.finding import fault
from witness.errors import DeclarationError, TownNotFoundError
from witness.files import replace_file

_MARKS = {Level.OK: "ok     ", Level.NOTE: "note   ", Level.WARNING: "warning", Level.FAULT: "FAULT  "}


@click.command
@click.option("--fix", is_flag=True, help="Do the fixes that are safe: of our own files and processes only.")
@click.option(
    "--bundle", is_flag=True, help="Write a report for people who help: no keys, tasks, messages, nor your own name."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(fix: bool, bundle: bool, as_json: bool) -> None:
    """Explain which town was found and why; check tmux, agent, key, hooks, settings, journal and leftovers.

    Exit code 1 while a fault stands. Notes and warnings do not count.
    """
    findings, examination = _examine()
    if bundle:
        _write_bundle(findings, examination)
        return
    mended = mend(findings) if fix else []
    if mended:
        findings, _ = _examine()
    if as_json:
        print_json(
            {
                "findings": [finding.as_json() for finding in findings],
                "mended": [{"check": finding.check, "done": done} for finding, done in mended],
            }
        )
    else:
        for finding, done in mended:
            click.echo(f"mended   {finding.check}: {done}")
        _print(findings)
        if (
            examination is not None
            and examination.town is not None
            and examination.town.gastown
            and examination.real_gt
        ):
            click.echo(f"Gas Town's own checks: {examination.real_gt} doctor", err=True)
    if any(finding.level is Level.FAULT for finding in findings):
        raise SystemExit(1)


def _write_bundle(findings: Sequence[Finding], examination: Examination | None) -> None:
    from sidecars.memory.secret_rules import without_secret
    from witness.doctor.report import bundle as report

    path = find_start() / "gt-witness-report.txt"
    replace_file(path, report(examination.town if examination else None, findings, without_secret))
    click.echo(f"written: {path}: read it before you send it to anybody")


def _examine() -> tuple[list[Finding], Examination | None]:
    start, town = find_start(), None
    try:
        town = Town.find(start)
    except TownNotFoundError:
        pass
    except DeclarationError as error:
        return [fault("town", str(problem), "correct the file") for problem in error.problems], None
    real, other = find_real_gt(), find_real_gt(any_other=True)
    examination = Examination(
        town,
        start,
        dict(os.environ),
        Path(real) if real else None,
        Path(other) if other and is_graphite(other) else None,
    )
    return examine(examination), examination


def _print(findings: Sequence[Finding]) -> None:
    for finding in findings:
        click.echo(f"{_MARKS[finding.level]}  {finding.check}: {finding.message}")
        if finding.fix and finding.level is not Level.OK:
            safe = " (--fix does it)" if finding.mend else ""
            click.echo(f"         → {finding.fix}{safe}")
    counts = [f"{sum(f.level is level for f in findings)} {level}" for level in Level if level is not Level.OK]
    click.echo(f"{', '.join(counts)}", err=True)
