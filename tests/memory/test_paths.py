"""A memory is kept in the project, not in the worktree that goes with the polecat."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sidecars.memory.paths import find_root


def _git(*arguments: str, cwd: Path) -> None:
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main", *arguments],
        cwd=cwd,
        check=True,
        capture_output=True,
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    _git("init", "-q", cwd=root)
    _git("commit", "-q", "--allow-empty", "-m", "x", cwd=root)
    return root


def test_a_linked_worktree_means_the_repository(repository: Path, tmp_path: Path) -> None:
    worktree = tmp_path / "polecats" / "toast"
    _git("worktree", "add", "-q", str(worktree), "-b", "toast", cwd=repository)
    (worktree / "src").mkdir()
    (worktree / "_mdan").mkdir()
    assert find_root(worktree / "src", {}) == repository


def test_beside_a_bare_repository_it_is_the_folder_that_holds_it(repository: Path, tmp_path: Path) -> None:
    rig = tmp_path / "rig"
    rig.mkdir()
    _git("clone", "-q", "--bare", str(repository), str(rig / ".repo.git"), cwd=tmp_path)
    worktree = rig / "polecats" / "toast" / "rig"
    _git("worktree", "add", "-q", str(worktree), "-b", "toast", cwd=rig / ".repo.git")
    assert find_root(worktree, {}) == rig


def test_the_nearest_state_wins_over_the_repository(repository: Path) -> None:
    (repository / "app" / "_mdan").mkdir(parents=True)
    assert find_root(repository / "app", {}) == repository / "app"


def test_without_either_it_is_where_one_stands(tmp_path: Path) -> None:
    assert find_root(tmp_path, {}) == tmp_path


def test_variables_win(tmp_path: Path) -> None:
    assert find_root(tmp_path, {"MDAN_PROJECT_ROOT": "/a"}) == Path("/a")
    assert find_root(tmp_path, {"MDAN_PROJECT_ROOT": "/a", "GT_MEMORY_ROOT": "/b"}) == Path("/b")


def test_a_git_file_that_leads_nowhere_is_a_project_of_its_own(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: ../../elsewhere\n")
    assert find_root(tmp_path, {}) == tmp_path
