"""The whole examination: every check in turn, and none that keeps the others from being made."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from witness.config.town import Town
from witness.doctor import client_checks, leftover_checks, prerequisites, runtime, town_checks
from witness.doctor.finding import Finding, Level, fault, note
from witness.errors import WitnessError


@dataclass(frozen=True, slots=True)
class Examination:
    """Where the doctor looks.

    Args:
        town: the town; None when none was found.
        start: where it was looked for.
        environ: the environment that counts.
        real_gt: Gas Town's ``gt`` on PATH, None when there is none.
        other_gt: a ``gt`` on PATH that is neither Gas Town's nor ours; None when there is none.
    """

    town: Town | None
    start: Path
    environ: Mapping[str, str]
    real_gt: Path | None = None
    other_gt: Path | None = None


Check = Callable[[Town, Mapping[str, str]], Iterable[Finding]]

# In the order in which one thing needs the other.
_CHECKS: tuple[tuple[str, Check], ...] = (
    ("settings", town_checks.check_settings),
    ("molecules", town_checks.check_molecules),
    ("hooks", prerequisites.check_hooks),
    ("channel", prerequisites.check_channels),
    ("sling", client_checks.check_sling),
    ("permissions", runtime.check_permissions),
    ("disk", runtime.check_disk),
    ("database", town_checks.check_database),
    ("heeded", town_checks.check_heeding),
    ("witness", leftover_checks.check_witness),
    ("leftovers", leftover_checks.check_processes),
    ("cgroups", leftover_checks.check_cgroups),
    ("runs", leftover_checks.check_run_folders),
    ("sockets", runtime.check_sockets),
    ("stop", town_checks.check_emergency_stop),
)


def examine(examination: Examination) -> list[Finding]:
    """Make every check; one that fails itself is a finding too."""
    findings = [*prerequisites.check_python(), *prerequisites.check_tmux_program()]
    findings += prerequisites.check_agent(examination.environ)
    findings += client_checks.check_installed()
    findings += client_checks.check_client(examination.start, examination.environ)
    findings += town_checks.check_place(examination.town, examination.start, examination.real_gt, examination.environ)
    if examination.other_gt:
        findings.append(
            note(
                "gt",
                f"{examination.other_gt} is Graphite's gt: it gets what is no command of ours",
                "where it comes first on PATH, call this program by its other name: gt-witness",
            )
        )
    town = examination.town
    if town is None:
        return findings
    findings += prerequisites.check_key(town, examination.environ)
    for name, check in _CHECKS:
        findings += _guarded(name, check, town, examination.environ)
    return findings


def _guarded(name: str, check: Check, town: Town, environ: Mapping[str, str]) -> Iterator[Finding]:
    try:
        yield from check(town, environ)
    except (WitnessError, OSError) as error:
        yield fault(name, f"could not be checked: {error}", "mend what the line names, then run 'gt doctor' again")


def mend(findings: Iterable[Finding]) -> list[tuple[Finding, str]]:
    """Do every safe fix.

    Returns:
        Each finding that had one, with what was done, or why it could not be.
    """
    done = []
    for finding in findings:
        if finding.mend is None or finding.level is Level.OK:
            continue
        try:
            done.append((finding, finding.mend()))
        except (WitnessError, OSError) as error:
            done.append((finding, f"could not be mended: {error}"))
    return done


def find_start() -> Path:
    """The working directory, or the root when it was deleted under us."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.sep)
