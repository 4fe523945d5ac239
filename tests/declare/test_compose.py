from __future__ import annotations

from pathlib import Path

import pytest

from witness.config.town import Town
from witness.declare.compose import apply_overlay, compose, find_overlay
from witness.declare.molecule import Molecule
from witness.errors import DeclarationError

BASE = """formula = "base"
[[steps]]
id = "design"
title = "Design"
[[steps]]
id = "build"
title = "Build"
description = "Build it."
needs = ["design"]
[[steps]]
id = "ship"
title = "Ship"
needs = ["build"]
"""
EXPANSION = """formula = "twice"
type = "expansion"
[[template]]
id = "{target}.draft"
title = "Draft: {target.title}"
[[template]]
id = "{target}.final"
title = "Final"
description = "Again: {target.description}"
needs = ["{target}.draft"]
"""


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_step_is_replaced_by_the_expansions_steps(tmp_path: Path) -> None:
    _write(tmp_path / "base.formula.toml", BASE)
    _write(tmp_path / "twice.formula.toml", EXPANSION)
    child = 'formula = "m"\nextends = ["base"]\n[[compose.expand]]\ntarget = "build"\nwith = "twice"\n'
    steps = compose(Molecule.load(_write(tmp_path / "m.toml", child), strict=True))
    assert [(step.id, step.needs) for step in steps] == [
        ("design", ()),
        ("build.draft", ("design",)),
        ("build.final", ("build.draft",)),
        ("ship", ("build.final",)),
    ]
    assert steps[1].title == "Draft: Build"
    assert steps[2].description == "Again: Build it."


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ('target = "build"\nwith = "gone"', "m.toml:14: compose.expand[0]: no molecule named 'gone'"),
        ('target = "build"\nwith = "plain"', "'plain' is no expansion"),
        ('target = "gone"\nwith = "twice"', "'gone' is no step here"),
    ],
)
def test_wrong_expansions(tmp_path: Path, rule: str, words: str) -> None:
    _write(tmp_path / "twice.toml", EXPANSION)
    _write(tmp_path / "plain.toml", BASE)
    path = _write(tmp_path / "m.toml", BASE.replace('id = "ship"', 'id = "end"') + f"[[compose.expand]]\n{rule}\n")
    with pytest.raises(DeclarationError) as caught:
        compose(Molecule.load(path))
    assert words in str(caught.value)


def test_what_no_parent_has_is_found_when_all_are_merged(tmp_path: Path) -> None:
    _write(tmp_path / "base.toml", BASE)
    path = _write(
        tmp_path / "m.toml", 'formula = "m"\nextends = ["base"]\n[[steps]]\nid = "x"\nneeds = ["ship", "gone"]\n'
    )
    with pytest.raises(DeclarationError, match="'x' needs 'gone'"):
        compose(Molecule.load(path))


def test_a_childs_step_takes_its_parents_place(tmp_path: Path) -> None:
    _write(tmp_path / "base.toml", BASE)
    path = _write(tmp_path / "m.toml", 'formula = "m"\nextends = ["base"]\n[[steps]]\nid = "build"\ntitle = "Mine"\n')
    steps = compose(Molecule.load(path))
    assert [(step.id, step.title) for step in steps] == [("design", "Design"), ("build", "Mine"), ("ship", "Ship")]


def test_the_rigs_overlay_stands_in_place_of_the_towns(tmp_path: Path) -> None:
    town = Town.init(tmp_path / "town")
    assert find_overlay("base", town, "rig") is None
    of_town = _write(town.root / "formula-overlays" / "base.toml", "")
    assert find_overlay("base", town, "rig") == of_town
    of_rig = _write(town.root / "rig" / "formula-overlays" / "base.toml", "")
    assert find_overlay("base", town, "rig") == of_rig
    assert find_overlay("base", town) == of_town


def test_overlays_replace_append_and_skip(tmp_path: Path) -> None:
    steps = Molecule.load(_write(tmp_path / "base.toml", BASE)).steps
    overlay = _write(
        tmp_path / "overlay.toml",
        '[[step-overrides]]\nstep_id = "design"\nmode = "replace"\ndescription = "New."\n'
        '[[step-overrides]]\nstep_id = "ship"\nmode = "append"\ndescription = "More."\n'
        '[[step-overrides]]\nstep_id = "build"\nmode = "skip"\n'
        '[[step-overrides]]\nstep_id = "gone"\nmode = "skip"\n',
    )
    changed, notes = apply_overlay(steps, overlay)
    assert [(step.id, step.description, step.needs) for step in changed] == [
        ("design", "New.", ()),
        ("ship", "\nMore.", ("design",)),
    ]
    assert [str(note) for note in notes] == [
        f"{overlay}:13: step-overrides[3].step_id: 'gone' is no step here: the override is stale"
    ]


def test_wrong_overlays_name_every_fault(tmp_path: Path) -> None:
    overlay = _write(
        tmp_path / "o.toml",
        '[[step-overrides]]\nmode = "skip"\n[[step-overrides]]\nstep_id = "a"\nmode = "drop"\ndescription = 3\n',
    )
    with pytest.raises(DeclarationError) as caught:
        apply_overlay((), overlay)
    assert [(problem.line, problem.key) for problem in caught.value.problems] == [
        (1, "step-overrides[0].step_id"),
        (6, "step-overrides[1].description"),
        (5, "step-overrides[1].mode"),
    ]
