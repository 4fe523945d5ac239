from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from witness.cli.init import init
from witness.config.town import Town


def test_init_makes_a_town_once(tmp_path: Path) -> None:
    result = CliRunner().invoke(init, [str(tmp_path / "a b" / "town"), "--json"])
    facts = json.loads(result.stdout)
    town = Town.find(tmp_path / "a b" / "town", environ={})
    assert facts == {"town": str(town.root), "made": True, "gastown": False, "socket": town.socket}
    again = CliRunner().invoke(init, [str(town.root)])
    assert again.exit_code == 0
    assert "already" in again.stdout


def test_init_inside_a_gas_town_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mayor").mkdir()
    result = CliRunner().invoke(init, [str(tmp_path / "rig")])
    assert result.exit_code == 2
    assert "is a town already: work there" in result.stderr
    assert not (tmp_path / "rig").exists()
    assert "already" in CliRunner().invoke(init, [str(tmp_path)]).stdout


@pytest.mark.parametrize("name", ["file"])
def test_init_on_a_file_is_bad_usage(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert CliRunner().invoke(init, [str(tmp_path / name)]).exit_code == 2
