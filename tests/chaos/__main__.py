"""``make chaos``: a town of ten polecats under random faults, and whether everything holds.

python -m tests.chaos [--seed N] [--faults N] [--report FILE] [--keep FOLDER] [--go-on]

A seed repeats the order of the faults, not their instants: real processes are not that obedient. Runs add up in the
report file. Where an invariant does not hold, the town's folder is kept, the seed and the step are said, and the exit
code is 1.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.chaos import clock, report
from tests.chaos.faults import Faults
from tests.chaos.invariants import Invariants
from tests.chaos.probe import Probe
from tests.chaos.town import POLECATS, ChaosTown
from witness.process.table import read_table

# So many faults before everything is looked at.
_BATCH = 100
_REPORT = Path(__file__).parent.parent.parent / ".cache" / "chaos.json"
_KEPT = ("PATH", "LANG", "LC_ALL", "USER", "LOGNAME", "SHELL", "TERM", "LD_PRELOAD", "CHAOS_CLOCK")
_CLONE_NEWNS, _MS_REC, _MS_PRIVATE = 0x20000, 0x4000, 1 << 18


def own_mounts() -> bool:
    """Go into a mount namespace of our own, so that a small disk can be had and nothing of it stays."""
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0 or libc.unshare(_CLONE_NEWNS) != 0:
        return False
    return bool(libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None) == 0)


def chaos(seed: int, faults: int, kept: Path, path: Path, *, go_on: bool, dated: bool) -> int:
    """One run; returns the number of broken invariants."""
    run = report.RunReport(f"{seed}-{os.getpid()}-{int(time.time())}", seed, report.commit())
    mount = own_mounts()
    if not mount:
        run.skipped.append("full disk: no mount namespace")
    if not dated:
        run.skipped.append("jumps of the clock: no compiler")
    base = Path(tempfile.mkdtemp(prefix="gt-chaos-"))
    dice = random.Random(seed)  # noqa: S311 - repeatable, on purpose
    began = time.monotonic()
    town = ChaosTown(base, mount)
    blows, broken = Faults(town, dice, dated=dated), 0
    probe = Probe(town.town, town.facts)
    town.decoys["who asks the Witness"] = probe.identity()
    look = Invariants(town, blows, probe)
    try:
        people(town)
        while blows.done.total() < faults and (go_on or not broken):
            for _ in range(min(_BATCH, faults - blows.done.total())):
                blows.blow()
                blows.let_go()
                blows.whole_command()
            over = blows.done.total() >= faults
            broken += judge(town, blows, look, run, kept, over=over)
            run.seconds = time.monotonic() - began
            sums = report.add(path, run)
            said = {name: count for name, count in run.broken.items() if count}
            print(
                f"seed {seed}: {blows.done.total()} faults in {run.seconds:.0f} s, {said or 'everything holds'};"
                f" {sums['faults']} in all",
                flush=True,
            )
            if not over:
                town.leave_room()
                people(town)
    finally:
        town.close()
        shutil.rmtree(base, ignore_errors=True)
    return broken


def people(town: ChaosTown, polecats: int = POLECATS) -> None:
    """So many polecats again, and a decoy that bears the marker of one."""
    names = {group.id.polecat for group, _ in town.living()}
    for number in range(polecats):
        if f"p{number}" not in names:
            town.call(*town.spawn_words(f"p{number}"))
        if number % POLECATS == POLECATS - 1:
            town.finish_commands()
    for group, _ in town.living()[:1]:
        town.mark_a_decoy(group)


def judge(town: ChaosTown, blows: Faults, look: Invariants, run: report.RunReport, kept: Path, *, over: bool) -> int:
    """Let it come to rest and look; at the end of the run everything is ended first. Returns how much is broken."""
    blows.story.append(f"{time.monotonic():.3f} -- settling after {blows.done.total()}")
    stuck = look.settle()
    blows.age_claims()
    if over:
        town.attend(3.0)
        town.call("polecat", "nuke", "--all", wait=True)
        town.call("witness", "patrol", wait=True)
        if town.living():
            stuck.append(f"nuke --all left {[group.id.address for group, _ in town.living()]}")
    try:
        broken = look.broken(over=over)
    except Exception:  # noqa: BLE001 - what cannot be judged does not hold
        broken = {"stuck": [traceback.format_exc()]}
    if stuck:
        broken.setdefault("stuck", []).extend(stuck)
    run.settles += 1
    run.faults, run.nudges, run.polecats = dict(blows.done), len(blows.sent), len(town.runs())
    run.questions, run.crowded, run.longest = look.answers, look.crowded, look.longest
    for name, lines in broken.items():
        run.broken[name] = run.broken.get(name, 0) + len(lines)
        for line in lines:
            print(f"  {name}: {line}", flush=True)
    if broken:
        keep(town, blows, run, broken, kept)
    return sum(map(len, broken.values()))


def keep(town: ChaosTown, blows: Faults, run: report.RunReport, broken: dict[str, list[str]], kept: Path) -> None:
    """Keep the town's folder, what was done to it, and who lives."""
    folder = kept / f"seed-{run.seed}-step-{blows.done.total()}-{run.id}"
    shutil.copytree(town.base, folder, symlinks=True, ignore=special, dirs_exist_ok=True)
    lines = [f"{name}: {line}" for name, each in broken.items() for line in each]
    (folder / "broken").write_text("\n".join([f"seed {run.seed}, step {blows.done.total()}, {run.commit}", *lines]))
    (folder / "story").write_text("\n".join(blows.story))
    table = read_table()
    (folder / "processes").write_text(
        "\n".join(f"{pid} {row.parent} {row.name!r}" for pid, row in sorted(table.items()))
    )
    print(f"  kept: {folder}; again: make chaos ARGS='--seed {run.seed} --faults {blows.done.total()}'", flush=True)


def special(folder: str, names: list[str]) -> set[str]:
    """What cannot be copied, or is too large to keep."""
    paths = [(name, Path(folder) / name) for name in names]
    return {
        name
        for name, path in paths
        if not path.is_symlink()
        and ((path.is_file() and path.stat().st_size > 1 << 26) or not (path.is_file() or path.is_dir()))
    }


def leave_environment() -> None:
    """Take nothing along from whoever calls, and end in order when told to."""
    for name in set(os.environ) - set(_KEPT):
        del os.environ[name]
    os.chdir(Path(__file__).parent.parent.parent)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))


def main() -> int:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--report", type=Path, default=_REPORT, help="where the totals are kept (default: %(default)s)")
    parser.add_argument("--keep", type=Path, default=_REPORT.with_name("chaos-kept"), help="for towns that broke")
    parser.add_argument("--go-on", action="store_true", help="do not stop at the first broken invariant")
    given = parser.parse_args()
    leave_environment()
    words = [sys.executable, "-m", "tests.chaos", *sys.argv[1:], "--seed", str(given.seed)]
    dated = clock.with_own_date(words)
    try:
        broken = chaos(given.seed, given.faults, given.keep, given.report, go_on=given.go_on, dated=dated)
    finally:
        clock.forget()
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
