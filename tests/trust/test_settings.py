"""Settings that came with a repository: data counts, the rest waits for trust; and every key is classified."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import fields
from pathlib import Path

import pytest

from sidecars.tuning.evaluate import CASE_KEYS
from tests.supervise.command import gt
from witness.config.keys import find_key
from witness.config.settings import Settings
from witness.config.town import Town
from witness.declare.formula import FORMULA_KEYS
from witness.declare.molecule import ASKING_KEYS
from witness.declare.variables import VARIABLE_KEYS
from witness.errors import DeclarationError
from witness.launch.spawn_request import SpawnRequest, prepare
from witness.trust import effects
from witness.trust.effects import Effect
from witness.trust.settings import rig_askings, trusted_settings, withheld_settings


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("GT_WITNESS_API_KEY", raising=False)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository that brings a town of its own."""
    root = tmp_path / "clone"
    (root / ".git").mkdir(parents=True)
    (root / "town.yaml").write_text("name: clone\n")
    return root


def says(root: Path, text: str) -> None:
    (root / "settings").mkdir(parents=True, exist_ok=True)
    (root / "settings" / "witness.yaml").write_text(text)


#: One value for every key that is not data, other than its default and, for a limit, higher.
ASKING = {
    "containment": "reaper", "spawn_deadline": "9h", "spawn_settle": "9s", "stop_grace": "9h", "done_settle": "9h",
    "done_grace": "9h", "hung_after": "9d", "nuke_hung": True, "patrol_interval": "9h", "sidecar_silence": "9h",
    "backoff_base": "9h", "backoff_ceiling": "9h", "intensity": 99, "intensity_window": "9h", "failed_decay": "9h",
    "member_limit": 9999, "linger": "9h", "hook_wait": "9s", "key_env": "OTHER_KEY", "key_file": "/etc/hosts",
    "key_command": "touch ran", "model": "claude-opus-9", "model_url": "http://127.0.0.1:9", "run_budget": 99.0,
    "day_budget": 999.0, "run_calls": 9999, "day_calls": 99999, "prices": {"claude": {"input": 0.0}},
    "folders": "accept", "trust": ["."], "follow": {"sidecars": "tools"},
    "client_model": "haiku", "on": {"died": {"command": "touch ran"}},
    "setup": ["touch ran"], "setup_timeout": "9h", "worktree_throwaway": ["*"], "retention": "1s",
}  # fmt: skip
#: None of these is raised above "no limit", which is the default.
ONLY_TIGHTER = ("memory_high", "memory_max", "pids_max", "cpu_weight")


@pytest.mark.parametrize("key", ASKING)
def test_what_a_cloned_towns_settings_ask_does_not_count(clone: Path, key: str) -> None:
    says(clone, f"{key}: {json.dumps(ASKING[key])}\nprompt_line: false\n")
    assert getattr(trusted_settings(clone), key) == getattr(Settings(), key)
    assert trusted_settings(clone).prompt_line is False, "data counts beside it"
    (line,) = withheld_settings(clone)
    assert key in line
    assert "gt sidecar trust" in line
    done = gt(clone, "sidecar", "trust", "settings/witness.yaml", "--yes")
    assert done.returncode == 0, done.stderr
    assert getattr(trusted_settings(clone), key) != getattr(Settings(), key)
    assert withheld_settings(clone) == []


def test_a_program_for_the_key_is_not_run_for_a_clone(clone: Path) -> None:
    says(clone, f"key_command: touch {clone}/ran\n")
    assert find_key(trusted_settings(clone), {}) == ""
    gt(clone, "key", "test")
    gt(clone, "doctor")
    assert not (clone / "ran").exists()


def test_trust_is_of_the_values_that_ask_and_of_no_others(clone: Path) -> None:
    says(clone, "model_url: http://127.0.0.1:9\n")
    assert gt(clone, "sidecar", "trust", ".", "--yes").returncode == 0
    says(clone, "# other data\nmodel_url: http://127.0.0.1:9\nprompt_line: false\n")
    assert trusted_settings(clone).model_url == "http://127.0.0.1:9"
    says(clone, "model_url: http://127.0.0.1:10\n")
    assert trusted_settings(clone).model_url == ""
    assert "has changed since it was trusted" in withheld_settings(clone)[0]
    assert gt(clone, "sidecar", "trust", "--revoke", "settings/witness.yaml").returncode == 0


