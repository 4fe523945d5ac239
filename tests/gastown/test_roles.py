"""All of Gas Town's roles at work, its daemon too, with ours beside them: a day's routine touches nothing of theirs."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.gastown.observed import group, until_observed
from tests.gastown.real_town import RealPolecat, RealTown
from tests.waiting import until
from witness.api import Witness
from witness.launch import town_witness
from witness.process import ProcessId
from witness.process.table import identify, is_alive

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Day:
    """A town with everybody in it, and what is written down of the day."""

    town: RealTown
    witness: Witness
    polecat: RealPolecat
    own: ProcessId
    rows: dict[str, str]

    def sessions(self) -> dict[str, int]:
        """Gas Town's sessions with the process of each one's first pane."""
        with suppress(Exception):
            return {pane.session: pane.pid for pane in self.town.tmux.panes() if pane.session != "sh-scout"}
        return {}

    def supervisors(self) -> set[ProcessId]:
        """Our Witness and its fork server."""
        found = {town_witness.witness_process(self.town.town)}
        path = self.town.town.runtime / "forkserver.json"
        if path.exists():
            found.add(identify(int(json.loads(path.read_text())["pid"])))
        return {process for process in found if process}

    def do(
        self, what: str, act: Callable[[], object], *, ends: tuple[str, ...] = (), renews: tuple[str, ...] = ()
    ) -> None:
        """One thing of the day.

        Args:
            what: its name in the table.
            act: does it.
            ends: sessions of Gas Town's that the thing itself ends.
            renews: sessions that it starts, or starts anew.
        """
        before, ours = self.sessions(), self.supervisors()
        act()
        self.witness.patrol()
        after = self.sessions()
        lost = {name for name in before if name not in after} - set(ends)
        changed = {name for name in before if name in after and after[name] != before[name]} - {*renews, *ends}
        new = set(after) - set(before) - set(renews)
        assert (lost, changed, new) == (set(), set(), set()), what
        assert all(map(is_alive, ours)), f"{what}: our own were ended"
        assert is_alive(self.own), f"{what}: our own polecat's agent was ended"
        self.rows[what] = f"{len(after)} sessions of Gas Town's as it left them; ours live"

    def gt(self, *args: str) -> Callable[[], object]:
        return lambda: self.town.run("gt", *args, check=False, seconds=200)


@pytest.mark.timeout(900)
def test_a_days_routine_with_everybody_at_work(gastown: RealTown, witness: Witness) -> None:
    """Point 3."""
    for line in ("daemon start", "mayor start", "deacon start", "witness start shop", "refinery start shop",
                 "crew add max --rig shop", "crew start shop max"):  # fmt: skip
        gastown.run("gt", *line.split(), check=False, seconds=200)
    polecat = gastown.sling("--var", "sidecars=scope")
    until_observed(gastown, witness, polecat)
    spawned = witness.spawn(
        "scout", rig="shop", workdir=gastown.home, agent="sleep 3600", sidecars="scope", witness=False
    )
    gastown.ours("witness", "start")
    rows: dict[str, str] = {}
    try:
        day = Day(gastown, witness, polecat, spawned.agent, rows)
        there = day.sessions()
        assert {"hq-mayor", "hq-deacon", "sh-witness", "sh-refinery", "sh-crew-max", polecat.session} <= set(there)
        rows["start: daemon, mayor, deacon, witness, refinery, crew, a slung polecat"] = f"{len(there)} sessions"
        counted = {row["name"]: row for row in gastown.polecats()}
        assert set(counted) == {polecat.name, "scout"}, "no sidecar is counted"
        rows["gt polecat list"] = f"its own, and our own polecat as {counted['scout']}; no sidecar"
        day.do("gt nudge to each role", lambda: [day.gt("nudge", name, "hello", "--mode", "queue")() for name in
               ("mayor", "deacon", "shop/witness", "shop/refinery", "shop/crew/max", polecat.address)])  # fmt: skip
        day.do("gt mail send, gt mail check --inject", lambda: [
            day.gt("mail", "send", polecat.address, "-s", "Q", "-m", "?")(),
            polecat.run("gt", "mail", "check", "--inject", stdin="{}")])  # fmt: skip
        day.do("gt orphans procs kill -f", day.gt("orphans", "procs", "kill", "-f", "--rig", "shop"))
        day.do("gt doctor --fix --no-start", day.gt("doctor", "--fix", "--no-start"))
        day.do("gt estop", day.gt("estop", "-r", "test"))
        assert group(witness, polecat) is None, "under an emergency stop nobody is observed"
        day.do("gt thaw", day.gt("thaw"))
        until_observed(gastown, witness, polecat)
        day.do("gt crew restart", day.gt("crew", "restart", "max", "--rig", "shop"), renews=("sh-crew-max",))
        day.do("gt done", lambda: polecat.run("gt", "done", "--status", "DEFERRED"), ends=(polecat.session,))
        until(lambda: witness.patrol() and group(witness, polecat) is None, "the end", every=0.2)
        day.do(
            "gt down",
            day.gt("down"),
            ends=("hq-mayor", "hq-deacon", "hq-boot", "sh-witness", "sh-refinery", "sh-crew-max"),
        )
        day.do(
            "gt up",
            day.gt("up"),
            renews=("hq-mayor", "hq-deacon", "hq-boot", "sh-witness", "sh-refinery", "sh-crew-max"),
        )
    finally:
        gastown.ours("polecat", "nuke", "scout", check=False)
        gastown.ours("witness", "stop", check=False)
        gastown.run("gt", "down", check=False, seconds=200)
        gastown.run("gt", "dolt", "start", check=False)
        (ROOT / ".cache").mkdir(exist_ok=True)
        (ROOT / ".cache" / "gastown-roles.json").write_text(json.dumps(rows, indent=1))
        print(json.dumps(rows, indent=1))
    left = [process for process in gastown.processes() if "claude" in " ".join(_words(process))]
    assert not [process for process in left if "witness.daemon" in " ".join(_words(process))]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
