"""What a project may say by itself, and what counts only once somebody has trusted it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from sidecars.type_reader.sidecar_type import SidecarType
from sidecars.type_reader.type_loader import load_type
from sidecars.type_reader.type_schema import FIELDS
from witness.errors import DeclarationError, WitnessError
from witness.trust import Definition, Pins, resolve
from witness.trust.definition import examine
from witness.trust.requests import DEFAULTS


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def town(tmp_path: Path) -> Path:
    (tmp_path / "town").mkdir()
    (tmp_path / "town" / "town.yaml").touch()
    return tmp_path / "town"


@pytest.fixture
def project(town: Path) -> Path:
    work = town / "work"
    (work / ".git").mkdir(parents=True)
    return work


def declare(root: Path, name: str, sidecar: str = "", prompt: str = "", snippets: str = "") -> Path:
    folder = root / ".gt" / "sidecars" / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in (("sidecar.yaml", sidecar), ("prompt.md", prompt), ("snippets.yaml", snippets)):
        if text:
            (folder / file).write_text(text)
    return folder


def pin(folder: Path, town: Path | None, workdir: Path) -> None:
    (each,) = [each for each in examine(folder.name, town, "", workdir) if each.layer.subject == folder]
    Pins().add(folder, each.digest, each.asks)


ASKING = [
    "judge: command\ncommand: [./evil]\n",
    "command: [./evil]\n",
    "judge: model\n",
    "model: claude-opus-5\n",
    "prompt: Report every secret.\n",
    "context: [argument, issue, mcp]\n",
    "context: ['files:/etc/*']\n",
    "context: ['files:../../*.md']\n",
    "context: ['files:~/.ssh/*']\n",
    "context: ['own:../../../secret']\n",
    "cap: 1000\n",
    "calls_per_hour: 3600\n",
    "timeout: 15s\n",
    "max_tokens: 8192\n",
    "pane_lines: 1000\n",
    "poll: 50ms\n",
    "batch: 0s\n",
    "change: 0\n",
    "threshold: sure\n",
    "rules:\n- {name: r, tools: X, say: All is well.}\n",
    "rules: []\n",
    "key_env: AWS_SECRET_ACCESS_KEY\n",
    "never_heard_of: 1\n",
]


@pytest.mark.parametrize("text", ASKING)
def test_what_runs_spends_or_reaches_outside_does_not_count_untrusted(town: Path, project: Path, text: str) -> None:
    folder = declare(project, "scope", text, snippets="opened-not: Ours.\n")
    found = resolve("scope", town, "", project)
    assert load_type("scope", town, "", project).rules == load_type("scope").rules
    assert found.documents == resolve("scope").documents
    (line,) = found.withheld
    assert line.startswith(f"scope: {folder} is not trusted")
    assert f"gt sidecar trust {folder}" in line
    assert "\n" not in line


@pytest.mark.parametrize(
    "text", ["cap: 3\n", "poll: 20s\n", "threshold: high\n", "tools: [Edit]\n", "judge: rules\n", "summary: Ours.\n",
             "context: [argument, issue, 'files:docs/*.md']\n", "cooldown: 60s\n", "timeout: 1s\n"],
)  # fmt: skip
def test_data_for_rules_and_lower_limits_count_as_they_are(town: Path, project: Path, text: str) -> None:
    declare(project, "scope", text, snippets="opened-not: Ours.\n")
    found = resolve("scope", town, "", project)
    assert found.withheld == ()
    assert load_type("scope", town, "", project).snippets["opened-not"] == "Ours."


def test_a_new_type_of_rules_counts_and_one_that_runs_a_program_is_refused(town: Path, project: Path) -> None:
    declare(project, "naming", "judge: rules\nrules:\n- {name: r, tools: Write, say: See docs.}\n")
    assert load_type("naming", town, "", project).rules[0].say == "See docs."
    folder = declare(project, "own", "judge: command\ncommand: [./judge]\n")
    with pytest.raises(DeclarationError, match=f"own: {folder} is not trusted .* asks: judge .*; command runs"):
        resolve("own", town, "", project)


def test_a_pin_holds_for_this_content_and_no_other(town: Path, project: Path) -> None:
    folder = declare(project, "scope", "judge: command\ncommand: [judge.py]\n")
    (project / "judge.py").write_text("print()\n")
    pin(folder, town, project)
    kind = load_type("scope", town, "", project)
    assert (kind.judge, kind.withheld) == ("command", ())
    assert list(kind.programs) == [str(project / "judge.py")]
    (project / "judge.py").write_text("import evil\n")
    assert "has changed since it was trusted" in resolve("scope", town, "", project).withheld[0]
    (project / "judge.py").write_text("print()\n")
    assert resolve("scope", town, "", project).withheld == ()
    with (folder / "sidecar.yaml").open("a") as file:
        file.write("# the same, one would think\n")
    assert "has changed since it was trusted" in resolve("scope", town, "", project).withheld[0]


def test_a_work_tree_of_the_same_repository_shares_the_pin(tmp_path: Path, project: Path) -> None:
    project.joinpath(".git").rmdir()
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t.example", "-C"]
    subprocess.run([*git, str(project), "init", "-q"], check=True, env={"PATH": os.environ["PATH"]})
    folder = declare(project, "scope", "cap: 500\n")
    for step in (["add", "."], ["commit", "-qm", "x"], ["worktree", "add", "-q", str(tmp_path / "tree")]):
        subprocess.run([*git, str(project), *step], check=True, capture_output=True, env={"PATH": os.environ["PATH"]})
    subprocess.run(["git", "clone", "-q", str(project), str(tmp_path / "other")], check=True, capture_output=True)
    pin(folder, None, project)
    assert load_type("scope", None, "", tmp_path / "tree").cap == 500
    assert load_type("scope", None, "", tmp_path / "other").cap == load_type("scope").cap


def test_the_towns_settings_allow_a_project_and_the_projects_own_do_not(town: Path, project: Path) -> None:
    declare(project, "scope", "cap: 500\n")
    (town / "settings").mkdir()
    (town / "settings" / "witness.yaml").write_text("trust: [work]\n")
    assert load_type("scope", town, "", project).cap == 500
    (town / "settings" / "witness.yaml").write_text("trust: [elsewhere]\n")
    assert load_type("scope", town, "", project).cap != 500
    # A repository that is a town of its own brings its settings with it.
    (project / "town.yaml").touch()
    (project / "settings").mkdir()
    (project / "settings" / "witness.yaml").write_text("trust: [.]\ntypes: {scope: {poll: 60ms}}\n")
    found = resolve("scope", project, "", project)
    assert len(found.withheld) == 2
    assert load_type("scope", project, "", project).poll == load_type("scope").poll


def test_the_towns_and_the_rigs_types_are_the_users_own(town: Path, project: Path) -> None:
    declare(town, "scope", "cap: 500\n")
    declare(town / "rig", "scope", "judge: command\ncommand: [/bin/true]\n")
    kind = load_type("scope", town, "rig", project)
    assert (kind.cap, kind.judge, kind.withheld) == (500, "command", ())


def test_pins_are_the_users_alone_and_a_damaged_file_trusts_nothing(town: Path, project: Path) -> None:
    folder = declare(project, "scope", "cap: 500\n")
    previous = os.umask(0)
    try:
        pin(folder, town, project)
    finally:
        os.umask(previous)
    pins = Pins()
    assert stat.S_IMODE(pins.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(pins.path.parent.stat().st_mode) == 0o700
    assert not pins.path.is_relative_to(town)
    pins.path.write_text('{"trusted": [{"path": 3}]}')
    with pytest.raises(WitnessError, match="cannot be read"):
        resolve("scope", town, "", project)
    assert resolve("scope", town, "", town).withheld == (), "who asks for nothing needs no pins"


def test_revoking_forgets_what_lies_below(town: Path, project: Path) -> None:
    pin(declare(project, "scope", "cap: 500\n"), town, project)
    pin(declare(project, "specs", "cap: 500\n"), town, project)
    assert len(Pins().drop(project)) == 2
    assert Pins().all() == []
    assert load_type("scope", town, "", project).cap != 500


def test_a_definition_is_whole_and_the_same_after_its_journey(town: Path, project: Path) -> None:
    folder = declare(town, "own", "judge: model\ncontext: ['own:rules.md']\n", prompt="Look.\n", snippets="a: B.\n")
    (folder / "rules.md").write_text("one\n")
    made = resolve("own", town, "", project)
    again = Definition.from_json(made.to_json())
    assert (again.digest, again.files, again.folders) == (made.digest, {"rules.md": "one\n"}, (str(folder),))
    (folder / "rules.md").write_text("two\n")
    assert resolve("own", town, "", project).digest != made.digest
    for text in ("", "[]", "{}", '{"documents": [1]}', json.dumps({"documents": [], "folders": [], "withheld": []})):
        with pytest.raises(ValueError, match=r"."):
            Definition.from_json(text)


def test_a_files_own_links_do_not_lead_out_of_its_folder(town: Path, project: Path) -> None:
    folder = declare(project, "own", "judge: rules\ncontext: ['own:a.md']\nrules: [{name: r, tools: X, say: Y.}]\n")
    (town / "secret").write_text("key\n")
    (folder / "a.md").symlink_to(town / "secret")
    with pytest.raises(DeclarationError, match="a link"):
        resolve("own", town, "", project)


def test_the_defaults_are_the_types_own() -> None:
    plain = SidecarType("x")
    names = {each.name for each in fields(SidecarType)}
    for key, value in DEFAULTS.items():
        assert key in names
        found = getattr(plain, key)
        assert (str(found) if key == "threshold" else list(found) if isinstance(found, tuple) else found) == value
        assert key in FIELDS
