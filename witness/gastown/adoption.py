"""Giving sidecars to a polecat that Gas Town has started."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from witness.clock import Clock
from witness.config.town import Town
from witness.declare.molecule import Molecule
from witness.declare.sidecar_spec import ResolvedSidecars, resolve_specs
from witness.declare.source import Source
from witness.errors import NotFoundError
from witness.gastown.bead_lookup import HookedBead
from witness.gastown.follow_plan import ObservedPolecat
from witness.journal import Group, GroupState, Journal, RunState
from witness.launch.followed_session import record, show_hooks_the_way
from witness.names import GroupId
from witness.trust.settings import trusted_settings


@dataclass(frozen=True, slots=True)
class Declared:
    """The sidecars that a polecat's work asks for.

    Args:
        sidecars: them; empty when none are asked for.
        molecule: the file that declares them, empty when none does.
        variables: the molecule's values.
    """

    sidecars: ResolvedSidecars = field(default_factory=ResolvedSidecars)
    molecule: str = ""
    variables: Mapping[str, str] | None = None


def declared_for(town: Town, sighting: ObservedPolecat, bead: HookedBead) -> Declared:
    """What ``gt sling --var``, the formula and the rig's settings say, the first that says anything.

    Raises:
        DeclarationError: it is wrong, or names types or files that are not there.
    """
    workdir = Path(sighting.workdir)
    given = {"issue": bead.id, **bead.attachment.variables} if bead.id else dict(bead.attachment.variables)
    text, source, path = "", Source("settings/witness.yaml", key="sidecars"), ""
    if "sidecars" in given:
        # Whatever is wrong with the formula: who is named by hand observes.
        text, source = given["sidecars"], Source(f"bead {bead.id}", key="attached_vars.sidecars")
    elif (molecule := _attached(town, bead, workdir)) is not None and "sidecars" in molecule.declared:
        text, source, path = molecule.sidecars(given), molecule.sidecars_source(given), str(molecule.path)
        given = molecule.variables(given)
    else:
        text = trusted_settings(town.root, sighting.rig).sidecars
    return Declared(resolve_specs(text, source, town=town, rig=sighting.rig, workdir=workdir), path, given)


def _attached(town: Town, bead: HookedBead, workdir: Path) -> Molecule | None:
    """The attached formula; None when it is within Gas Town's own program, where nobody else can read it."""
    if not bead.attachment.formula:
        return None
    try:
        return Molecule.of_gas_town(bead.attachment.formula, town, workdir)
    except NotFoundError:
        return None


def adopt(
    town: Town, journal: Journal, clock: Clock, sighting: ObservedPolecat, bead: HookedBead, declared: Declared
) -> str:
    """Record a followed group; the patrol starts its sidecars in the same round.

    Returns:
        Its run.

    Raises:
        UsageError: a polecat of that name is on record as living.
    """
    group = Group(
        id=GroupId(sighting.rig, sighting.polecat, uuid.uuid4().hex),
        session=sighting.session,
        state=GroupState.SPAWNING,
        boot=clock.boot,
        spawned_at=clock.monotonic(),
        created=clock.wall(),
        workdir=sighting.workdir,
        molecule=declared.molecule,
        run_state=RunState(
            followed=True,
            pane=sighting.pane,
            task=bead.task,
            bead=bead.id,
            variables=dict(declared.variables or {}),
        ),
    )
    # A patrol by cron knows no TMUX_TMPDIR, and would take a session that it does not find for ended.
    town.keep_tmux_place()
    record(town, journal, clock, group, sighting.agent, declared.sidecars)
    show_hooks_the_way(town, group, sighting.agent, trusted_settings(town.root, sighting.rig))
    return group.id.run
