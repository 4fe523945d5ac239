"""Random kills while worktrees are made, judged and removed: ``python -m tests.chaos.worktrees --kills 200``.

Each round makes a polecat whose agent writes files into its worktree and, after each, a line into a ledger outside of
it. The process that spawns it, ends it, or patrols after its ``gt done`` is killed with SIGKILL at a random instant.
Then a patrol does what is left, and it must hold that

- every file in the ledger is there, byte for byte;
- every folder of a worktree is one that the journal knows, and git knows no other one;
- a worktree without work is gone once its polecat is, with its branch;
- no process of the round lives.

The totals are kept in a file after every round, so that a run that was broken off goes on where it was (``--state``).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import select
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.worktrees.conftest import make_repository, run_git
from witness import Town, Witness
from witness.errors import TownLockedError, WitnessError
from witness.journal import Intent, WorktreeState
from witness.process.table import Markers, read_table

_SETTINGS = (
    "containment: reaper\nstop_grace: 500ms\nspawn_settle: 10ms\ndone_settle: 0\nworktree: true\n"
    "setup: [\"sh -c 'echo laid > laid.log'\"]\n"
)
# Writes files until it is ended; what stands in the ledger was written whole before.
_AGENT = (
    "import os,sys,time\n"
    "ledger=open(sys.argv[1],'a')\n"
    "for n in range(int(sys.argv[2])):\n"
    "    path=os.path.abspath(f'work-{n}.txt')\n"
    "    open(path,'w').write(f'{path} {n}\\n')\n"
    "    ledger.write(path+'\\n'); ledger.flush()\n"
    "open(sys.argv[1]+'.ready','w').close()\n"
    "time.sleep(600)\n"
)
KINDS = ("spawn", "nuke", "done")


class Broken(AssertionError):
    """What must hold does not."""


class Rounds:
    """One town and one repository, and the rounds in them.

    Args:
        root: an empty folder.
        seed: of the chances.
    """

    def __init__(self, root: Path, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - repeatable on purpose
        self.repository = make_repository(root / "repo", {"a.txt": "a\n", ".gitignore": "*.log\n", "src/b.txt": "b\n"})
        self.town = Town.init(root / "town")
        (self.town.root / "settings").mkdir()
        (self.town.root / "settings" / "witness.yaml").write_text(_SETTINGS)
        self.ledgers = root / "ledgers"
        self.ledgers.mkdir()
        (root / "agent.py").write_text(_AGENT)
        self.agent = root / "agent.py"
        self.seconds: dict[str, float] = {}
        # How long each act takes when nobody kills it: the instants are drawn from that.
        for kind in KINDS:
            self.round(kind, kill=False)

    def round(self, kind: str, *, kill: bool = True) -> bool:
        """One polecat, one kill, one look; whether the kill came in time.

        Raises:
            Broken: something was lost, or left.
        """
        name = f"p{os.urandom(4).hex()}"
        ledger = self.ledgers / name
        files = self.chance.choice((0, 1, 5))
        command = shlex.join([sys.executable, "-S", "-I", str(self.agent), str(ledger), str(files)])

        def spawn() -> None:
            with Witness(self.town, environ={}) as witness:
                witness.spawn(name, workdir=self.repository, agent=command, sidecars="", witness=False)

        def nuke() -> None:
            with Witness(self.town, environ={}) as witness:
                witness.nuke([name])

        def patrol() -> None:
            with Witness(self.town, environ={}) as witness:
                witness.patrol()

        act = {"spawn": spawn, "nuke": nuke, "done": patrol}[kind]
        if kind != "spawn":
            spawn()
            ready = Path(f"{ledger}.ready")
            deadline = time.monotonic() + 30
            while not ready.exists():
                if time.monotonic() > deadline:
                    raise Broken(f"{name}: its agent did not come to work")
                select.select([], [], [], 0.005)
        if kind == "done":
            with Witness(self.town, environ={}) as witness:
                witness.journal.groups.set_intent(witness.find(name).id.run, Intent.DONE, time.monotonic(), "COMPLETED")
        limit = self.chance.uniform(0, self.seconds.get(kind, 1.0) * 1.1) if kill else 60.0
        began = time.monotonic()
        killed = _killed(act, limit)
        if not kill:
            self.seconds[kind] = time.monotonic() - began
        self._settle(name)
        self._look(name, ledger, files)
        return killed

    def _settle(self, name: str) -> None:
        """What the Witness would do next, and the end of what still lives."""
        for _ in range(10):
            with Witness(self.town, environ={}) as witness:
                # A program that the killed one was about to start holds its lock for a moment longer.
                with contextlib.suppress(TownLockedError):
                    witness.patrol()
                living = [group for group, _ in witness.polecats() if group.id.polecat == name]
                if not living and not witness.worktrees.pending():
                    return
                if not living:
                    continue
                if living[0].intent == "run" and living[0].state in ("RUNNING", "DEGRADED"):
                    witness.nuke([name])
                    return
            # Its spawner is dead, and its reaper may be about to report the agent.
            select.select([], [], [], 0.1)
        raise Broken(f"{name}: a patrol does not come to its end: {living}")

    def _look(self, name: str, ledger: Path, files: int) -> None:
        written = ledger.read_text().splitlines() if ledger.exists() else []
        for path in written:
            number = path.rpartition("-")[2].removesuffix(".txt")
            if not Path(path).is_file() or Path(path).read_text() != f"{path} {number}\n":
                raise Broken(f"{name}: {path} is lost")
        with Witness(self.town, environ={}) as witness:
            standing = witness.journal.worktrees.standing()
            runs = {group.id.run for group in witness.journal.groups.ended() if group.id.polecat == name}
        top = self.town.root / ".worktrees"
        known = {each.path for each in standing}
        there = {str(each) for each in (top / "main").glob("*")}
        if there != known:
            raise Broken(f"{name}: worktrees that stand: {there - known} unknown, {known - there} missing")
        listed = run_git(self.repository, "worktree", "list", "--porcelain").splitlines()
        of_git = {line.removeprefix("worktree ") for line in listed if line.startswith("worktree ")}
        if of_git != {*known, str(self.repository)}:
            raise Broken(f"{name}: git knows {of_git}, we know {known}")
        branches = set(run_git(self.repository, "branch", "--format=%(refname:short)").split())
        if branches != {"main", *(each.branch for each in standing)}:
            raise Broken(f"{name}: branches {branches}")
        if left := list((top / ".removed").iterdir()):
            raise Broken(f"{name}: half removed: {left}")
        for each in standing:
            if each.run in runs and (each.state is not WorktreeState.KEPT or not (written or _holds(each.path))):
                raise Broken(f"{name}: {each} stands without work")
        alive = [marker for marker in Markers().read(read_table()).values() if f"/{name}/" in marker]
        if alive:
            raise Broken(f"{name}: still alive: {alive}")
        with Witness(self.town, environ={}) as witness:
            for each in standing:  # so that the next round begins with none
                witness.journal.worktrees.set_discard(each.run)
            witness.worktrees.settle(patience=10.0)


def _holds(path: str) -> bool:
    """An agent that was ended between a file and its ledger has work that nobody was promised."""
    return any(Path(path).glob("work-*.txt"))


def _killed(act: Callable[[], None], seconds: float) -> bool:
    """Do it in a process of its own, and kill that after so long; whether it was still at it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            act()
            code = 0
        except (WitnessError, OSError):
            code = 3
        finally:
            os._exit(code)
    handle = os.pidfd_open(child)
    try:
        alive = not select.select([handle], [], [], seconds)[0]
        if alive:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    finally:
        os.close(handle)
    if not alive and os.waitstatus_to_exitcode(status) != 0:
        raise Broken(f"it failed by itself: {os.waitstatus_to_exitcode(status)}")
    return alive


