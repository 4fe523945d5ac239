"""Everything that can be killed is killed, in an order that a seed repeats; then nothing may be left or doubled."""

from __future__ import annotations

import os
import random
import select
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.programs import BY_NAME, Record, recording
from tests.real.conftest import Place, kill_and_wait
from witness.errors import WitnessError
from witness.journal import GroupState, MemberKind
from witness.launch import town_witness
from witness.process import ProcessId
from witness.process.table import command_line, read_table

pytestmark = pytest.mark.real

_KINDS = ("daemon-renamed", "twins-apart", "chain-apart", "stubborn", "late-daemon", "nohup-jobs")
_SETTINGS = """
stop_grace: 300ms
spawn_settle: 50ms
patrol_interval: 2s
backoff_base: 50ms
intensity: 50
done_settle: 0s
"""
_STEPS = 40
# Between two blows, so that some hit a Witness at work and some one at rest.
_LONGEST_PAUSE = 0.15


class Chaos:
    """One run of it."""

    def __init__(self, place: Place, dice: random.Random) -> None:
        self.place, self.dice = place, dice
        self.said: list[str] = []

    def step(self) -> None:
        """One blow."""
        blow = self.dice.choice(
            (self.witness_dies, self.witness_hangs, self.fork_server_dies, self.sidecar_dies, self.sidecar_dies,
             self.reaper_dies, self.agent_dies, self.is_done, self.is_nuked, self.patrol, self.patrol)
        )  # fmt: skip
        self.said.append(blow.__name__)
        try:
            blow()
        except WitnessError as error:
            # Two at the same work: the one says so in a line and leaves it to the other.
            self.said.append(f"  {type(error).__name__}: {error}")
        select.select([], [], [], self.dice.random() * _LONGEST_PAUSE)

    def _one(self, *kinds: MemberKind) -> ProcessId | None:
        found = [
            member.process
            for _, members in self.place.witness.polecats()
            for member in members
            if member.kind in kinds and member.process
        ]
        return self.dice.choice(found) if found else None

    def _kill(self, process: ProcessId | None) -> None:
        if process:
            kill_and_wait((process.pid, process.started))

    def witness_dies(self) -> None:
        self._kill(town_witness.witness_process(self.place.town))
        if self.dice.random() < 0.7:
            self.place.witness.start()

    def witness_hangs(self) -> None:
        process = town_witness.witness_process(self.place.town)
        if process:
            os.kill(process.pid, signal.SIGSTOP)
            select.select([], [], [], 0.2)
            os.kill(process.pid, signal.SIGCONT)

    def fork_server_dies(self) -> None:
        self._kill(self.place.witness._reconciler.pool.process())

    def sidecar_dies(self) -> None:
        self._kill(self._one(MemberKind.SIDECAR))

    def reaper_dies(self) -> None:
        if self.dice.random() < 0.4:
            self._kill(self._one(MemberKind.REAPER))

    def agent_dies(self) -> None:
        if self.dice.random() < 0.4:
            self._kill(self._one(MemberKind.AGENT))

    def is_done(self) -> None:
        groups = self.place.witness.polecats()
        if groups and self.dice.random() < 0.5:
            self.place.witness.done(self.dice.choice(groups)[0].id)

    def is_nuked(self) -> None:
        groups = self.place.witness.polecats()
        if groups and self.dice.random() < 0.5:
            self.place.witness.end([self.dice.choice(groups)[0]])

    def patrol(self) -> None:
        self.place.witness.patrol()


def sidecars_of(place: Place) -> Counter[str]:
    """How many processes there are of each sidecar, by what they call themselves."""
    runs = {folder.name for folder in (place.town.runtime / "runs").glob("*")}
    titles = (command_line(row.process) for row in read_table().values() if not row.defunct)
    return Counter(
        title for title in titles if title.startswith("gt-sidecar ") and title.split()[1].rpartition("/")[2] in runs
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.timeout(150)
def test_after_chaos_nothing_is_left_and_nothing_is_doubled(
    seed: int, make_place: Callable[..., Place], tmp_path: Path
) -> None:
    place = make_place(settings=_SETTINGS)
    chaos = Chaos(place, random.Random(seed))  # noqa: S311
    with ExitStack() as stack:
        records: list[Record] = []
        for kind in _KINDS:
            folder = tmp_path / kind
            folder.mkdir()
            records.append(stack.enter_context(recording(folder)))
            argv = BY_NAME[kind].argv(records[-1].path)
            place.spawn(kind, argv, daemon=True, sidecars="scope")
            records[-1].wait_stands()
        place.witness.patrol()
        for _ in range(_STEPS):
            chaos.step()
        try:
            settle(place)
            doubled = {title: count for title, count in sidecars_of(place).items() if count > 1}
            assert not doubled
            groups = [group for group, _ in place.witness.polecats()]
            place.witness.end(groups)
            place.witness.patrol()
            assert place.witness.polecats() == []
            assert [record.survivors() for record in records] == [set()] * len(records)
            assert not place.marked()
            assert not sidecars_of(place)
            assert place.sessions() == []
        except AssertionError:
            print(f"seed {seed}:", *chaos.said, sep="\n  ")
            raise


def settle(place: Place) -> None:
    """Let the Witness finish: every group is whole, or is no more."""
    place.witness.start()
    quiet = (GroupState.RUNNING, GroupState.NUKED)
    for _ in range(100):
        report = place.witness.patrol()
        states = {group.state for group, _ in place.witness.polecats()}
        if states <= set(quiet):
            return
        select.select([], [], [], 0.1)
    raise AssertionError(f"the groups do not come to rest: {place.witness.polecats()}, {report}")
