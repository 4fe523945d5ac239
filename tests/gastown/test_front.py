"""Our ``gt`` before the real one: the same words, shapes and codes, whatever state we are in, and what that costs."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.gastown.real_town import RealPolecat, RealTown

ROOT = Path(__file__).resolve().parents[2]
#: What changes between two calls of the same program.
_MOVES = re.compile(r"\d{4}-\d\d-\d\d[ T][\d:.]+Z?|\d+(\.\d+)?(ms|s|m| [a-z]+ ago)|[\d.]+ ?[KMGT]i?B|pid \d+|PID \d+")


@pytest.fixture(scope="module")
def polecat(gastown: RealTown) -> RealPolecat:
    """A polecat that nobody observes."""
    return gastown.sling()


def _both(town: RealTown, *args: str, cwd: Path | None = None) -> list[tuple[int, str, str]]:
    """(exit code, stdout, stderr) of the real gt, and of ours that stands before it."""
    front = {"PATH": f"{Path(sys.executable).parent}:{town.environment['PATH']}"}
    found = []
    for more in ({}, front):
        done = town.run("gt", *args, check=False, env=more, cwd=cwd)
        found.append((done.returncode, _MOVES.sub("…", done.stdout), _MOVES.sub("…", done.stderr)))
    return found


@pytest.mark.parametrize(
    "line",
    [
        "--version", "--help", "help polecat", "version", "polecat --help", "polecat list shop --json",
        "polecat list --all --json", "polecat list shop", "polecat nuke --help", "polecat nuke shop --all --dry-run",
        "status --json --fast", "doctor --help", "init --help", "init", "nudge --help", "peek --help", "done --help",
        "witness status shop --json", "witness --help", "hooks --help", "hooks list", "molecule --help", "mol status",
        "completion bash", "nosuchcommand", "polecat status shop/nobody", "peek shop/nobody", "done",
    ],
)  # fmt: skip
def test_what_gas_town_has_answers_as_its_own_does(gastown: RealTown, polecat: RealPolecat, line: str) -> None:
    """G5: scripts and agents that expect Gas Town's words and shapes get them."""
    real, ours = _both(gastown, *line.split())
    assert ours == real


def test_a_polecats_own_shapes(gastown: RealTown, polecat: RealPolecat) -> None:
    for args in (["polecat", "status", polecat.address, "--json"], ["peek", polecat.address, "5"]):
        real, ours = _both(gastown, *args)
        assert ours == real
    mine = gastown.run(
        str(Path(sys.executable).with_name("gt")), "polecat", "list", "--witness", "--json", cwd=gastown.root
    )
    assert all("sidecars" in row for row in json.loads(mine.stdout))


@contextmanager
def _harmed(gastown: RealTown, what: str) -> Iterator[None]:
    """One of the faults that a town can have, for as long as ``with`` lasts."""
    runtime = gastown.root / ".runtime" / "witness"
    runtime.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = runtime / "witness.db" if what == "journal" else gastown.root / "settings" / "witness.yaml"
    kept = {each: each.read_bytes() for each in (path, Path(f"{path}-wal"), Path(f"{path}-shm")) if each.exists()}
    path.write_bytes(b"no database, and no settings: [" * 200)
    try:
        yield
    finally:
        path.unlink()
        for each, data in kept.items():
            each.write_bytes(data)


@pytest.mark.parametrize("what", ["journal", "settings"])
def test_gas_towns_own_is_served_whatever_state_we_are_in(gastown: RealTown, polecat: RealPolecat, what: str) -> None:
    """G4: a fault of ours stops nothing that is not ours."""
    with _harmed(gastown, what):
        for args in (
            ["polecat", "status", polecat.address, "--json"],
            ["peek", polecat.address, "5"],
            ["done"],
            ["polecat", "nuke", polecat.address, "--dry-run"],
            ["polecat", "nuke", "shop", "--all", "--dry-run"],
        ):
            real, ours = _both(gastown, *args)
            assert ours[:2] == real[:2], args
        before = len(gastown.queued(polecat.session))
        assert _both(gastown, "nudge", polecat.address, "hello", "--mode", "queue")[1][0] == 0
        assert len(gastown.queued(polecat.session)) == before + 2


#: The ten that hooks and agents call most.
_CALLED = (
    "prime --hook", "mail check --inject", "tap polecat-stop-check", "hook", "mail inbox", "mol status",
    "polecat list shop --json", "peek shop/{polecat}", "nudge mayor x --mode queue", "done",
)  # fmt: skip


def test_what_standing_in_front_costs(gastown: RealTown, polecat: RealPolecat) -> None:
    """Point 6: processor time of a handed-through command above the real one's; written down, never a failure."""
    rows = {}
    environment = gastown.environment
    front = {**environment, "PATH": f"{Path(sys.executable).parent}:{environment['PATH']}"}
    called = [line.format(polecat=polecat.name) for line in _CALLED]
    for line in called:
        real = _cost([str(gastown.real / "gt"), *line.split()], environment, gastown.root)
        ours = _cost([str(Path(sys.executable).with_name("gt")), *line.split()], front, gastown.root)
        rows[line] = {"real_ms": round(real, 1), "ours_ms": round(ours, 1), "above_ms": round(ours - real, 1)}
    # What a program costs that does nothing shows what is ours without the real one's own scatter.
    idle = gastown.folder / "idle"
    idle.mkdir()
    (idle / "gt").write_bytes(Path("/bin/true").resolve().read_bytes())
    (idle / "gt").chmod(0o755)
    bare = {**front, "PATH": f"{Path(sys.executable).parent}:{idle}:/usr/bin:/bin"}
    for line in called:
        own = _cost([str(Path(sys.executable).with_name("gt")), *line.split()], bare, gastown.root)
        rows[line]["alone_ms"] = round(own - _cost([str(idle / "gt")], bare, gastown.root), 1)
    (ROOT / ".cache").mkdir(exist_ok=True)
    (ROOT / ".cache" / "gastown-front.json").write_text(json.dumps({"load": os.getloadavg(), "rows": rows}, indent=1))
    print(json.dumps(rows, indent=1))


def _cost(argv: list[str], environment: dict[str, str], cwd: Path, runs: int = 7) -> float:
    """The least processor time of some runs, in milliseconds, with that of the children it waited for."""
    quiet = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
             (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]  # fmt: skip
    found = []
    before = Path.cwd()
    os.chdir(cwd)
    try:
        for _ in range(runs):
            pid = os.posix_spawn(argv[0], argv, environment, file_actions=quiet)
            used = os.wait4(pid, 0)[2]
            found.append(1000 * (used.ru_utime + used.ru_stime))
    finally:
        os.chdir(before)
    return min(found)


def test_a_rig_is_nuked_whole_though_nobody_was_observed(gastown: RealTown) -> None:
    """G5: ``nuke RIG --all`` covers those that are not on our record."""
    polecat = gastown.sling()
    front = {"PATH": f"{Path(sys.executable).parent}:{gastown.environment['PATH']}"}
    (gastown.town.journal_path.parent).mkdir(parents=True, exist_ok=True, mode=0o700)
    gastown.ours("polecat", "list")  # makes a journal, so that the command is ours
    assert gastown.town.journal_path.exists()
    gastown.run("gt", "polecat", "nuke", "shop", "--all", "--force", env=front)
    assert gastown.polecats() == []
    assert not gastown.tmux.has_session(polecat.session)
