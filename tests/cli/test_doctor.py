from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.cli.stand_in import StandIn
from witness.cli.doctor import doctor
from witness.config.town import Town


def test_doctor_prints_json_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    town = Town.init(tmp_path / "town")
    monkeypatch.chdir(town.root)
    result = CliRunner().invoke(doctor, ["--json"])
    facts = json.loads(result.stdout)
    assert result.exit_code == 0
    assert {"check", "level", "message", "fix", "safe"} == set(facts["findings"][0])
    assert facts["mended"] == []


def test_doctor_fixes_and_says_what_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    town = Town.init(tmp_path / "town")
    town.make_runtime().chmod(0o755)
    monkeypatch.chdir(town.root)
    result = CliRunner().invoke(doctor, ["--fix"])
    assert "mended   permissions: closed 1 files to others" in result.stdout
    assert town.runtime.stat().st_mode & 0o077 == 0


def test_a_fault_makes_the_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(doctor, [])
    assert result.exit_code == 1
    assert "FAULT    town: no town at or above" in result.stdout
    assert "→ gt init" in result.stdout


def test_a_broken_rigs_json_is_a_finding_not_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mayor").mkdir()
    (tmp_path / "mayor" / "rigs.json").write_text("{")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(doctor, ["--json"])
    assert result.exit_code == 1
    assert "rigs.json" in json.loads(result.stdout)["findings"][0]["message"]


def test_the_real_gt_is_named_in_a_gas_town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = StandIn(tmp_path / "real")
    (tmp_path / "mayor").mkdir()
    (tmp_path / "mayor" / "rigs.json").write_text('{"rigs": {}}')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{real.folder}:/usr/bin:/bin")
    result = CliRunner().invoke(doctor, [])
    assert f"the real gt is {real.path} and is the first gt on PATH" in result.stdout
    assert f"Gas Town's own checks: {real.path} doctor" in result.stderr
    assert real.calls == []