def test_lower_limits_count_and_higher_ones_ask(clone: Path) -> None:
    says(clone, "run_budget: 0.1\npids_max: 50\nday_calls: 99999\n")
    settings = trusted_settings(clone)
    assert (settings.run_budget, settings.pids_max, settings.day_calls) == (0.1, 50, Settings().day_calls)


def test_a_rig_cannot_take_a_towns_limit_away(clone: Path) -> None:
    says(clone, "pids_max: 50\nmemory_max: 100M\n")
    says(clone / "main", "pids_max: max\nmemory_max: 4G\n")
    settings = trusted_settings(clone, "main")
    assert (settings.pids_max, settings.memory_max) == (50, 100 << 20)
    assert gt(clone, "sidecar", "trust", "main/settings/witness.yaml", "--yes").returncode == 0
    settings = trusted_settings(clone, "main")
    assert (settings.pids_max, settings.memory_max) == (None, 4 << 30)


def test_a_town_in_no_repository_is_its_users_own(tmp_path: Path) -> None:
    says(tmp_path / "town", "key_env: OTHER_KEY\nmodel_url: http://127.0.0.1:9\n")
    settings = trusted_settings(tmp_path / "town")
    assert (settings.key_env, settings.model_url) == ("OTHER_KEY", "http://127.0.0.1:9")
    assert withheld_settings(tmp_path / "town") == []


def test_a_cloned_town_sends_no_polecat_elsewhere(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    (clone / "src").mkdir()
    (clone / "town.yaml").write_text(
        f"rigs:\n  main: {{path: {tmp_path}/home, prefix: gt}}\n  own: {{path: src, prefix: ow}}\n"
    )
    monkeypatch.chdir(clone)
    with pytest.raises(DeclarationError, match=r"lets polecats work in .*home"):
        prepare(Town.at(clone), SpawnRequest("toast", rig="main", agent="sleep 5"))
    assert prepare(Town.at(clone), SpawnRequest("toast", rig="own", agent="sleep 5")).workdir == clone / "src"
    assert gt(clone, "sidecar", "trust", "town.yaml", "--yes").returncode == 0
    assert all(each.counts for each in rig_askings(clone).values())
    assert prepare(Town.at(clone), SpawnRequest("toast", rig="main", agent="sleep 5")).workdir == tmp_path / "home"


def test_a_spawn_says_what_of_the_settings_does_not_count(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says(clone, "stop_grace: 9h\nkey_env: HOME\n")
    monkeypatch.chdir(clone)
    plan = prepare(Town.at(clone), SpawnRequest("toast", agent="sleep 5"))
    assert [line for line in plan.withheld if "settings/witness.yaml" in line]
    assert plan.settings == Settings()


def test_nobody_acts_on_settings_that_were_not_judged() -> None:
    done = subprocess.run(
        ["git", "grep", "-lw", "load_settings", "--", "witness", "sidecars", "hooks"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert set(done.stdout.split()) <= {
        "witness/config/settings.py", "witness/trust/settings.py", "witness/trust/definition.py",
    }  # fmt: skip


# -- no key is forgotten ----------------------------------------------------------------------------------------------


def _schemas() -> dict[str, tuple[Mapping[str, Effect], Collection[str]]]:
    from sidecars.type_reader.type_schema import FIELDS, RULE_FIELDS

    return {
        "sidecar.yaml": (effects.SIDECAR, FIELDS),
        "a rule": (effects.RULE, RULE_FIELDS),
        "settings": (effects.SETTINGS, [each.name for each in fields(Settings)]),
        "a molecule": (effects.MOLECULE, {*FORMULA_KEYS, *ASKING_KEYS}),
        "a variable": (effects.VARIABLE, VARIABLE_KEYS),
        "cases": (effects.CASE, CASE_KEYS),
    }


@pytest.mark.parametrize("schema", ["sidecar.yaml", "a rule", "settings", "a molecule", "a variable", "cases"])
def test_every_key_is_classified(schema: str) -> None:
    table, known = _schemas()[schema]
    assert set(known) == set(table) - ({"snippets"} if schema == "sidecar.yaml" else set())


def test_every_key_of_the_settings_is_tried() -> None:
    data = {key for key, effect in effects.SETTINGS.items() if effect is Effect.DATA}
    assert set(ASKING) | set(ONLY_TIGHTER) | data == set(effects.SETTINGS)
