"""``gt config``: what is set and where that comes from, what a key means, and setting one in a person's own file."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.supervise.command import gt
from witness.config.settings import Settings, load_settings, parse_duration
from witness.config.settings_file import set_value
from witness.config.town import Town
from witness.errors import DeclarationError, UsageError
from witness.names import MARKER_VARIABLE
from witness.testing import make_town, supervised

PAUSE = shlex.join([sys.executable, "-c", "import signal; signal.pause()"])

FILE = """\
# of this town
stop_grace: 4s   # short
types:
  scope:
    cap: 2   # two

  # of tools
  tools: {cap: 1}
# the end
folders: accept
"""


@pytest.fixture
def town(tmp_path: Path) -> Town:
    made = make_town(tmp_path / "town")
    (made.root / "settings").mkdir()
    (made.root / "settings" / "witness.yaml").write_text(FILE)
    return made


def test_each_value_is_told_with_its_default_and_its_place(town: Town) -> None:
    rows = json.loads(gt(town.root, "config", "show", "--json").stdout)
    assert set(rows) == {each.name for each in fields(Settings)}
    place = str(town.root / "settings" / "witness.yaml")
    assert (rows["stop_grace"]["value"], rows["stop_grace"]["default"]) == (4.0, 5.0)
    assert (rows["folders"]["from"], rows["folders"]["line"]) == (place, 10)
    assert (rows["linger"]["from"], rows["linger"]["line"]) == ("default", 0)
    told = gt(town.root, "config", "show", "--set").stdout.splitlines()
    assert [line.split()[0] for line in told] == ["key", "stop_grace", "types", "folders"]
    assert f"{place}:2" in told[1]


def test_a_rigs_value_stands_over_the_towns(town: Town) -> None:
    (town.root / "town.yaml").write_text("name: town\nrigs: {api: {}}\n")
    done = gt(town.root, "config", "set", "--rig", "api", "stop_grace", "1s")
    assert done.returncode == 0, done.stderr
    assert load_settings(town.root, "api").stop_grace == 1.0
    assert load_settings(town.root).stop_grace == 4.0
    told = gt(town.root, "config", "explain", "stop_grace", "--rig", "api").stdout
    assert told.index("settings/witness.yaml: 4s") < told.index("api/settings/witness.yaml: 1s")
    done = gt(town.root, "config", "show", "--rig", "ap")
    assert (done.returncode, done.stderr.count("\n"), "did you mean api?" in done.stderr) == (2, 1, True)


def test_what_a_repository_sets_without_trust_is_told_as_such(town: Town) -> None:
    subprocess.run(["git", "init", "-q", str(town.root)], check=True)
    rows = json.loads(gt(town.root, "config", "show", "--json").stdout)
    assert (rows["folders"]["value"], rows["folders"]["from"]) == ("ask", "default")
    assert rows["folders"]["not trusted in"] == [str(town.root / "settings" / "witness.yaml")]
    assert "does not count: gt sidecar trust" in gt(town.root, "config", "explain", "folders").stdout


def test_every_key_is_explained_also_outside_of_a_town(tmp_path: Path) -> None:
    for key in ("hook_wait", "types", "memory_max"):
        done = gt(tmp_path, "config", "explain", key)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"{key}: ")
    done = gt(tmp_path, "config", "explain", "hook_wiat")
    assert (done.returncode, done.stderr.count("\n"), "did you mean hook_wait?" in done.stderr) == (2, 1, True)


def test_the_schema_knows_every_key_and_what_a_length_of_time_is(tmp_path: Path) -> None:
    schema = json.loads(gt(tmp_path, "config", "schema").stdout)
    assert set(schema["properties"]) == {each.name for each in fields(Settings)}
    assert all(len(each["description"]) > 10 for each in schema["properties"].values())
    pattern = schema["properties"]["linger"]["anyOf"][0]["pattern"]
    for text in ("10s", "1m30s", "250ms", "3", "1.5h", "soon", "1 m", "", "s", "5x"):
        try:
            parse_duration(text)
            good = True
        except ValueError:
            good = False
        assert bool(re.search(pattern, text)) is good, text


def test_a_value_is_set_where_it_stands_and_all_else_stays(town: Town) -> None:
    path = town.root / "settings" / "witness.yaml"
    assert "stop_grace: 3s, from" in gt(town.root, "config", "set", "stop_grace", "3s").stdout
    assert path.read_text() == FILE.replace("4s", "3s")
    gt(town.root, "config", "set", "types", "{scope: {cap: 3}}")
    assert path.read_text() == FILE.replace("4s", "3s").replace(
        "types:\n  scope:\n    cap: 2   # two\n\n  # of tools\n  tools: {cap: 1}\n", "types: {scope: {cap: 3}}\n"
    )
    gt(town.root, "config", "set", "types", "--default")
    gt(town.root, "config", "set", "key_command", "pass show: x")
    gt(town.root, "config", "set", "model", "5")
    settings = load_settings(town.root)
    assert (settings.types, settings.key_command, settings.model, settings.folders) == (
        {},
        "pass show: x",
        "5",
        "accept",
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["stop_grace", "soon"], "10s, 1m30s or 250ms"),
        (["stop_grase", "1s"], "did you mean stop_grace?"),
        (["folders", "perhaps"], "one of ask, accept, never"),
        (["types", "{scope: 1}"], "{type: {field: value}}"),
        (["trust", "["], "a list of folders"),
        (["stop_grace"], "give a VALUE, or --default"),
        (["stop_grace", "1s", "--default"], "give a VALUE, or --default"),
        (["nuke_hung", "maybe"], "expected bool"),
    ],
)
def test_what_is_no_value_is_one_line_and_the_file_stays(town: Town, words: list[str], told: str) -> None:
    done = gt(town.root, "config", "set", *words)
    assert (done.returncode, done.stderr.count("\n"), told in done.stderr) == (2, 1, True), done.stderr
    assert (town.root / "settings" / "witness.yaml").read_text() == FILE


def test_a_file_with_a_fault_elsewhere_is_not_touched(town: Town) -> None:
    path = town.root / "settings" / "witness.yaml"
    path.write_text(FILE + "lingr: 1s\n")
    done = gt(town.root, "config", "set", "stop_grace", "1s")
    assert (done.returncode, "witness.yaml:11: lingr" in done.stderr) == (2, True)
    assert path.read_text() == FILE + "lingr: 1s\n"


@pytest.mark.parametrize(
    "text", ["{stop_grace: 4s}\n", "types: &a {x: {cap: 1}}\nprices: *a\n", "--- \nlinger: 1s\n...\n"]
)
def test_a_form_that_cannot_be_edited_is_said_and_stays(town: Town, text: str) -> None:
    path = town.root / "settings" / "witness.yaml"
    path.write_text(text)
    with pytest.raises(DeclarationError if "&a" in text else UsageError):
        set_value(path, "types", "{y: {cap: 2}}", town.make_runtime() / "settings.lock")
    assert path.read_text() == text


def test_a_link_is_followed_and_stays_a_link(town: Town, tmp_path: Path) -> None:
    path = town.root / "settings" / "witness.yaml"
    path.rename(tmp_path / "mine.yaml")
    path.symlink_to(tmp_path / "mine.yaml")
    set_value(path, "linger", "3s", town.make_runtime() / "settings.lock")
    assert path.is_symlink()
    assert load_settings(town.root).linger == 3.0


def test_twenty_at_once_all_count(town: Town) -> None:
    keys = [each.name for each in fields(Settings) if isinstance(getattr(Settings(), each.name), int | float)]
    keys = [key for key in keys if key not in ("nuke_hung", "prompt_line")][:20]
    lock, path = town.make_runtime() / "settings.lock", town.root / "settings" / "witness.yaml"
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda key: set_value(path, key, "7", lock), keys))
    settings = load_settings(town.root)
    assert [getattr(settings, key) for key in keys] == [7] * len(keys)


_VALUES = {
    "linger": st.sampled_from(["1s", "2m", "0"]),
    "model": st.text(
        st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=12
    ),
    "types": st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), st.just({"cap": 1}), max_size=3).map(
        json.dumps
    ),
    "trust": st.lists(st.from_regex(r"[a-z/.#: ]{1,8}", fullmatch=True), max_size=3).map(json.dumps),
}


@given(
    st.lists(st.sampled_from(sorted(_VALUES)).flatmap(lambda key: st.tuples(st.just(key), _VALUES[key] | st.none())))
)
def test_after_any_edits_the_file_holds_what_was_set(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[str, str | None]]
) -> None:
    folder = tmp_path_factory.mktemp("settings")
    path, lock, held = folder / "witness.yaml", folder / "lock", {"stop_grace": "4s", "folders": "accept"}
    path.write_text("# of this town\nstop_grace: 4s   # short\n# the end\nfolders: accept\n")
    for key, text in edits:
        value = set_value(path, key, text, lock)
        held.pop(key, None)
        if text is not None:
            held[key] = value
        import yaml

        assert yaml.safe_load(path.read_text()) == held
    assert "# of this town\nstop_grace: 4s   # short\n# the end\n" in path.read_text()


@pytest.mark.parametrize("fault", ["stop_grase: 1s\n", "stop_grace: soon\n", "a: [\n", "- a list\n", "folder", "\0\n"])
def test_a_fault_in_the_settings_keeps_nobody_from_looking_and_ending(town: Town, fault: str) -> None:
    path = town.root / "settings" / "witness.yaml"
    path.unlink()
    with supervised(town) as witness:
        for name in ("a", "b", "c"):
            witness.spawn(name, workdir=town.root, agent=PAUSE, witness=False)
        marker = next(group.id.marker for group, _ in witness.polecats() if group.id.polecat == "a")
        path.mkdir() if fault == "folder" else path.write_text(fault)
        for words in (
            ["list"], ["state"], ["polecat", "status", "a"], ["logs"], ["peek", "a"], ["witness", "status"],
            ["polecat", "nuke", "b"], ["stop", "c"],
        ):  # fmt: skip
            done = gt(town.root, *words)
            assert done.returncode == 0, (words, done.stderr)
        assert gt(town.root, "done", environment={**os.environ, MARKER_VARIABLE: marker}).returncode == 0
        done = gt(town.root, "polecat", "spawn", "d", "--agent", PAUSE)
        assert (done.returncode, "witness.yaml" in done.stderr) == (2, True), "a spawn says what is wrong"
