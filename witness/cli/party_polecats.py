"""A party's agents as polecats in tmux."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from witness.api import Witness
from witness.clock import Clock
from witness.journal import GroupState
from witness.launch.spawn_request import MemoryContext, SpawnRequest
from witness.names import GroupId

if TYPE_CHECKING:
    from sidecars.party.party import Party
    from sidecars.party.turn_mailbox import Table

_TASK = (
    "You take part in a party of agents. Run `gt party turn`: it waits for your turn and prints what is asked of you"
    " and how to answer. `gt party answer` takes your answer and prints your next turn. Go on until it says that the"
    " party is over. Change no files."
)
# An agent that has heard that the party is over needs this long to say that it is done.
_FAREWELL = 20.0
_PAUSE = 0.25
_GONE = (GroupState.ZOMBIE, GroupState.NUKING, GroupState.NUKED)


class Guests:
    """The polecats of a party, from their spawn to the proof that they are gone.

    Args:
        witness: who spawns and ends them.
        party: the party.
        briefings: each agent's.
        table: where they are asked.
        root: the project whose memories they have.
        workdir: where they work.
        command: the agent's command, empty for the default.
        clock: for the farewell.
    """

    def __init__(
        self,
        witness: Witness,
        party: Party,
        briefings: Mapping[str, str],
        table: Table,
        *,
        root: Path,
        workdir: Path,
        command: str,
        clock: Clock,
    ) -> None:
        self._witness, self._party, self._briefings, self._table = witness, party, briefings, table
        self._root, self._workdir, self._command, self._clock = root, workdir, command, clock
        self._runs: dict[str, str] = {}

    def __enter__(self) -> Self:
        try:
            for agent in self._party.agents:
                self._runs[agent] = self._witness.spawn_request(self._order(agent)).group.run
        except BaseException:
            self._leave(0.0)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(_FAREWELL if kind is None else 0.0)

    def alive(self, agent: str) -> bool:
        """Whether an agent's polecat is still there."""
        group = self._witness.journal.groups.get(self._runs[agent])
        return group is not None and group.state not in _GONE

    def _leave(self, patience: float) -> None:
        self._table.close()
        deadline = self._clock.monotonic() + patience
        while any(map(self.alive, self._runs)) and self._clock.monotonic() < deadline:
            time.sleep(_PAUSE)
        groups = [self._witness.journal.groups.get(run) for run in self._runs.values()]
        self._witness.end([group for group in groups if group is not None and group.state is not GroupState.NUKED])

    def _order(self, agent: str) -> SpawnRequest:
        return SpawnRequest(
            polecat_name(agent),
            workdir=self._workdir,
            task=_TASK,
            agent=self._command,
            memory=agent,
            memory_provider=self._memory_provider,
        )

    def _memory_provider(self, agent: str, group: GroupId, workdir: Path, task: str) -> MemoryContext:
        from sidecars.memory.paths import SESSION_VARIABLE
        from sidecars.memory.sessions import environment
        from sidecars.party.turn_mailbox import AGENT_VARIABLE, PARTY_VARIABLE

        own = {PARTY_VARIABLE: self._party.id, AGENT_VARIABLE: agent, SESSION_VARIABLE: self._party.id}
        # The end of the party saves the memories, so the client's own end need not.
        return MemoryContext(self._briefings[agent], {**environment(self._root, agent), **own}, _unchanged)


def _unchanged(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    return settings


def polecat_name(agent: str) -> str:
    """The polecat of an agent: tmux would read a dot as a pane."""
    return agent.replace(".", "-")
