"""The town: how it was found, its rigs, its settings, its molecules, its emergency stops."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from witness.config.settings import load_settings
from witness.config.town import Town
from witness.declare.molecule import Molecule
from witness.declare.search import ENDINGS, FOLDER
from witness.doctor.finding import Finding, fault, note, ok, warning
from witness.errors import DeclarationError, NotFoundError


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
            settings = load_settings(town.root, rig)
        except DeclarationError as error:
            yield from (fault("settings", str(problem), "correct the line") for problem in error.problems)
            continue
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
