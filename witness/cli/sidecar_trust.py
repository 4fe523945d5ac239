"""``gt sidecar trust``: let what a project declares of sidecars count."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from witness.cli.context import print_json
from witness.config.town import STANDALONE_MARKER as TOWN_FILE
from witness.config.town import Town
from witness.declare.document import ENDINGS
from witness.declare.molecule import Molecule
from witness.errors import NotFoundError, TownNotFoundError, UsageError, WitnessError
from witness.state.records import rfc3339
from witness.trust.asking import Asking
from witness.trust.definition import examine, subjects_at
from witness.trust.layers import OWN_FOLDER, type_names
from witness.trust.molecules import molecule_asking
from witness.trust.pins import Pins
from witness.trust.settings import FILE as SETTINGS
from witness.trust.settings import rig_askings, settings_asking


@click.command(
    epilog="Examples:\n\n"
    "  gt sidecar trust .gt/sidecars/scope\n\n"
    "  gt sidecar trust . --yes\n\n"
    "  gt sidecar trust --list\n\n"
    "  gt sidecar trust --revoke .gt/sidecars/scope"
)
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--list", "listing", is_flag=True, help="What is trusted, and whether it still is what was trusted.")
@click.option("--revoke", type=click.Path(path_type=Path), help="Trust this, and what lies below it, no longer.")
@click.option("--yes", is_flag=True, help="Trust it without asking; needed where nobody can be asked.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def trust(path: Path | None, listing: bool, revoke: Path | None, yes: bool, as_json: bool) -> None:
    """Show what a project's sidecar types at PATH ask for, and let them count as they are now.

    PATH is a type's folder, a project, or a molecule or settings/witness.yaml that came with one. What changes later
    asks again.
    """
    if sum((path is not None, listing, revoke is not None)) != 1:
        raise UsageError("give one of PATH, --list and --revoke PATH")
    pins = Pins()
    if path is not None:
        _trust(pins, path, yes, as_json)
    elif revoke is not None:
        _revoke(pins, revoke, as_json)
    else:
        _list(pins, as_json)


def _trust(pins: Pins, path: Path, yes: bool, as_json: bool) -> None:
    if not path.exists():
        raise NotFoundError("file or folder", str(path))
    asking = [each for each in _declared_at(path) if each.asks]
    fresh = [each for each in asking if not pins.hold(each.subject, each.digest)]
    for each in fresh:
        click.echo(f"{each.subject} ({each.what}) asks:", err=True)
        for key, reason in each.asks.items():
            click.echo(f"  {key}: {reason}", err=True)
        for program in each.programs:
            click.echo(f"  pinned with it: {program}", err=True)
    if not fresh:
        click.echo(f"{path}: " + ("trusted already" if asking else "asks for nothing, and counts as it is"), err=True)
    elif not yes and not sys.stdin.isatty():
        raise UsageError("nobody can be asked here: say --yes if all this is meant")
    elif not yes:
        click.confirm("trust this, as it is now?", abort=True, err=True)
    rows = []
    for each in fresh:
        pin = pins.add(each.subject, each.digest, each.asks, each.what)
        rows.append({"path": pin.path, "digest": pin.digest, "asks": dict(pin.asks)})
        if not as_json:
            click.echo(f"trusted: {each.subject}")
    if as_json:
        print_json(rows)


def _declared_at(path: Path) -> list[Asking]:
    """All that was judged of a project at a path: layers of types, and a molecule.

    Raises:
        NotFoundError: nothing of that kind stands there.
    """
    if path.is_file() and path.name.endswith(ENDINGS):
        town, rig = _town_of(path.parent)
        molecule = Molecule.load(path, Town.at(town) if town else None, path.parent)
        return [molecule_asking(each, asks, town, rig, path.parent) for each, asks in molecule.asks.items()]
    found: list[Asking] = _settings_at(path)
    for subject in subjects_at(path):
        workdir = subject.parents[2] if subject.parent.match(str(OWN_FOLDER)) else subject.parents[1]
        names = [subject.name] if subject.is_dir() else type_names(*_town_of(workdir), workdir)
        found += [
            each
            for name in names
            for each in examine(name, *_town_of(workdir), workdir)
            if each.subject.resolve() == subject.resolve() and each.layer.project is not None
        ]
    if not found and not subjects_at(path) and not _is_town_file(path):
        raise NotFoundError(
            "sidecar type", str(path), "name a type's folder, a molecule, or a project that has .gt/sidecars"
        )
    return found


def _is_town_file(path: Path) -> bool:
    return path.name in (TOWN_FILE, SETTINGS.name) and path.is_file()


def _settings_at(path: Path) -> list[Asking]:
    """What the settings and the rigs of a town ask for: at the town, or at one of its files."""
    place = Path(os.path.abspath(path))  # noqa: PTH100 - links stay as the user wrote them
    root = place if place.is_dir() else place.parent.parent if place.name == SETTINGS.name else place.parent
    town = _town_of(root)[0]
    if town is None:
        return []
    found = list(rig_askings(town).values()) if place in (town, town / TOWN_FILE) else []
    if place in (root, root / SETTINGS) and town in (root, root.parent):
        asking = settings_asking(root, town, "" if root == town else root.name)
        found += [asking] if asking else []
    return found


def _town_of(workdir: Path) -> tuple[Path | None, str]:
    try:
        town = Town.find(workdir)
    except TownNotFoundError:
        return None, ""
    return town.root, town.rig_of(workdir)


def _revoke(pins: Pins, path: Path, as_json: bool) -> None:
    gone = pins.drop(path)
    if not gone:
        raise NotFoundError("trusted path", str(path), "see 'gt sidecar trust --list'")
    if as_json:
        print_json([{"path": pin.path, "digest": pin.digest} for pin in gone])
        return
    for pin in gone:
        click.echo(f"no longer trusted: {pin.path}")


def _list(pins: Pins, as_json: bool) -> None:
    rows = []
    for pin in sorted(pins.all(), key=lambda each: each.path):
        when = rfc3339(pin.time)
        rows.append(
            {
                "path": pin.path,
                "state": _state(Path(pin.path), pin.digest),
                "asks": dict(pin.asks),
                "time": when,
                "digest": pin.digest,
            }
        )
    if as_json:
        print_json(rows)
        return
    for row in rows:
        click.echo(
            f"{row['path']}  {row['state']}, since {row['time']}: {'; '.join(map(' '.join, _pairs(row['asks'])))}"
        )


def _pairs(asks: object) -> Sequence[tuple[str, str]]:
    return list(asks.items()) if isinstance(asks, dict) else []


def _state(subject: Path, digest: str) -> str:
    """``trusted``, ``changed`` since, or ``gone``."""
    if not subject.exists():
        return "gone"
    try:
        held = [each for each in _declared_at(subject) if each.digest == digest]
    except WitnessError:
        return "changed"
    return "trusted" if held else "changed"
