"""A cgroup of the group's own: made beside ours, read, and taken away; never anybody else's."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from witness.process.cgroup import cgroup_members, make_cgroup, remove_cgroup


@pytest.fixture
def run() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def cgroup(run: str) -> Iterator[Path]:
    made = make_cgroup(run)
    if made is None:
        pytest.skip("no cgroup can be made here")
    yield made
    remove_cgroup(str(made), run)


def test_its_members_are_those_who_went_in_and_their_children(cgroup: Path, run: str) -> None:
    assert cgroup_members(str(cgroup), run) == set()
    script = 'echo 0 >"$0/cgroup.procs"; sleep 50 & echo $!; wait'
    inside = subprocess.Popen(["sh", "-c", script, str(cgroup)], stdout=subprocess.PIPE, text=True)
    try:
        assert inside.stdout
        child = int(inside.stdout.readline())
        assert cgroup_members(str(cgroup), run) == {inside.pid, child}
        remove_cgroup(str(cgroup), run)
        assert cgroup.exists(), "one with processes in it stays"
    finally:
        for pid in cgroup_members(str(cgroup), run):
            subprocess.run(["kill", "-9", str(pid)], check=True)
        inside.wait(10)
        if inside.stdout:
            inside.stdout.close()


def test_what_its_processes_made_below_it_counts_and_goes_with_it(cgroup: Path, run: str) -> None:
    inner = cgroup / "inner"
    inner.mkdir()
    sleeper = subprocess.Popen(["sleep", "50"])
    try:
        (inner / "cgroup.procs").write_text(str(sleeper.pid))
        assert cgroup_members(str(cgroup), run) == {sleeper.pid}
    finally:
        sleeper.kill()
        sleeper.wait(10)
    remove_cgroup(str(cgroup), run)
    assert not cgroup.exists()


def test_the_same_one_is_not_made_twice(cgroup: Path, run: str) -> None:
    assert make_cgroup(run) is None


def test_a_folder_of_another_name_is_nobody(tmp_path: Path, run: str) -> None:
    (tmp_path / "cgroup.procs").write_text("1\n")
    assert cgroup_members(str(tmp_path), run) == set()
    remove_cgroup(str(tmp_path), run)
    assert tmp_path.exists()
    assert cgroup_members("", run) == set()
