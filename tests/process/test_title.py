"""No process of ours shows what Gas Town's search for orphans goes by."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.gas_town import end_town
from tests.waiting import until
from witness.api import Witness
from witness.config.town import Town
from witness.launch import town_witness
from witness.process.table import command_line, read_table
from witness.process.title import safe_title


@pytest.mark.parametrize(
    ("text", "shown"),
    [("gt-looker /home/Claude/x", "gt-looker /home/Cl.ude/x"), ("gt-sidecar a/CLAUDE/1 s", "gt-sidecar a/CL.UDE/1 s"),
     ("gt-witness /home/u/gt", "gt-witness /home/u/gt")],
)  # fmt: skip
def test_a_title_keeps_all_but_the_word(text: str, shown: str) -> None:
    assert safe_title(text) == shown


def test_in_a_town_below_a_folder_of_that_name_nothing_of_ours_bears_it(tmp_path: Path) -> None:
    town = Town.init(tmp_path / "claude" / "town")
    with Witness(town, environ={}) as witness:
        witness.spawn("my-claude", workdir=town.root, agent="sleep 600", sidecars="scope")
        until(lambda: town_witness.witness_process(town), "the Witness", below=town.root)
        server = town.runtime / "forkserver.json"
        until(server.exists, "the fork server", below=town.root)

        def lines() -> list[str]:
            mine = [command_line(row.process) for row in read_table().values() if row.parent == 1]
            return [line for line in mine if str(tmp_path) in line or "cl.ude/town" in line]

        until(lambda: len([each for each in lines() if each.startswith("gt-")]) >= 2, "their titles", every=0.1)
        assert [line for line in lines() if "claude" in line.lower() and not line.startswith("tmux")] == []
        (row,) = witness.patrol().as_json()["respawned"] or [None]
        assert row is None, "its sidecar is still known by its title"
        witness.nuke(["my-claude"])
    _end(town)


def _end(town: Town) -> None:
    end_town(town)
    for row in read_table().values():
        line = command_line(row.process)
        if line.startswith("gt-forkserver") and safe_title(str(town.runtime)) in line:
            os.kill(row.process.pid, 15)