def run(root: Path, kills: int, seed: int, state: Path | None = None) -> dict[str, int]:
    """So many kills, those of an earlier run of the same state included.

    Returns:
        How many rounds there were, and how many kills came in time, by kind.

    Raises:
        Broken: as ``Rounds``.
    """
    totals: dict[str, int] = json.loads(state.read_text()) if state and state.exists() else {}
    rounds = Rounds(root, seed + totals.get("rounds", 0))
    try:
        while sum(totals.get(kind, 0) for kind in KINDS) < kills:
            kind = rounds.chance.choice(KINDS)
            in_time = rounds.round(kind)
            totals["rounds"] = totals.get("rounds", 0) + 1
            totals[kind] = totals.get(kind, 0) + in_time
            if state:
                state.write_text(json.dumps(totals))
    finally:
        _end_all(rounds.town)
    return totals


def _end_all(town: Town) -> None:
    with Witness(town, environ={}) as witness:
        witness.end([group for group, _ in witness.polecats()])
        witness.stop()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--state", type=Path, default=Path(".cache/worktree-kills.json"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gt-kills-") as folder:
        totals = run(Path(folder), given.kills, given.seed, given.state)
    print(f"nothing was lost or left: {json.dumps(totals)}")


if __name__ == "__main__":
    main()
