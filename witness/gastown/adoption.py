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
from witness.files import make_folder, read_text, replace_file
from witness.gastown.bead_lookup import HookedBead
from witness.gastown.follow_plan import FOLLOWED, ObservedPolecat
from witness.journal import Group, GroupState, Journal, Member, MemberKind, MemberState, RunState
from witness.launch.pane import make_run_dir
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
    molecule = _attached(town, bead, workdir)
    if "sidecars" in given:
        text, source = given["sidecars"], Source(f"bead {bead.id}", key="attached_vars.sidecars")
    elif molecule is not None and "sidecars" in molecule.declared:
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
    group = GroupId(sighting.rig, sighting.polecat, uuid.uuid4().hex)
    settings = trusted_settings(town.root, sighting.rig)
    make_run_dir(town.run_dir(group.run))
    now = clock.monotonic()
    with journal.transaction():
        journal.groups.add(
            Group(
                id=group,
                session=sighting.session,
                state=GroupState.SPAWNING,
                boot=clock.boot,
                spawned_at=now,
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
        )
        journal.members.add(
            Member(group.run, "agent", MemberKind.AGENT, MemberState.RUNNING, sighting.agent, since=now)
        )
        for spec in declared.sidecars.specs:
            journal.members.add(
                Member(group.run, spec.name, MemberKind.SIDECAR, type=spec.type, argument=spec.argument)
            )
        for name, definition in declared.sidecars.definitions.items():
            journal.definitions.fix(group.run, name, definition.digest, definition.to_json())
        journal.note(
            clock.wall(),
            "followed",
            group.run,
            polecat=group.address,
            bead=bead.id,
            types=journal.definitions.digests(group.run),
            withheld=list(declared.sidecars.withheld),
        )
    _show_hooks_the_way(town, group.run, sighting.session, settings.hook_wait)
    return group.run


def _pointer(town: Town, session: str) -> Path:
    return town.runtime / FOLLOWED / session


def _show_hooks_the_way(town: Town, run: str, session: str, wait: float) -> None:
    """Leave a file from which the hooks of this session know where its events go: they were started without us."""
    pointer = _pointer(town, session)
    make_folder(pointer.parent, below=town.make_runtime())
    text = f"{town.run_dir(run) / 'spool'}\n{town.queue_dir(session)}\n{round(wait * 1000)}\n"
    replace_file(pointer, text, durable=False, below=town.runtime)


def hide_from_hooks(town: Town, group: Group) -> None:
    """Take that file away again, unless it leads to a later run already."""
    pointer = _pointer(town, group.session)
    try:
        if read_text(pointer, below=town.runtime).partition("\n")[0] == str(town.run_dir(group.id.run) / "spool"):
            pointer.unlink()
    except (OSError, ValueError):
        return
