"""Folders are their user's alone, or they are not used."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.real.conftest import Place
from tests.supervise.command import gt
from witness.config.town import Town
from witness.daemon import service_units
from witness.errors import UsageError
from witness.journal import MemberState


def _foreign(runtime: Path) -> None:
    runtime.mkdir(parents=True)
    os.chown(runtime, 65534, 65534)


def _open(runtime: Path) -> None:
    runtime.mkdir(parents=True)
    runtime.chmod(0o777)


def _linked(runtime: Path) -> None:
    runtime.parent.mkdir()
    (runtime.parent / "elsewhere").mkdir(mode=0o700)
    runtime.symlink_to("elsewhere")


def _linked_above(runtime: Path) -> None:
    (runtime.parent.parent / "elsewhere").mkdir(mode=0o700)
    runtime.parent.symlink_to("elsewhere")


def _file(runtime: Path) -> None:
    runtime.parent.mkdir()
    runtime.touch()


@pytest.mark.parametrize("spoil", [_foreign, _open, _linked, _linked_above, _file])
def test_a_runtime_folder_that_is_not_ours_alone_is_refused_at_spawn(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    if spoil is _foreign and os.geteuid():
        pytest.skip("only root can give a folder away")
    town = Town.init(tmp_path / "town")
    spoil(town.runtime)
    done = gt(town.root, "polecat", "spawn", "z", "--agent", "sleep 60", "--no-witness")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "the runtime folder cannot be used" in done.stderr
    assert not list(tmp_path.rglob("witness.db"))
    with pytest.raises(UsageError):
        town.make_runtime()


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    before = os.umask(0o022)
    os.umask(before)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize("mask", [0o000, 0o002])
def test_under_any_umask_nothing_is_open_to_others(
    make_place: Callable[..., Place], umask: Callable[[int], int], mask: int
) -> None:
    place = make_place()
    umask(mask)
    (place.work / "issue.md").write_text("---\nfiles: [a/**]\n---\n")
    place.spawn("x", ["sleep", "600"], sidecars="scope:issue.md")
    assert gt(place.town.root, "nudge", "x", "hello", "--mode", "queue").returncode == 0
    place.witness.patrol()
    found = [place.town.root / ".runtime", *(place.town.root / ".runtime").rglob("*")]
    open_ = [
        f"{path.relative_to(place.town.root)} {stat.filemode(path.lstat().st_mode)}"
        for path in found
        if not path.is_symlink() and path.lstat().st_mode & 0o077
    ]
    assert open_ == []
    assert any("nudge_queue" in str(path) for path in found)


def test_a_sidecar_starts_again_though_its_logs_are_gone(make_place: Callable[..., Place]) -> None:
    place = make_place(settings="backoff_base: 10ms\ncontainment: reaper\n")
    (place.work / "issue.md").write_text("---\nfiles: [a/**]\n---\n")
    place.spawn("x", ["sleep", "600"], sidecars="scope:issue.md")
    logs = place.town.run_dir(place.witness.find("x").id.run) / "logs"
    for path in logs.iterdir():
        path.unlink()
    logs.rmdir()
    before = place.members("x")["scope"].process
    place.kill(before)
    deadline = time.monotonic() + 30
    while (now := place.members("x")["scope"]).state is not MemberState.RUNNING or now.process == before:
        assert time.monotonic() < deadline, now
        place.witness.patrol()
    assert now.process
    assert (logs / "scope.log").exists()


def test_cron_imports_nothing_from_the_folder_that_it_starts_in(tmp_path: Path) -> None:
    town = Town.init(tmp_path / "town")
    town.make_runtime()
    for name in ("witness", "yaml"):
        (town.root / name).mkdir()
        (town.root / name / "__init__.py").write_text("raise SystemExit('the town\\'s own module was imported')")
    line = service_units.unit(town, "cron", tmp_path).text
    command = line.split(" ", 5)[5].rstrip("\n").replace(r"\%", "%")
    done = subprocess.run(["/bin/sh", "-c", command], cwd="/", capture_output=True, text=True, check=False, timeout=50)
    assert done.returncode == 0, (town.runtime / "cron.log").read_text()
    for kind in ("systemd", "launchd"):
        assert "-P" in shlex.split(service_units.unit(town, kind, tmp_path).text.replace("<", " ").replace(">", " "))
