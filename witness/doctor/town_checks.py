"""The town: how it was found, its rigs, settings, molecules, emergency stops, and its journal."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from witness.config.town import Town
from witness.declare.document import ENDINGS, FOLDER
from witness.declare.molecule import Molecule
from witness.doctor.finding import Finding, fault, note, ok, warning
from witness.errors import DeclarationError, JournalCorruptError, JournalError, NotFoundError
from witness.journal import Journal
from witness.journal.decisions import JUDGED_ENOUGH
from witness.launch import town_witness
from witness.launch.environment import tmux_around
from witness.supervise.rebuild import rebuild
from witness.trust.settings import trusted_settings, withheld_settings


def check_place(town: Town | None, start: Path, real_gt: Path | None, environ: Mapping[str, str]) -> Iterator[Finding]:
    """The town, why it is this one, and the real ``gt`` beside us."""
    if town is None:
        yield fault("town", f"no town at or above {start}, nor in GT_TOWN_ROOT or GT_ROOT", "gt init")
    else:
        kind = "Gas Town" if town.gastown else "standalone town"
        yield ok("town", f"{kind} {town.root}, found by {town.why or 'its path'}")
        rigs = ", ".join(f"{rig} ({town.prefix(rig)}-…)" for rig in town.rigs)
        yield ok("town", f"rigs: {rigs or 'none declared'}; tmux socket {town.socket}")
        given = environ.get("GT_TMUX_SOCKET", "")
        if given not in ("", "default", "auto"):
            yield note("town", f"the socket's name is taken from GT_TMUX_SOCKET={given}")
        if town.gastown and not (town.root / "mayor" / "rigs.json").is_file():
            yield warning("town", "mayor/rigs.json is missing", "restore it, as from the copy at the town's root")
    first = shutil.which("gt", path=environ.get("PATH"))
    if real_gt is not None:
        whose = "is the first gt on PATH" if first and Path(first).samefile(real_gt) else "gets what is not ours"
        yield ok("gt", f"the real gt is {real_gt} and {whose}")
    elif town is not None and town.gastown:
        yield warning("gt", "no real gt on PATH: its commands cannot be handed over", "put Gas Town's gt on PATH")
    else:
        yield note("gt", "no other gt on PATH: only our own commands work")
    if town is not None and town.gastown and shutil.which("bd", path=environ.get("PATH")) is None:
        message = "no bd on PATH: which sidecars the work of a Gas Town polecat asks for is not known"
        yield warning("gt", message, "put bd on the PATH that the Witness is started with")


def check_settings(town: Town, environ: Mapping[str, str]) -> Iterator[Finding]:
    """``settings/witness.yaml`` of the town and of each rig."""
    for rig in ("", *town.rigs):
        try:
            settings = trusted_settings(town.root, rig)
        except DeclarationError as error:
            yield from (fault("settings", str(problem), "correct the line") for problem in error.problems)
            continue
        for line in withheld_settings(town.root, rig):
            yield warning("settings", line, "gt sidecar trust, or leave it out")
        if rig and settings.sidecars:
            yield ok("settings", f"rig {rig}: every polecat gets {settings.sidecars}")


def check_molecules(town: Town, environ: Mapping[str, str]) -> Iterator[Finding]:
    """The town's own formulas, as far as they declare sidecars."""
    for path in sorted((town.root / FOLDER).glob("*")):
        if not path.name.endswith(ENDINGS):
            continue
        try:
            molecule = Molecule.load(path, town)
        except DeclarationError as error:
            problems = [problem for problem in error.problems if "sidecars" in problem.key]
            yield from (fault("molecules", str(problem), "correct the line") for problem in problems)
        except NotFoundError:
            continue
        else:
            if "sidecars" in molecule.declared:
                yield ok("molecules", f"{molecule.name} declares sidecars")


def check_emergency_stop(town: Town, environ: Mapping[str, str]) -> Iterator[Finding]:
    """ESTOP files."""
    for rig in ("", *town.rigs):
        path = town.root / (f"ESTOP.{rig}" if rig else "ESTOP")
        if path.exists():
            yield note("stop", f"an emergency stop stands: {path}; no sidecar speaks", "gt thaw, when it is over")


# The journal's file.

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
    was_running = town_witness.stop_witness(town)
    with town_witness.town_lock(town):
        kept = _move(town.journal_path)
        adopted = rebuild(town)
    if was_running or adopted:
        town_witness.start_witness(town, tmux_around())
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
