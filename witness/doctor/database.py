"""The journal's file."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from witness.config.town import Town
from witness.doctor.finding import Finding, fault, ok, warning
from witness.errors import JournalCorruptError, JournalError
from witness.ipc import client
from witness.journal import Journal
from witness.journal.decisions import JUDGED_ENOUGH
from witness.launch.outer_tmux import tmux_around
from witness.supervise.rebuild import rebuild

# A rule is mostly not heeded beyond this share.
_MOSTLY = 0.6


def check_database(town: Town, environ: Mapping[str, str]) -> Iterator[Finding]:
    """It opens, and SQLite finds nothing wrong in it."""
    if not town.journal_path.exists():
        yield ok("database", "no journal yet: nothing has run here")
        return
    try:
        with Journal(town.journal_path) as journal:
            answer = str(journal.run("PRAGMA quick_check(1)").fetchone()[0])
            count = journal.run("SELECT count(*) FROM groups").fetchone()[0]
    except JournalCorruptError as error:
        answer, count = str(error), 0
    except JournalError as error:
        yield fault("database", str(error), "make room, or make it writable, then try again")
        return
    if answer == "ok":
        yield ok("database", f"{town.journal_path} is sound, {count} runs on record")
        return
    yield fault(
        "database",
        f"{town.journal_path} is damaged: {answer}",
        "gt doctor --fix sets it aside, and takes the polecats that live into a new one",
        lambda: set_aside(town),
    )


def check_heeding(town: Town, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Rules whose remarks are mostly not heeded: they cost attention and change nothing."""
    if not town.journal_path.exists():
        return
    with Journal(town.journal_path) as journal:
        found = journal.decisions.heeding()
    for each in found:
        if each.judged >= JUDGED_ENOUGH and each.unheeded > _MOSTLY:
            yield warning(
                "heeded",
                f"rule {each.rule} of sidecar {each.sidecar}: {each.no} of {each.judged} remarks were not heeded",
                f"narrow it, or let such rules fall silent by 'unheeded_limit: {_MOSTLY}' in settings/witness.yaml",
            )


def set_aside(town: Town) -> str:
    """Move a damaged journal away, keep it, and record the living groups in a new one.

    Raises:
        TownLockedError: a Witness or another patrol is at work and could not be stopped.
    """
    was_running = client.stop_witness(town)
    with client.town_lock(town):
        kept = _move(town.journal_path)
        adopted = rebuild(town)
    if was_running or adopted:
        client.start_witness(town, tmux_around())
    found = f", {len(adopted)} living polecats recorded anew: {', '.join(adopted)}" if adopted else ""
    return f"set aside as {kept}{found}"


def _move(path: Path) -> Path:
    kept = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
    path.rename(kept)
    for ending in ("-wal", "-shm"):  # they belong to that very file, and would spoil a new one
        beside = path.with_name(path.name + ending)
        if beside.exists():
            beside.rename(kept.with_name(kept.name + ending))
    return kept
