"""Repositories with real git, and towns beside them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.conftest import Place, make_place, place
from witness.clock import SystemClock
from witness.journal import Group, GroupState, Worktree, WorktreeState
from witness.names import GroupId
from witness.supervise.reconcile import worktree_keeper
from witness.worktrees.keeper import WorktreeEnd, WorktreeKeeper
from witness.worktrees.making import WorktreePlan, make_worktree, plan_worktree
from witness.worktrees.place import make_places

__all__ = ["make_place", "place"]
_AUTHOR = ("-c", "user.name=Tess", "-c", "user.email=tess@example.org", "-c", "protocol.file.allow=always")


def run_git(folder: Path, *words: str) -> str:
    """What git prints."""
    done = subprocess.run(["git", "-C", str(folder), *_AUTHOR, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def make_repository(folder: Path, files: dict[str, str]) -> Path:
    """A repository with one commit."""
    folder.mkdir(parents=True)
    run_git(folder, "init", "-q", "-b", "main")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    run_git(folder, "add", "-A", "-f")
    run_git(folder, "commit", "-q", "-m", "one")
    return folder


class Bench:
    """A town with a repository, whose worktrees are made and ended without any polecat."""

    def __init__(self, place: Place, repository: Path) -> None:
        self.place, self.town, self.journal = place, place.town, place.witness.journal
        self.repository = repository
        self.keeper: WorktreeKeeper = worktree_keeper(self.town, self.journal, SystemClock())

    def plan(self, **more: object) -> WorktreePlan:
        group = GroupId("main", "toast", os.urandom(16).hex())
        return plan_worktree(self.town, group, self.repository, **more)  # type: ignore[arg-type]

    def record(self, plan: WorktreePlan) -> GroupId:
        found = plan.worktree
        group = GroupId(found.rig, found.polecat, found.run)
        make_places(self.town, group)
        self.journal.worktrees.add(found)
        return group

    def make(self, **more: object) -> Worktree:
        plan = self.plan(**more)
        group = self.record(plan)
        log = self.town.run_dir(group.run) / "logs" / "setup.log"
        log.parent.mkdir(parents=True)
        make_worktree(self.town, group, plan, log)
        self.journal.worktrees.move(group.run, WorktreeState.READY, 1.0)
        return plan.worktree

    def end(self, found: Worktree) -> WorktreeEnd:
        return self.keeper.settle([found.run])[found.run]

    def live(self, found: Worktree) -> None:
        """As if its polecat lived."""
        self.journal.groups.add(
            Group(
                GroupId(found.rig, found.polecat, found.run), "gt-toast", GroupState.RUNNING, "boot", 0.0, 0.0,
                found.path,
            )
        )  # fmt: skip


@pytest.fixture(autouse=True)
def _own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration of whoever runs the tests; clones by path are allowed, as submodules of tests need."""
    settings = tmp_path / "gitconfig"
    settings.write_text('[protocol "file"]\n\tallow = always\n[user]\n\tname = Tess\n\temail = tess@example.org\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def make_bench(
    make_place: Callable[..., Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Bench]:
    def make(settings: str = "containment: reaper\n", **files: str) -> Bench:
        ignore = "*.log\nnode_modules/\n.env\nbuild/\n__pycache__/\n"
        repository = make_repository(
            tmp_path / "repo", {"a.txt": "a\n", "src/b.txt": "b\n", ".gitignore": ignore, **files}
        )
        place = make_place(settings=settings)
        monkeypatch.setenv("GT_TOWN_ROOT", str(place.town.root))
        return Bench(place, repository)

    return make


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench()
