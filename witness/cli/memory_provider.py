"""The memory of ``sidecars.memory``, as a spawn asks for one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from witness.cli.context import open_journal
from witness.config.town import Town
from witness.journal import GroupState
from witness.launch.spawn_request import MemoryContext
from witness.names import GroupId


def memory_provider(agent: str, group: GroupId, workdir: Path, task: str) -> MemoryContext:
    """Begin a session of an agent's memory for a polecat; see ``witness.launch.spawn_request.Remember``.

    Raises:
        UsageError: the agent's name is not usable.
        WitnessError: the memory is out of reach.
    """
    from sidecars.memory.client_hooks import with_memory_hooks
    from sidecars.memory.paths import check_agent, find_root
    from sidecars.memory.sessions import briefing, environment

    check_agent(agent)
    root = find_root(workdir)

    def with_hooks(settings: Mapping[str, Any]) -> Mapping[str, Any]:
        return with_memory_hooks(settings, agent)

    with open_journal(Town.find(workdir)) as journal:

        def is_over(run: str) -> bool:
            known = journal.groups.get(run)
            return known is not None and known.state is GroupState.NUKED

        told = briefing(root, agent, task, group=group, is_over=is_over)
    return MemoryContext(told, environment(root, agent), with_hooks)
