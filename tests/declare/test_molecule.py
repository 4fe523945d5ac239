from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from witness.config.resources import molecules_dir
from witness.config.town import Town
from witness.declare.document import find_formula
from witness.declare.molecule import Molecule
from witness.errors import DeclarationError, NotFoundError

STEPS = '[[steps]]\nid = "work"\ntitle = "Work"\n'


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _problems(path: Path, **more: Any) -> list[str]:
    with pytest.raises(DeclarationError) as caught:
        Molecule.load(path, **more)
    assert all(problem.file for problem in caught.value.problems)
    return [str(problem) for problem in caught.value.problems]


def test_shipped_molecules_stand(tmp_path: Path) -> None:
    names = {path.stem for path in molecules_dir().glob("*.toml")}
    assert {"mol-demo", "mol-minimal"} <= names
    for name in names:
        molecule = Molecule.load(name, strict=True)
        assert molecule.name == name
        assert molecule.sidecars({"issue": "docs/issue.md"})


def test_the_demo_declares_four_sidecars_and_fills_its_placeholder() -> None:
    molecule = Molecule.load(molecules_dir() / "mol-demo.toml")
    assert molecule.sidecars({}) == "scope:docs/issue.md,conventions,tools,specs:docs/api-spec.md"
    assert molecule.sidecars({"issue": "other.md"}).startswith("scope:other.md,")


@pytest.mark.parametrize(
    "declaration",
    [
        '[vars]\nsidecars = "specs,scope"\n',
        '[vars.sidecars]\ndefault = "specs,scope"\n',
        '[vars]\nsidecars = { default = "specs,scope", required = false }\n',
        'vars.sidecars.default = "specs,scope"\n',
        "\ufeff[vars]\r\n# comment\r\nsidecars = 'specs,scope' # more\r\n",
    ],
)
def test_every_way_of_writing_a_variable(tmp_path: Path, declaration: str) -> None:
    head = "\ufeff" if declaration.startswith("\ufeff") else ""
    body = declaration.removeprefix("\ufeff")
    text = f"{head}{body}" if body.startswith("[") else f"{body}"
    path = tmp_path / "m.toml"
    path.write_bytes(text.encode())
    molecule = Molecule.load(path)
    assert molecule.name == "m"
    assert molecule.sidecars({}) == "specs,scope"
    assert molecule.sidecars({"sidecars": "tools"}) == "tools"
    assert molecule.sidecars_source({"sidecars": "tools"}).file == "--var"


def test_without_sidecars_there_are_none(tmp_path: Path) -> None:
    assert Molecule.load(_write(tmp_path / "m.toml", f'formula = "m"\n{STEPS}')).sidecars({}) == ""


def test_json_formulas(tmp_path: Path) -> None:
    text = '{"formula": "j", "steps": [{"id": "a"}],\n "vars": {"sidecars": {"default": "scope"}}}'
    molecule = Molecule.load(_write(tmp_path / "j.formula.json", text))
    assert (molecule.name, molecule.sidecars({})) == ("j", "scope")
    bad = '{"formula": "j", "steps": [{"id": "a"}],\n "vars": {\n"sidecars": "scope"}}'
    assert (
        "j.formula.json:3: vars.sidecars: in a JSON formula" in _problems(_write(tmp_path / "j.formula.json", bad))[0]
    )
    assert "k.json:2: not JSON" in _problems(_write(tmp_path / "k.json", '{\n"a": }'))[0]


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        ("this is not TOML", 1, "", "not TOML: "),
        ('formula = "m"\n\n[vars\n', 3, "", "not TOML: "),
        (
            '[vars]\nsidecars = ["specs", "tools"]\n',
            2,
            "vars.sidecars",
            "an array is not accepted: it must be one string",
        ),
        ("[vars.sidecars]\ndefault = ['specs']\n", 2, "vars.sidecars.default", "specs:docs/api-spec.md,tools,scope"),
        ("[vars]\nx = 3\n", 2, "vars.x", "a number is not accepted"),
        ("[vars]\nx = true\n", 2, "vars.x", "a boolean is not accepted"),
        ("[vars]\nx = 1979-05-27\n", 2, "vars.x", "a date is not accepted"),
        ("[vars.x]\nrequired = 'yes'\n", 2, "vars.x.required", "true or false"),
        ("[vars.x]\nenum = 'a'\n", 2, "vars.x.enum", "an array of strings"),
        ("vars = 3\n", 1, "vars", "must be a table"),
        (f'formula = "m"\nversion = "1"\n{STEPS}', 2, "version", "must be a whole number"),
        (f'formula = "m"\npour = 1\n{STEPS}', 2, "pour", "must be true or false"),
        (f'formula = "m"\nextends = "a"\n{STEPS}', 2, "extends", 'extends = ["…"]'),
        ('formula = "m"\n[steps]\nid = "a"\n', 2, "steps", "[[steps]]"),
        ('formula = "m"\ntype = "recipe"\n', 2, "type", "convoy, workflow, expansion, aspect"),
        (STEPS, 0, "formula", "no name"),
        ('formula = "m"\n[[steps]]\ntitle = "a"\n', 2, "steps[0].id", "no id"),
        (f'formula = "m"\n{STEPS}{STEPS}', 6, "steps[1].id", "there twice"),
        ('formula = "m"\n[[steps]]\nid = "a"\nneeds = ["b"]\n', 4, "steps[0].needs", "'b'"),
        (
            'formula = "m"\n[[legs]]\nid = "a"\n[synthesis]\ndepends_on = ["z"]\n',
            5,
            "synthesis.depends_on",
            "'z' is no leg's id",
        ),
    ],
)
def test_what_gas_town_refuses_is_refused_with_its_place(
    tmp_path: Path, text: str, line: int, key: str, words: str
) -> None:
    path = _write(tmp_path / "m.toml", text)
    with pytest.raises(DeclarationError) as caught:
        Molecule.load(path)
    problem = caught.value.problems[0]
    assert (problem.file, problem.line, problem.key) == (str(path), line, key)
    assert words in problem.message


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.write_bytes(b'formula = "m"\nx = "\xff"\n')
    assert f"{path}:2: not UTF-8" in _problems(path)[0]


