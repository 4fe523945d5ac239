from __future__ import annotations

import os
from pathlib import Path

import pytest

from witness.config.town import Town
from witness.declare.sidecar_spec import resolve_specs
from witness.errors import DeclarationError, NotFoundError
from witness.trust import resolve, shipped_types


def _make_type(folder: Path, name: str, text: str = "summary: x\n") -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "sidecar.yaml").write_text(text)
    return folder / name


def nearest(name: str, town: Town, rig: str, workdir: Path) -> Path:
    return Path(resolve(name, town.root, rig, workdir).folders[0])


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town.init(tmp_path / "town")


def test_the_nearest_type_is_found(town: Town, tmp_path: Path) -> None:
    work = tmp_path / "work" / "deep"
    work.mkdir(parents=True)
    in_town = _make_type(town.root / ".gt" / "sidecars", "mine")
    assert nearest("mine", town, "rig", work) == in_town
    in_rig = _make_type(town.root / "rig" / ".gt" / "sidecars", "mine")
    assert nearest("mine", town, "rig", work) == in_rig
    assert nearest("mine", town, "other", work) == in_town
    in_project = _make_type(work.parent / ".gt" / "sidecars", "mine")
    assert nearest("mine", town, "rig", work) == in_rig, "the folder above belongs to no repository"
    (work.parent / ".git").mkdir()
    assert nearest("mine", town, "rig", work) == in_project


def test_an_unknown_type_names_the_known_ones(town: Town) -> None:
    _make_type(town.root / ".gt" / "sidecars", "frobnicate")
    with pytest.raises(NotFoundError, match=r"did you mean frobnicate\? known types: .*frobnicate"):
        resolve("frobnicat", town.root)


def test_shipped_types_are_found_without_importing_them() -> None:
    assert shipped_types().name == "types"
    assert shipped_types().parent.name == "sidecars"


def test_missing_types_and_files_come_with_the_faults_of_the_text(town: Town, tmp_path: Path) -> None:
    types = town.root / ".gt" / "sidecars"
    _make_type(types, "papers", "argument: files\n")
    _make_type(types, "bare", "argument: none\n")
    _make_type(types, "free", "argument: text\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").touch()
    text = r"papers:docs/a.md\,docs/*.md\,gone.md\,no/*.md,nosuch,bare:x,free:any,,bare"
    with pytest.raises(DeclarationError) as caught:
        resolve_specs(text, "--sidecars", town=town, workdir=tmp_path)
    messages = [problem.message for problem in caught.value.problems]
    assert len(messages) == 5
    assert any("empty entry" in message for message in messages)
    assert f"papers: no file 'gone.md' under {tmp_path}" in messages
    assert f"papers: no file 'no/*.md' under {tmp_path}" in messages
    assert any("no sidecar type named 'nosuch'" in message for message in messages)
    assert "bare takes no argument, got 'x'" in messages
    assert all(problem.file == "--sidecars" for problem in caught.value.problems)


def test_specs_that_stand_are_returned(town: Town, tmp_path: Path) -> None:
    _make_type(town.root / ".gt" / "sidecars", "papers", "argument: files\n")
    (tmp_path / "a.md").touch()
    (spec,) = resolve_specs("papers:a.md", "--sidecars", town=town, workdir=tmp_path).specs
    assert (spec.name, spec.argument) == ("papers", "a.md")
    (absolute,) = resolve_specs(f"papers:{tmp_path}/*.md", "--sidecars", town=town, workdir=Path("/")).specs
    assert absolute.argument == f"{tmp_path}/*.md"


def test_what_is_there_and_cannot_be_read_as_a_file_is_missing(town: Town, tmp_path: Path) -> None:
    """A link to itself, a link to nowhere, a FIFO that would be waited for, a device without an end."""
    _make_type(town.root / ".gt" / "sidecars", "papers", "argument: files\n")
    (tmp_path / "loop.md").symlink_to("loop.md")
    (tmp_path / "nowhere.md").symlink_to("gone.md")
    os.mkfifo(tmp_path / "fifo.md")
    for name in ("loop.md", "nowhere.md", "fifo.md", "*.md", "/dev/zero"):
        with pytest.raises(DeclarationError, match="no file"):
            resolve_specs(f"papers:{name}", "--sidecars", town=town, workdir=tmp_path)
