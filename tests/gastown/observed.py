"""What our Witness has on record of a real town's polecat."""

from __future__ import annotations

from tests.gastown.real_town import RealPolecat, RealTown
from tests.waiting import until
from witness.api import Witness
from witness.journal import Group, MemberKind, MemberState
from witness.process import ProcessId


def group(witness: Witness, polecat: RealPolecat) -> Group | None:
    return next((g for g in witness.journal.groups.living() if g.id.address == polecat.address), None)


def scope(witness: Witness, group: Group) -> ProcessId | None:
    (member,) = [m for m in witness.journal.members.of(group.id.run) if m.kind is MemberKind.SIDECAR]
    return member.process if member.state is MemberState.RUNNING else None


def until_observed(gastown: RealTown, witness: Witness, polecat: RealPolecat) -> ProcessId:
    def seen() -> ProcessId | None:
        assert witness.patrol().errors == []
        found = group(witness, polecat)
        return scope(witness, found) if found else None

    # Only a patrol finds it.
    found = until(seen, "the sidecar to observe", 60, below=gastown.agents, every=0.2)
    assert found is not None
    return found
