"""Putting a sidecar together from its assignment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sidecars.inject.deliver import Deliverer
from sidecars.inject.gate import Gates
from sidecars.judge.rules import RulesJudge
from sidecars.judge.verdict import Judge
from sidecars.material import Material, gather
from sidecars.observer import Observer
from sidecars.sidecar_type import SidecarType
from sidecars.type_files import load_type
from witness.assignment import Assignment
from witness.clock import Clock
from witness.journal import Journal
from witness.settings import Settings, load_settings


@dataclass(frozen=True, slots=True)
class Parts:
    """What a sidecar consists of once its declaration is read.

    Args:
        kind: its type, all layers put together.
        material: its context.
        settings: the town's and the rig's.
        judge: who judges.
    """

    kind: SidecarType
    material: Material
    settings: Settings
    judge: Judge

    def observer(self, assignment: Assignment, journal: Journal, clock: Clock, aloud: bool = True) -> Observer:
        """The sidecar's mind over a journal.

        Args:
            assignment: whom it observes.
            journal: where decisions go.
            clock: where the time comes from.
            aloud: whether signals are queued.
        """
        gates = Gates(self.kind, assignment, self.settings, journal, clock)
        deliverer = Deliverer(assignment, clock) if aloud else None
        return Observer(
            self.kind, assignment, judge=self.judge, gates=gates, journal=journal, clock=clock, deliverer=deliverer
        )


def assemble(assignment: Assignment) -> Parts:
    """Read everything that a sidecar is declared by.

    Raises:
        UsageError: the type is unknown, or a file of its declaration is missing or wrong.
    """
    town = Path(assignment.town) if assignment.town else None
    workdir = Path(assignment.workdir)
    kind = load_type(assignment.type, town, assignment.group.rig, workdir, assignment.overrides)
    settings = load_settings(town, assignment.group.rig) if town else Settings()
    material = gather(kind, assignment)
    return Parts(kind, material, settings, make_judge(kind, material))


def make_judge(kind: SidecarType, material: Material) -> Judge:
    """The judge that a type asks for."""
    return RulesJudge(kind.rules, material)
