"""What a molecule that came with a project may say by itself, and what waits for trust."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.conftest import SETTINGS, Place, make_place, place
from tests.supervise.command import gt
from witness.errors import DeclarationError
from witness.launch.spawn_request import SpawnPlan, SpawnRequest, prepare

__all__ = ["make_place", "place"]
STEP = '[[steps]]\nid = "a"\ntitle = "b"\n'


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def molecule(place: Place, text: str, folder: str = "") -> Path:
    """A molecule in the work tree of a repository, or in a folder of the town."""
    (place.work / ".git").mkdir(exist_ok=True)
    path = (place.town.root / folder if folder else place.work) / "mol-x.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'formula = "mol-x"\n{text}\n{STEP}')
    return path


def planned(place: Place, path: Path, **more: object) -> SpawnPlan:
    order = SpawnRequest("toast", workdir=place.work, molecule=str(path), **more)  # type: ignore[arg-type]
    return prepare(place.town, order)


def test_the_agent_of_a_projects_molecule_does_not_run_by_itself(place: Place) -> None:
    path = molecule(place, f'agent = "touch {place.town.root}/ran"')
    done = gt(place.work, "polecat", "spawn", "toast", "--molecule", str(path), "--workdir", str(place.work))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "gt sidecar trust" in done.stderr
    assert "--agent" in done.stderr
    assert not (place.town.root / "ran").exists()
    assert place.sessions() == []


def test_another_agent_may_be_given_in_its_place(place: Place) -> None:
    assert planned(place, molecule(place, 'agent = "./evil"'), agent="sleep 5").argv == ("sleep", "5")


@pytest.mark.parametrize("folder", [".beads/formulas", "main/.beads/formulas", "elsewhere"])
def test_the_users_own_molecule_counts(place: Place, folder: str) -> None:
    assert planned(place, molecule(place, 'agent = "sleep 5"', folder)).argv == ("sleep", "5")


def test_what_is_trusted_counts_until_it_changes(place: Place) -> None:
    (place.work / "run.sh").write_text("#!/bin/sh\n")
    (place.work / "run.sh").chmod(0o755)
    path = molecule(place, 'agent = "./run.sh"')
    with pytest.raises(DeclarationError, match="is not trusted"):
        planned(place, path)
    done = gt(place.work, "sidecar", "trust", str(path), "--yes")
    assert done.returncode == 0, done.stderr
    assert "run.sh" in done.stderr
    assert planned(place, path).argv == ("./run.sh",)
    (listed,) = json.loads(gt(place.work, "sidecar", "trust", "--list", "--json").stdout)
    assert (listed["path"], listed["state"]) == (str(path.resolve()), "trusted")
    path.write_text(path.read_text() + '\n# a note\n[vars.more]\ndefault = "data may change"\n')
    assert planned(place, path).argv == ("./run.sh",)
    (place.work / "run.sh").write_text("#!/bin/sh\nevil\n")
    with pytest.raises(DeclarationError, match="has changed since it was trusted"):
        planned(place, path)
    gt(place.work, "sidecar", "trust", str(path), "--yes")
    assert planned(place, path).argv == ("./run.sh",)
    gt(place.work, "sidecar", "trust", "--revoke", str(path))
    with pytest.raises(DeclarationError):
        planned(place, path)


def test_from_another_folder_the_same_words_are_another_program(place: Place) -> None:
    for each in (place.work, place.work / "sub"):
        each.mkdir(exist_ok=True)
        (each / "run.sh").write_text(f"#!/bin/sh\n: {each.name}\n")
        (each / "run.sh").chmod(0o755)
    path = molecule(place, 'agent = "./run.sh"')
    assert gt(place.work, "sidecar", "trust", str(path), "--yes").returncode == 0
    with pytest.raises(DeclarationError, match="does not count"):
        prepare(place.town, SpawnRequest("toast", workdir=place.work / "sub", molecule=str(path)))


@pytest.mark.parametrize(
    ("said", "limits", "withheld"),
    [
        ('pids_max = 30\nmemory_max = "100M"', {"pids_max": 30, "memory_max": 100 << 20}, 0),
        ('pids_max = 5000\nmemory_max = "100M"', {"pids_max": 50, "memory_max": 100 << 20}, 1),
        ('pids_max = "max"\ncpu_weight = 10000', {"pids_max": 50, "cpu_weight": 10000}, 1),
    ],
)
def test_the_limits_of_a_projects_molecule_only_make_them_tighter(
    make_place: Callable[..., Place], said: str, limits: dict[str, int], withheld: int
) -> None:
    place = make_place(settings=SETTINGS + "pids_max: 50\n")
    path = molecule(place, said)
    plan = planned(place, path, agent="sleep 5")
    assert plan.limits.set_values() == limits
    assert len(plan.withheld) == withheld
    assert all("gt sidecar trust" in line for line in plan.withheld)


def test_trusted_limits_count_as_they_are(make_place: Callable[..., Place]) -> None:
    place = make_place(settings=SETTINGS + "pids_max: 50\n")
    path = molecule(place, "pids_max = 5000")
    assert gt(place.work, "sidecar", "trust", str(path), "--yes").returncode == 0
    plan = planned(place, path, agent="sleep 5")
    assert (plan.limits.pids_max, plan.withheld) == (5000, ())


def test_what_a_molecule_asks_cannot_paint_the_terminal(place: Place) -> None:
    path = molecule(place, 'agent = "evil \\u001b[2J\\u0007 \\r hidden"')
    done = gt(place.work, "polecat", "spawn", "toast", "--molecule", str(path), "--workdir", str(place.work))
    assert done.returncode == 2
    assert not any(mark in done.stderr for mark in "\x1b\x07\r")


@pytest.mark.parametrize(
    "said",
    [
        '[vars.sidecars]\ndefault = "specs:/etc/passwd"',
        '[vars.sidecars]\ndefault = "specs:docs/a.md\\\\,../../x.md"',
        '[vars.sidecars]\ndefault = "scope:~/.ssh/id_rsa"',
        '[vars.issue]\ndefault = "/etc/passwd"',
    ],
)
def test_a_projects_molecule_names_no_file_outside(place: Place, said: str) -> None:
    path = molecule(place, said)
    for each in (place.work / "docs" / "a.md", place.work.parent.parent / "x.md", Path.home() / ".ssh" / "id_rsa"):
        each.parent.mkdir(exist_ok=True, parents=True)
        each.write_text("a\n")
    with pytest.raises(DeclarationError, match="lies outside of"):
        planned(place, path, agent="sleep 5")
    users = place.town.root / ".beads" / "formulas" / "mol-x.formula.toml"
    users.parent.mkdir(parents=True)
    users.write_text(path.read_text())
    try:
        planned(place, users, agent="sleep 5")
    except DeclarationError as error:
        assert "lies outside" not in str(error)  # noqa: PT017 - it may well be that no such file is there
