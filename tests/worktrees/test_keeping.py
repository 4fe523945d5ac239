"""No byte of somebody's work goes with a worktree, and one that holds none goes."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.worktrees.conftest import Bench, make_repository, run_git
from witness.journal import Worktree, WorktreeState
from witness.worktrees.place import trash_path


def _branches(bench: Bench) -> list[str]:
    return run_git(bench.repository, "branch", "--format=%(refname:short)").split()


def _write(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("x")


def _stash_in(path: Path) -> None:
    (path / "a.txt").write_text("stashed\n")
    run_git(path, "stash")


def _other_branch(path: Path) -> None:
    run_git(path, "switch", "-q", "-c", "mine")
    (path / "c.txt").write_text("c\n")
    run_git(path, "add", "c.txt")
    run_git(path, "commit", "-q", "-m", "mine")


def _commit(path: Path) -> None:
    (path / "c.txt").write_text("c\n")
    run_git(path, "add", "c.txt")
    run_git(path, "commit", "-q", "-m", "c")


def _detached(path: Path) -> None:
    run_git(path, "checkout", "-q", "--detach")
    _commit(path)


def _rebase(path: Path) -> None:
    run_git(path, "-c", "sequence.editor=sed -i 1s/^/break\\\\n/", "rebase", "-q", "-i", "HEAD", "--keep-empty")


def _assume_unchanged(path: Path) -> None:
    run_git(path, "update-index", "--assume-unchanged", "a.txt")
    (path / "a.txt").write_text("hidden from git\n")


def _same_size_and_time(path: Path) -> None:
    """What git's own memory of a file takes for unchanged where it trusts times alone."""
    run_git(path, "status")
    before = (path / "a.txt").stat()
    (path / "a.txt").write_text("b\n")
    os.utime(path / "a.txt", ns=(before.st_atime_ns, before.st_mtime_ns))


def _nested_repository(path: Path) -> None:
    make_repository(path / "build" / "clone", {"x": "x\n"})


WORK: dict[str, tuple[Callable[[Path], object], str]] = {
    "changed": (lambda p: (p / "a.txt").write_text("other\n"), "1 changed file (a.txt)"),
    "same size and time": (_same_size_and_time, "1 changed file (a.txt)"),
    "staged": (lambda p: [(p / "a.txt").write_text("x\n"), run_git(p, "add", "a.txt")], "1 changed file"),
    "deleted": (lambda p: (p / "a.txt").unlink(), "1 changed file"),
    "new": (lambda p: (p / "new.txt").write_text("n\n"), "1 new file (new.txt)"),
    "new below a new folder": (lambda p: _write(p / "d" / "n"), "1 new file (d/n)"),
    "ignored": (lambda p: (p / "run.log").write_text("l\n"), "1 ignored file (run.log)"),
    "ignored below an ignored folder": (
        lambda p: _write(p / "build" / "out"),
        "1 ignored file (build/out)",
    ),
    "a repository below an ignored folder": (_nested_repository, "ignored files (build/clone/.git/"),
    "commit": (_commit, "1 unpushed commit"),
    "commit on another branch": (_other_branch, "1 unpushed commit"),
    "commit on no branch": (_detached, "1 unpushed commit"),
    "rebase": (_rebase, "a rebase under way"),
    "assumed unchanged": (_assume_unchanged, "1 changed file (a.txt)"),
    "locked": (lambda p: run_git(p, "worktree", "lock", "--reason", "mine", str(p)), "locked: mine"),
    "a name that is no text": (lambda p: Path(os.fsdecode(bytes(p) + b"/\xff\n.txt")).write_text("x"), "1 new file"),
}


@pytest.mark.parametrize("case", WORK)
def test_a_worktree_that_holds_work_is_kept_and_named(case: str, bench: Bench) -> None:
    found = bench.make()
    work, piece = WORK[case]
    work(Path(found.path))
    before = _content(Path(found.path))
    end = bench.end(found)
    assert end.kept
    assert piece in end.words
    assert found.path in str(end)
    assert "gt diff main/toast" in str(end)
    assert "\n" not in str(end)
    assert _content(Path(found.path)) == before
    kept = bench.journal.worktrees.get(found.run)
    assert kept
    assert kept.state is WorktreeState.KEPT
    assert bench.keeper.settle() == {}, "what is kept is not judged again by every patrol"


