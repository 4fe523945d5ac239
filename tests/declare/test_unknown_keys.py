"""A key of a molecule that nobody reads is named; where a slip would leave the polecat unobserved it is a fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.supervise.command import gt
from witness.config.resources import molecules_dir
from witness.declare.molecule import Molecule
from witness.errors import DeclarationError

BEGIN = 'formula = "mol-x"\n[[steps]]\nid = "a"\ntitle = "t"\n'


def _load(folder: Path, text: str) -> Molecule:
    path = folder / "mol-x.toml"
    path.write_text(text)
    return Molecule.load(path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (BEGIN + '[var.sidecars]\ndefault = "scope"\n', "mol-x.toml:5: var: unknown key; write [vars.sidecars]"),
        ('sidecars = "scope"\n' + BEGIN, "mol-x.toml:1: sidecars: unknown key; write [vars.sidecars]"),
        (BEGIN + '[vars]\nsidecar = "scope"\n', "mol-x.toml:6: vars.sidecar: did you mean sidecars?"),
        (
            BEGIN + '[vars.sidecars]\ndefualt = "scope"\n',
            "mol-x.toml:6: vars.sidecars.defualt: unknown key; did you mean default?",
        ),
    ],
)
def test_a_slip_that_would_leave_it_unobserved_is_a_fault(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        _load(tmp_path, text)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('colour = "red"\n' + BEGIN, "colour: unknown key, which nobody reads"),
        (BEGIN + 'titel = "x"\n', "steps[0].titel: unknown key, which nobody reads; did you mean title?"),
        (
            BEGIN + '[vars.x]\ndefault = "1"\nrequierd = true\n',
            "vars.x.requierd: unknown key, which nobody reads; did you mean required?",
        ),
    ],
)
def test_any_other_is_a_warning_that_lint_shows(tmp_path: Path, text: str, told: str) -> None:
    assert told in str(_load(tmp_path, text).warnings[0])
    done = gt(tmp_path, "molecule", "lint", "mol-x.toml")
    assert done.returncode == 0, done.stdout
    assert f"warning: {tmp_path / 'mol-x.toml'}" in done.stderr.replace("warning: mol-x", f"warning: {tmp_path}/mol-x")
    assert told in done.stderr


def test_what_is_shipped_has_none() -> None:
    for path in molecules_dir().glob("*.toml"):
        assert Molecule.load(path).warnings == ()