def test_a_huge_file_is_no_molecule(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.touch()
    os.truncate(path, 5_000_000_000)
    assert "larger than" in _problems(path)[0]


def test_a_fifo_is_no_molecule(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.toml")
    with pytest.raises(NotFoundError):
        Molecule.load(tmp_path / "m.toml")


def test_all_faults_at_once(tmp_path: Path) -> None:
    path = _write(tmp_path / "m.toml", '[vars]\na = 1\nb = ["x"]\n[vars.c]\nrequired = 1\ndefault = 2\n')
    assert len(_problems(path)) == 3


def test_bare_variables_are_enough_to_spawn_but_not_for_lint(tmp_path: Path) -> None:
    path = _write(tmp_path / "m.toml", '[vars]\nsidecars = "scope"\n')
    assert Molecule.load(path).sidecars({}) == "scope"
    assert any("no name" in line for line in _problems(path, strict=True))


def test_variables_given_beat_child_beats_parent(tmp_path: Path) -> None:
    _write(
        tmp_path / "base.formula.toml",
        f'formula = "base"\n{STEPS}[vars]\na = "parent"\nb = "parent"\nc = "parent"\nsidecars = "scope"\n',
    )
    path = _write(tmp_path / "m.toml", 'formula = "m"\nextends = ["base"]\n[vars]\nb = "child"\nc = "child"\n')
    molecule = Molecule.load(path, strict=True)
    values = molecule.variables({"c": "given", "extra": "kept"})
    assert values == {"a": "parent", "b": "child", "c": "given", "sidecars": "scope", "extra": "kept"}
    assert molecule.sidecars_source({}).file.endswith("base.formula.toml")
    assert [step.id for step in molecule.steps] == ["work"]
    assert molecule.parents == (tmp_path / "base.formula.toml",)


def test_faults_of_parents_name_the_parents_file(tmp_path: Path) -> None:
    parent = _write(tmp_path / "base.toml", f'formula = "base"\n{STEPS}[vars]\na = 1\n')
    path = _write(tmp_path / "m.toml", 'formula = "m"\nextends = ["base", "gone"]\n')
    lines = _problems(path)
    assert lines[0].startswith(f"{parent}:6: vars.a: ")
    assert lines[1].startswith(f"{path}:2: extends[1]: no molecule named 'gone'")


def test_a_circle_of_parents_ends(tmp_path: Path) -> None:
    _write(tmp_path / "a.toml", 'formula = "a"\nextends = ["b"]\n')
    _write(tmp_path / "b.toml", 'formula = "b"\nextends = ["a"]\n')
    assert "in a circle" in _problems(tmp_path / "a.toml")[0]


def test_required_enum_and_pattern(tmp_path: Path) -> None:
    path = _write(
        tmp_path / "m.toml",
        "[vars.issue]\nrequired = true\n[vars.level]\nenum = ['low', 'high']\n[vars.n]\npattern = '^[0-9]+$'\n",
    )
    molecule = Molecule.load(path)
    with pytest.raises(DeclarationError) as caught:
        molecule.variables({"level": "mid", "n": "x"})
    assert [str(problem) for problem in caught.value.problems] == [
        f"{path}:1: vars.issue: required and not given: add --var issue=VALUE",
        "--var: level: 'mid' is not one of low, high",
        "--var: n: 'x' does not match ^[0-9]+$",
    ]
    assert molecule.variables({"issue": "gt-1"})["n"] == ""


def test_a_placeholder_without_variable_is_a_fault(tmp_path: Path) -> None:
    path = _write(tmp_path / "m.toml", '[vars]\nsidecars = "specs:{{spec}}"\n')
    with pytest.raises(DeclarationError, match=r"m.toml:2: vars.sidecars: \{\{spec\}\} names no variable"):
        Molecule.load(path).sidecars({})
    assert Molecule.load(path).sidecars({"spec": "a.md"}) == "specs:a.md"


def test_names_are_searched_near_to_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    town = Town.init(tmp_path / "town")
    repository = tmp_path / "repo"
    work = repository / "deep"
    work.mkdir(parents=True)
    (repository / ".git").touch()
    folders = [home, town.root, repository, work]
    found = []
    for folder in folders:
        path = _write(folder / ".beads" / "formulas" / "mol-minimal.formula.toml", f'formula = "m"\n{STEPS}')
        found.append(path)
        assert find_formula("mol-minimal", town, work) == path
    _write(work / ".beads" / "formulas" / "mol-minimal.formula.json", "{}")
    assert find_formula("mol-minimal", town, work) == found[-1], "TOML is taken before JSON"
    for path in found:
        path.unlink()
    (work / ".beads" / "formulas" / "mol-minimal.formula.json").unlink()
    assert find_formula("mol-minimal", town, work) == molecules_dir() / "mol-minimal.toml"


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no molecule named 'mol-nosuch': looked in "):
        Molecule.load("mol-nosuch", workdir=tmp_path)
    with pytest.raises(NotFoundError, match=r"no molecule file named 'molecules/nosuch\.toml'"):
        Molecule.load("molecules/nosuch.toml", workdir=tmp_path)


def test_hints_at_what_may_have_been_meant(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"did you mean mol-demo\?"):
        Molecule.load("mol-dmo", workdir=tmp_path)
    with pytest.raises(NotFoundError, match="named without a path: mol-demo"):
        Molecule.load("elsewhere/mol-demo.toml", workdir=tmp_path)


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        ("[vars.x]\ndefault = 3\n", 2, "vars.x.default", 'default = "3"'),
        ("[vars.x]\npattern = '('\n", 2, "vars.x.pattern", "not a regular expression"),
        ("[vars.x]\ndefault = 'c'\nenum = ['a', 'b']\n", 2, "vars.x.default", "not one of a, b"),
        ('formula = "m"\n', 0, "steps", "nothing to do"),
        (
            'formula = "m"\n[[steps]]\nid = "a"\nneeds = ["b"]\n[[steps]]\nid = "b"\ndepends_on = ["a"]\n',
            2,
            "steps",
            "circle",
        ),
        ('formula = "m"\ntype = "convoy"\n', 0, "legs", "nothing to do"),
    ],
)
def test_where_gas_towns_readers_say_nothing_we_warn(
    tmp_path: Path, text: str, line: int, key: str, words: str
) -> None:
    (warning,) = Molecule.load(_write(tmp_path / "m.toml", text)).warnings
    assert (warning.line, warning.key) == (line, key)
    assert words in warning.message


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("[vars.x]\nrequired = true\ndefault = ''\n", "vars.x.required", "required and with a default"),
        ("[[steps]]\nid = 'b'\n", "steps[1].title", "no title"),
        ("[[steps]]\nid = 'b'\ntitle = 'B'\npriority = 5\n", "steps[1].priority", "from 0 to 4"),
        ("[[steps]]\nid = 'b'\ntitle = 'B'\ndepends_on = ['z']\n", "steps[1].depends_on", "'z'"),
        ("[[steps]]\nid = 'b'\ntitle = 'B'\nwaits_for = 'z'\n", "steps[1].waits_for", "all-children"),
        ("[[steps]]\nid = 'b'\ntitle = 'B'\n[[steps.children]]\nid = 'a'\ntitle = 'A'\n",
         "steps[1].children[0].id", "there twice"),
        ("[[steps]]\nid = 'b'\ntitle = 'B'\n[[steps.children]]\nid = 'c'\n",
         "steps[1].children[0].title", "no title"),
        ("[[steps]]\nid = 'b'\ntitle = 'B'\n[steps.on_complete]\nfor_each = 'z'\n",
         "steps[1].on_complete.for_each", "output."),
    ],
)  # fmt: skip
def test_what_only_bd_refuses_is_refused_by_lint(tmp_path: Path, text: str, key: str, words: str) -> None:
    path = _write(tmp_path / "m.toml", f"formula = 'm'\n[[steps]]\nid = 'a'\ntitle = 'A'\n{text}")
    with pytest.raises(DeclarationError) as caught:
        Molecule.load(path, strict=True)
    assert [(problem.key, words in problem.message) for problem in caught.value.problems] == [(key, True)]
    Molecule.load(path)  # a spawn of ours has no bead that could be poured