def _content(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


def _push(bench: Bench, path: Path) -> None:
    remote = bench.repository.parent / "remote.git"
    run_git(bench.repository, "init", "-q", "--bare", str(remote))
    run_git(bench.repository, "remote", "add", "origin", str(remote))
    _commit(path)
    run_git(path, "push", "-q", "origin", "HEAD")


def _merge(bench: Bench, path: Path) -> None:
    _commit(path)
    run_git(bench.repository, "merge", "-q", run_git(path, "branch", "--show-current"))


def _cache(path: Path) -> None:
    (path / "build" / "deep").mkdir(parents=True)
    (path / "build" / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n# by tests\n")
    (path / "build" / "deep" / "x.o").write_text("x")


IDLE: dict[str, tuple[Callable[[Bench, Path], object], bool]] = {
    "nothing": (lambda b, p: None, False),
    "pushed": (_push, True),
    "merged": (_merge, False),
    "changed and put back": (lambda b, p: [(p / "a.txt").write_text("x\n"), (p / "a.txt").write_text("a\n")], False),
    "byte code": (lambda b, p: _write(p / "__pycache__" / "a.pyc"), False),
    "a cache by its own word": (lambda b, p: _cache(p), False),
    "an empty folder": (lambda b, p: (p / "empty").mkdir(), False),
    # It lies in the repository and not in the worktree.
    "stashed": (lambda b, p: _stash_in(p), False),
}


@pytest.mark.parametrize("case", IDLE)
def test_a_worktree_whose_work_is_elsewhere_goes(case: str, bench: Bench) -> None:
    found = bench.make()
    work, branch_stays = IDLE[case]
    work(bench, Path(found.path))
    end = bench.end(found)
    assert not end.kept, end.words
    assert not Path(found.path).exists()
    assert (found.branch in _branches(bench)) is branch_stays
    assert len(run_git(bench.repository, "worktree", "list").splitlines()) == 1
    assert list((bench.town.root / ".worktrees" / ".removed").iterdir()) == []
    if case == "stashed":
        assert run_git(bench.repository, "stash", "list")


def test_what_was_laid_there_is_no_work_until_the_agent_changes_it(bench: Bench) -> None:
    (bench.repository / ".env").write_text("KEY=1\n")
    (bench.repository / "node_modules").mkdir()
    (bench.repository / "node_modules" / "m.js").write_text("m\n")
    more = {
        "files": [".env", "node_modules"],
        "setup": ["sh -c 'echo made > made.log; echo new > new.txt; echo changed > a.txt'"],
    }
    found = bench.make(**more)
    path = Path(found.path)
    assert (path / "node_modules" / "m.js").read_text() == "m\n"
    assert (path / ".env").read_text() == "KEY=1\n"
    assert (path / "a.txt").read_text() == "changed\n"
    assert not bench.end(found).kept
    assert (bench.repository / "node_modules" / "m.js").exists(), "a link is not followed by the removal"
    for name in (".env", "new.txt", "a.txt", "made.log"):
        found = bench.make(**more)
        with Path(found.path, name).open("a") as file:
            file.write("the agent's\n")
        end = bench.end(found)
        assert end.kept, name
        assert name in end.words


def test_a_folder_is_copied_where_git_would_take_a_link_for_a_new_file(bench: Bench) -> None:
    (bench.repository / "node_modules").mkdir()
    (bench.repository / "node_modules" / "m.js").write_text("m\n")
    copied = Path(bench.make(files=["node_modules"]).path, "node_modules")
    assert not copied.is_symlink()  # .gitignore says "node_modules/", which is no link
    assert run_git(copied.parent, "status", "--porcelain") == ""
    assert Path(bench.make(files=["link:node_modules"]).path, "node_modules").is_symlink()
    (bench.repository / ".git" / "info" / "exclude").write_text("node_modules\n")
    linked = Path(bench.make(files=["node_modules"]).path, "node_modules")
    assert linked.is_symlink()
    assert not Path(bench.make(files=["copy:node_modules"]).path, "node_modules").is_symlink()


def _with_submodule(bench: Bench) -> Path:
    origin = make_repository(bench.repository.parent / "lib", {"lib.txt": "l\n", ".gitignore": "*.log\n"})
    run_git(bench.repository, "submodule", "--quiet", "add", str(origin), "lib")
    run_git(bench.repository, "commit", "-q", "-m", "lib")
    return origin


@pytest.mark.parametrize("work", ["nothing", "changed", "ignored", "commit", "committed above", "stash"])
def test_submodules_are_taken_along_and_looked_into(work: str, bench: Bench) -> None:
    _with_submodule(bench)
    found = bench.make()
    inner = Path(found.path, "lib")
    assert (inner / "lib.txt").read_text() == "l\n"
    if work == "changed":
        (inner / "lib.txt").write_text("x\n")
    elif work == "ignored":
        (inner / "x.log").write_text("x\n")
    elif work in ("commit", "committed above"):
        _commit(inner)
    elif work == "stash":
        (inner / "lib.txt").write_text("x\n")
        run_git(inner, "stash")
    if work == "committed above":
        # The repository above is saved; the commit that it points to is in this worktree alone.
        run_git(Path(found.path), "commit", "-q", "-a", "-m", "lib moves")
        run_git(bench.repository, "merge", "-q", found.branch)
    assert bench.end(found).kept is (work != "nothing")


def test_a_kept_one_goes_once_its_work_is_merged(bench: Bench) -> None:
    found = bench.make()
    _commit(Path(found.path))
    assert bench.end(found).kept
    (said,) = bench.keeper.prune(dry_run=True)
    assert said.kept
    run_git(bench.repository, "merge", "-q", found.branch)
    (said,) = bench.keeper.prune(dry_run=True)
    assert not said.kept
    assert Path(found.path).exists()
    (end,) = bench.keeper.prune()
    assert not end.kept
    assert not Path(found.path).exists()
    assert _branches(bench) == ["main"]
    assert (bench.repository / "c.txt").exists()


def test_what_lives_is_left_alone(bench: Bench) -> None:
    found = bench.make()
    bench.live(found)
    assert bench.keeper.settle() == {}
    assert bench.keeper.prune() == []
    assert Path(found.path, "a.txt").exists()


def test_discard_removes_everything_of_it_and_nothing_else(bench: Bench) -> None:
    other = bench.repository.parent / "other"
    run_git(bench.repository, "worktree", "add", "-q", "-b", "mine", str(other))
    away = bench.repository.parent / "away"
    run_git(bench.repository, "worktree", "add", "-q", "-b", "away", str(away))
    found = bench.make()
    _commit(Path(found.path))
    (Path(found.path) / "new").write_text("n")
    tip = run_git(Path(found.path), "rev-parse", "HEAD")
    bench.journal.worktrees.set_discard(found.run)
    shutil.move(away, bench.repository.parent / "on-another-disk")  # "git worktree prune" would forget it
    end = bench.end(found)
    assert not end.kept
    assert tip[:12] in end.words
    assert _branches(bench) == ["away", "main", "mine"]
    assert str(away) in run_git(bench.repository, "worktree", "list")
    assert (other / "a.txt").exists()


@pytest.mark.parametrize("broken", ["index", "HEAD", "repository", "git"])
def test_what_cannot_be_looked_at_is_kept(broken: str, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    found = bench.make()
    (Path(found.path) / "new.txt").write_text("n")
    place = Path(run_git(Path(found.path), "rev-parse", "--absolute-git-dir"))
    if broken == "repository":
        bench.repository.rename(bench.repository.parent / "moved")
    elif broken != "git":
        (place / broken).write_bytes(b"nonsense")
    with monkeypatch.context() as there:
        if broken == "git":
            there.setenv("PATH", "/nonexistent")
        end = bench.end(found)
    assert end.kept
    assert "could not be looked at" in end.words
    assert (Path(found.path) / "new.txt").read_text() == "n"


def test_a_removal_that_was_broken_off_is_finished_and_never_judged_again(bench: Bench) -> None:
    found = bench.make()
    trash = trash_path(bench.town, found.run)
    Path(found.path).rename(trash)
    (trash / "a.txt").unlink()  # half of it is deleted
    end = bench.end(found)
    assert not end.kept
    assert not trash.exists()
    assert _branches(bench) == ["main"]
    assert len(run_git(bench.repository, "worktree", "list").splitlines()) == 1


def test_one_that_somebody_has_removed_is_forgotten(bench: Bench) -> None:
    found = bench.make()
    run_git(bench.repository, "worktree", "remove", found.path)
    assert not bench.end(found).kept
    assert bench.journal.worktrees.standing() == []
    assert _branches(bench) == ["main"]


def test_one_that_was_being_made_goes_whole(bench: Bench) -> None:
    plan = bench.plan()
    bench.record(plan)
    path = Path(plan.worktree.path)
    run_git(bench.repository, "worktree", "add", "-q", "-b", plan.worktree.branch, str(path))
    (path / "a.txt").unlink()  # git was killed in the midst of its checkout
    assert not bench.end(plan.worktree).kept
    assert not path.exists()
    assert _branches(bench) == ["main"]


def test_closed_folders_go_too(bench: Bench) -> None:
    found = bench.make(setup=["sh -c 'mkdir -p build/closed && touch build/closed/x && chmod 500 build/closed'"])
    assert not bench.end(found).kept
    assert not trash_path(bench.town, found.run).exists()


def test_another_process_that_is_at_it_is_left_to_it(bench: Bench) -> None:
    from witness.worktrees.place import held

    found = bench.make()
    with held(bench.town, found.run) as ours:
        assert ours
        assert bench.keeper.settle() == {}
    assert not bench.end(found).kept


def test_what_is_not_known_to_be_laid_counts_as_work(bench: Bench) -> None:
    found = bench.make(setup=["sh -c 'echo x > x.log'"])
    (bench.town.runtime / "worktrees" / f"{found.run}.json").write_text("{]")
    assert bench.end(found).kept


def _worktrees_of(bench: Bench) -> list[Worktree]:
    return bench.journal.worktrees.standing()


def test_a_hook_and_a_monitor_of_the_repository_are_not_run(bench: Bench) -> None:
    mark = bench.repository.parent / "ran"
    script = bench.repository / ".git" / "hooks" / "post-checkout"
    script.parent.mkdir(exist_ok=True)
    script.write_text(f"#!/bin/sh\necho ran >> {mark}\n")
    script.chmod(0o755)
    subprocess.run(["git", "-C", bench.repository, "config", "core.fsmonitor", str(script)], check=True)
    found = bench.make()
    bench.end(found)
    assert not mark.exists()
    assert _worktrees_of(bench) == []
