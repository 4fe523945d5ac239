"""Under an ESTOP file the sidecars of our own polecats end, are not respawned, and come back when it is over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.gas_town import end_town
from witness.api import Witness
from witness.config.town import Town
from witness.errors import DeclarationError
from witness.journal import MemberKind, MemberState
from witness.process import ProcessId
from witness.process.exits import wait_gone
from witness.process.table import is_alive


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    town = Town.init(tmp_path / "town")
    yield town
    end_town(town)


def _scope(witness: Witness) -> tuple[MemberState, ProcessId | None, tuple[float, ...]]:
    group = witness.find("toast")
    (member,) = [m for m in witness.journal.members.of(group.id.run) if m.kind is MemberKind.SIDECAR]
    return member.state, member.process, member.crashes


def test_sidecars_end_wait_and_come_back(town: Town, tmp_path: Path) -> None:
    with Witness(town, environ={}) as witness:
        spawned = witness.spawn("toast", workdir=tmp_path, agent="sleep 600", sidecars="scope", witness=False)
        _, before, _ = _scope(witness)
        assert before is not None
        (town.root / "ESTOP.main").touch()
        witness.patrol()
        assert not wait_gone({before}, 10.0)
        for _ in range(3):
            assert witness.patrol().respawned == []
        assert _scope(witness) == (MemberState.BACKOFF, None, ())
        assert is_alive(spawned.agent), "the agent itself is for Gas Town, or its user, to stop"
        with pytest.raises(DeclarationError, match="an emergency stop stands"):
            witness.spawn("nux", workdir=tmp_path, agent="sleep 600", witness=False)
        (town.root / "ESTOP.main").unlink()
        assert witness.patrol().respawned == [{"polecat": "main/toast", "sidecar": "scope"}]
        _, after, _ = _scope(witness)
        assert after is not None
        assert after != before
        witness.nuke(["toast"])
