"""``Witness`` for programs that run an event loop: the same calls, each in a thread of the loop's pool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any, Self

from witness.api.events import WitnessEvent
from witness.api.messages import NudgeResult
from witness.api.witness import NukeResult, ProcessInfo, Witness
from witness.config.town import Town
from witness.journal import Decision, Group, GroupState, Member
from witness.names import GroupId
from witness.supervise.reconcile import PatrolReport
from witness.supervise.spawn import SpawnResult


class AsyncWitness:
    """Supervises one town. An asynchronous context manager.

    Args:
        town: the town, from ``Town.find()`` or ``Town.at(path)``.
        options: the other arguments of ``Witness``.

    Attributes:
        witness: the ``Witness`` behind it, whose methods may be called beside these.

    Examples:
        >>> import asyncio
        >>> from witness.testing import scratch_town
        >>> async def names(town):
        ...     async with AsyncWitness(town) as witness:
        ...         return [group.id.polecat for group, members in await witness.polecats()]
        >>> with scratch_town() as other:
        ...     asyncio.run(names(other.town))
        []
    """

    def __init__(self, town: Town, **options: Any) -> None:
        self.witness = Witness(town, **options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.witness.close)

    async def spawn(self, polecat: str, **arguments: Any) -> SpawnResult:
        """As ``Witness.spawn``."""
        return await asyncio.to_thread(self.witness.spawn, polecat, **arguments)

    async def nuke(self, names: Sequence[str], *, dry_run: bool = False) -> list[NukeResult]:
        """As ``Witness.nuke``."""
        return await asyncio.to_thread(self.witness.nuke, names, dry_run=dry_run)

    async def patrol(self) -> PatrolReport:
        """As ``Witness.patrol``."""
        return await asyncio.to_thread(self.witness.patrol)

    async def find(self, name: str, *, ended: bool = False) -> Group:
        """As ``Witness.find``."""
        return await asyncio.to_thread(self.witness.find, name, ended=ended)

    async def polecats(self, rig: str = "") -> list[tuple[Group, list[Member]]]:
        """As ``Witness.polecats``."""
        return await asyncio.to_thread(self.witness.polecats, rig)

    async def processes(self, name: str) -> list[ProcessInfo]:
        """As ``Witness.processes``."""
        return await asyncio.to_thread(self.witness.processes, name)

    async def log(self, name: str, *, last: int = 1000) -> list[Decision]:
        """As ``Witness.log``."""
        return await asyncio.to_thread(self.witness.log, name, last=last)

    async def peek(self, name: str, *, lines: int = 100) -> str:
        """As ``Witness.peek``."""
        return await asyncio.to_thread(self.witness.peek, name, lines=lines)

    async def nudge(
        self, name: str, message: str, *, mode: str = "queue", priority: str = "normal", sender: str = "human"
    ) -> NudgeResult:
        """As ``Witness.nudge``."""
        return await asyncio.to_thread(self.witness.nudge, name, message, mode=mode, priority=priority, sender=sender)

    async def done(self, group: GroupId, status: str = "COMPLETED") -> None:
        """As ``Witness.done``."""
        await asyncio.to_thread(self.witness.done, group, status)

    async def wait(
        self, name: str, until: Collection[GroupState] = (GroupState.NUKED,), *, seconds: float | None = None
    ) -> Group:
        """As ``Witness.wait``."""
        return await asyncio.to_thread(self.witness.wait, name, until, seconds=seconds)

    async def events(self, *, seconds: float | None = None) -> AsyncIterator[WitnessEvent]:
        """As ``Witness.events``."""
        stream, end = self.witness.events(seconds=seconds), object()
        while (event := await asyncio.to_thread(next, stream, end)) is not end:
            yield event  # type: ignore[misc]
