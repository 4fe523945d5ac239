"""``gt molecule`` beside the real readers: what they take and refuse, the variables, the steps of ``bd cook``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.gastown.formulas import formula, helpers
from tests.gastown.real_town import RealTown
from witness.declare.compose import compose
from witness.declare.molecule import Molecule
from witness.errors import WitnessError

NUMBER = 200
Row = tuple[str, str, tuple[str, ...]]


def _flat(steps: list[dict[str, Any]]) -> Iterator[Row]:
    for step in steps:
        needs = [*step.get("needs", []), *step.get("depends_on", [])]
        yield step["id"], step.get("title", ""), tuple(sorted(set(needs)))
        yield from _flat(step.get("children", []))


def _theirs(town: RealTown, path: Path) -> tuple[list[Row], set[str]] | str:
    """(steps, variables) as the real ``bd cook`` gives them, or why it refuses."""
    done = town.run("bd", "cook", str(path), check=False)
    if done.returncode:
        return done.stderr
    raw = json.loads(done.stdout)
    return list(_flat(raw.get("steps") or [])), set(raw.get("vars") or {})


def _ours(town: RealTown, path: Path) -> tuple[list[Row], set[str]] | str:
    try:
        found = Molecule.load(path, town.town, town.root, strict=True)
        steps = compose(found, town.town, town.root)
    except WitnessError as error:
        return str(error)
    return [(step.id, step.title, tuple(sorted(set(step.needs)))) for step in steps], set(found.declared)


def _differences(town: RealTown, paths: list[Path]) -> dict[str, Any]:
    with ThreadPoolExecutor(2) as pool:
        theirs = list(pool.map(lambda path: _theirs(town, path), paths))
    found = {}
    for path, real in zip(paths, theirs, strict=True):
        ours = _ours(town, path)
        if (isinstance(ours, str), isinstance(real, str)) == (True, True) or ours == real:
            continue
        found[path.name] = {"bd": real, "ours": ours, "text": path.read_text()}
    return found


@pytest.mark.timeout(600)
def test_all_of_gas_towns_own_formulas(gastown: RealTown) -> None:
    """Point 4. Three of its own are refused by its own ``bd``."""

    folder = gastown.root / ".beads" / "formulas"
    paths = sorted(folder.glob("*.formula.toml"))
    assert len(paths) > 20
    assert _differences(gastown, paths) == {}


@pytest.mark.timeout(600)
def test_two_hundred_that_dice_have_made(gastown: RealTown) -> None:
    """Point 4: the same taken, the same refused, the same variables, the same steps."""
    folder = gastown.root / ".beads" / "formulas"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in helpers().items():
        (folder / f"{name}.formula.toml").write_text(text)
    paths = [folder / f"g-{seed}.formula.toml" for seed in range(NUMBER)]
    for seed, path in enumerate(paths):
        path.write_text(formula(seed))
    different = _differences(gastown, paths)
    told = "\n".join(
        f"{name}\n  bd   {each['bd']}\n  ours {each['ours']}\n{each['text']}" for name, each in different.items()
    )
    assert different == {}, told[:6000]
