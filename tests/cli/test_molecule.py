from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from witness.cli.molecule import molecule, read_vars
from witness.config.resources import molecules_dir
from witness.config.town import Town
from witness.errors import NotFoundError, UsageError

DEMO = str(molecules_dir() / "mol-demo.toml")
REPOSITORY = str(molecules_dir() / "demo-repo")


@pytest.fixture(autouse=True)
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Town:
    town = Town.init(tmp_path / "town")
    for kind in ("papers", "scope", "conventions", "tools", "specs"):
        folder = town.root / ".gt" / "sidecars" / kind
        folder.mkdir(parents=True)
        (folder / "sidecar.yaml").write_text("argument: files\n" if kind in ("papers", "specs") else "summary: x\n")
    monkeypatch.chdir(town.root)
    return town


def _run(*args: str) -> Result:
    return CliRunner().invoke(molecule, args)


def test_lint_finds_no_fault_in_what_is_shipped() -> None:
    for path in sorted(molecules_dir().glob("*.toml")):
        result = _run("lint", str(path), "--workdir", REPOSITORY)
        assert result.exit_code == 0, result.output
        assert result.stdout == ""


def test_lint_prints_every_fault_and_exits_with_2(town: Town) -> None:
    path = town.root / "m.toml"
    path.write_text(
        'formula = "m"\n[[steps]]\nid = "a"\ntitle = "Do {{what}}"\n[vars]\nsidecars = "nosuch,papers:gone.md"\n'
    )
    result = _run("lint", "m.toml", "nowhere")
    assert result.exit_code == 2
    lines = result.stdout.splitlines()
    assert lines[0].startswith("m.toml:4: steps[0].title: {{what}} is no variable")
    assert lines[1].startswith("m.toml:6: vars.sidecars: no sidecar type named 'nosuch'")
    assert lines[2].startswith(f"m.toml:6: vars.sidecars: papers: no file 'gone.md' under {town.root}")
    assert lines[3].startswith("nowhere: no molecule named 'nowhere'")
    as_json = json.loads(_run("lint", "m.toml", "--json").stdout)
    assert [(fault["line"], fault["key"]) for fault in as_json] == [(4, "steps[0].title"), *[(6, "vars.sidecars")] * 2]


def test_lint_does_not_ask_for_variables_that_come_with_the_work(town: Town) -> None:
    path = town.root / "m.toml"
    path.write_text(
        'formula = "m"\n[[steps]]\nid = "a"\ntitle = "A"\n'
        '[vars]\nsidecars = "papers:{{issue}},nosuch"\n[vars.issue]\nrequired = true\n'
    )
    assert _run("lint", "m.toml").exit_code == 0
    assert "nosuch" in _run("lint", "m.toml", "--var", "issue=a.md").stdout


def test_show_merges_parents_and_overlays(town: Town) -> None:
    (town.root / "base.toml").write_text(
        'formula = "base"\n[[steps]]\nid = "a"\n[[steps]]\nid = "b"\nneeds = ["a"]\n[vars]\nx = "1"\n'
    )
    (town.root / "m.toml").write_text('formula = "m"\nextends = ["base"]\n[vars]\ny = "2"\n')
    (town.root / "formula-overlays").mkdir()
    (town.root / "formula-overlays" / "m.toml").write_text('[[step-overrides]]\nstep_id = "a"\nmode = "skip"\n')
    facts = json.loads(_run("show", "m.toml", "--json").stdout)
    assert [step["id"] for step in facts["steps"]] == ["b"]
    assert facts["vars"]["x"]["declared"] == "base.toml:8"
    assert facts["type"] == "workflow"
    assert facts["overlay"].endswith("formula-overlays/m.toml")
    shown = _run("show", "m.toml").stdout
    assert "var y = '2'  m.toml:4" in shown


def test_vars_fills_the_sidecars() -> None:
    result = _run("vars", DEMO, "--var", "issue=a.md", "--json")
    assert json.loads(result.stdout)["sidecars"].startswith("scope:a.md,")
    assert "issue=docs/issue.md" in _run("vars", DEMO).stdout


def test_vars_of_what_is_not_there() -> None:
    assert isinstance(_run("vars", "nowhere").exception, NotFoundError)


def test_var_flags() -> None:
    assert read_vars(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    for wrong in ("a", "=1", ""):
        with pytest.raises(UsageError, match="NAME=VALUE"):
            read_vars([wrong])
