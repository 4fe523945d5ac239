"""A session that we have not started, Gas Town's or a person's: the record of its run, and how its hooks find it.

Its client bears no variable of ours, so a file shows its hooks where its events go:

- Gas Town's: ``<town>/.runtime/witness/followed/SESSION``, which ``gt_hook.py`` reads (spool, queue, wait).
- a person's: ``followed/PID-START`` in the user's state folder, named after the client's process, which the plugin's
  ``run.sh`` reads: the interpreter, the folder of our hooks, the spool, the queue, the wait, and 1 for a line above the
  prompt, one a line.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from witness.agents.channels import MOD_SIGN
from witness.agents.hook_entries import interpreter
from witness.clock import Clock
from witness.config.resources import hooks_dir
from witness.config.settings import Settings
from witness.config.town import Town
from witness.declare.sidecar_spec import ResolvedSidecars
from witness.errors import UsageError
from witness.files import clear_place, make_folder, read_text, replace_file
from witness.journal import Group, Journal, Member, MemberKind, MemberState
from witness.launch.pane import make_run_dir
from witness.process import ProcessId
from witness.trust.pins import state_folder

FOLLOWED = "followed"


def record(
    town: Town, journal: Journal, clock: Clock, group: Group, agent: ProcessId, sidecars: ResolvedSidecars
) -> None:
    """Record a followed group; the next look of the Witness starts its sidecars.

    Args:
        town, journal, clock: where.
        group: the run, SPAWNING.
        agent: the client's process.
        sidecars: what observes it.

    Raises:
        UsageError: a polecat of that name is on record as living.
    """
    run = group.id.run
    make_run_dir(town.run_dir(run))
    with journal.transaction():
        journal.groups.add(group)
        journal.members.add(Member(run, "agent", MemberKind.AGENT, MemberState.RUNNING, agent, since=clock.monotonic()))
        for spec in sidecars.specs:
            journal.members.add(Member(run, spec.name, MemberKind.SIDECAR, type=spec.type, argument=spec.argument))
        for name, definition in sidecars.definitions.items():
            journal.definitions.fix(run, name, definition.digest, definition.to_json())
        journal.note(
            clock.wall(),
            "followed",
            run,
            polecat=group.id.address,
            bead=group.run_state.bead,
            types=journal.definitions.digests(run),
            withheld=list(sidecars.withheld),
        )


def show_hooks_the_way(town: Town, group: Group, agent: ProcessId, settings: Settings) -> None:
    """Leave the file from which this session's hooks know where its events go.

    Raises:
        OSError: it cannot be written.
        UsageError: a path of the town has a line break, and the file has a line for each.
    """
    base, name = (
        (state_folder(), f"{agent.pid}-{agent.started}")
        if group.run_state.by_person
        else (town.make_runtime(), group.session)
    )
    pointer = base / FOLLOWED / name
    lines = [
        str(town.run_dir(group.id.run) / "spool"),
        str(town.queue_dir(group.session)),
        str(round(settings.hook_wait * 1000)),
    ]
    if group.run_state.by_person:
        lines = [interpreter(), str(hooks_dir()), *lines, str(int(settings.prompt_line))]
    if any("\n" in line for line in lines):
        raise UsageError(f"the path of the town {str(town.root)!r} has a line break: rename it")
    make_folder(pointer.parent, below=next(place for place in (base, *base.parents) if place.is_dir()))
    replace_file(pointer, "".join(f"{line}\n" for line in lines), durable=False, below=base)


def hide_from_hooks(town: Town, group: Group) -> None:
    """Take that file away again, unless it leads to a later run already; a person's folder goes with its last one."""
    spool = town.run_dir(group.id.run) / "spool"
    persons = state_folder() / FOLLOWED
    with suppress(OSError):
        # The mod's server sees that its sign is gone, and ends.
        clear_place(spool / MOD_SIGN)
    # A run that was recorded anew does not know who had started it.
    for base, pointer in (
        (town.runtime, town.runtime / FOLLOWED / group.session),
        *((state_folder(), each) for each in _entries(persons)),
    ):
        with suppress(OSError, ValueError):
            if str(spool) in read_text(pointer, below=base).split("\n"):
                pointer.unlink()
    with suppress(OSError):
        persons.rmdir()


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
