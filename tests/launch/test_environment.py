"""What a polecat finds in its environment, and what it must not find there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from witness.config.town import Town
from witness.launch.environment import daemon_environ, polecat_environment
from witness.names import GroupId

GROUP = GroupId("main", "toast", "r1")


def environment_of(town: Town) -> dict[str, str]:
    return polecat_environment(
        town, GROUP, "gt-toast", town.root, "GT_WITNESS_API_KEY", 0.1, ["claude", "--model", "x"]
    )


def test_the_sidecars_key_and_other_lives_stay_out_of_a_polecat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GT_WITNESS_API_KEY", "sk-sidecars")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-mine")
    monkeypatch.setenv("GT_SESSION", "gt-another")
    monkeypatch.setenv("TMUX_PANE", "%7")
    environment = environment_of(Town.init(tmp_path / "town"))
    assert "sk-sidecars" not in environment.values()
    assert environment["ANTHROPIC_API_KEY"] == "sk-mine"
    assert environment["GT_SESSION"] == "gt-toast"
    assert environment["GT_WITNESS_GROUP"] == "main/toast/r1"
    assert "TMUX_PANE" not in environment


@pytest.mark.parametrize("key_env", ["GT_WITNESS_API_KEY", "MY_OWN_NAME_OF_IT"])
def test_a_helper_has_no_key_and_nothing_of_a_polecats(monkeypatch: pytest.MonkeyPatch, key_env: str) -> None:
    monkeypatch.setenv(key_env, "sk-sidecars")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-mine")
    monkeypatch.setenv("GT_ROLE", "main/polecats/toast")
    environment = daemon_environ(key_env)
    assert "sk-sidecars" not in environment.values()
    assert "ANTHROPIC_API_KEY" not in environment
    assert "GT_ROLE" not in environment


def test_gt_is_ours_in_a_polecat_even_beside_modules_of_the_same_names(tmp_path: Path) -> None:
    town = Town.init(tmp_path / "a town")
    (town.root / "witness").mkdir()
    (town.root / "witness" / "__init__.py").write_text("raise SystemExit('not this one')")
    environment = environment_of(town)
    shown = subprocess.run(
        ["gt", "--version"], env=environment, cwd=town.root, capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith("gt-witness, version")
    first = Path(environment["PATH"].split(os.pathsep)[0])
    assert [path.name for path in first.iterdir()] == ["gt"]


def test_gas_towns_doctor_is_told_which_processes_are_the_agent(tmp_path: Path) -> None:
    environment = environment_of(Town.init(tmp_path / "town"))
    assert environment["GT_AGENT"] == "claude"
    names = environment["GT_PROCESS_NAMES"].split(",")
    assert {"claude", "node", Path(sys.executable).name} <= set(names)
