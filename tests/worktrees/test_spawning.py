"""Polecats with worktrees, through the command line: made whole or not at all, and ended without a loss."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.conftest import Place
from tests.supervise.command import GT, gt
from tests.waiting import until
from tests.worktrees.conftest import Bench, run_git
from witness.journal import GroupState, WorktreeState

AGENT = ["--agent", "sleep 60", "--sidecars", "", "--no-wait"]


def _spawn(bench: Bench, *more: str, agent: str = "sleep 60") -> subprocess.CompletedProcess[str]:
    words = ["--agent", agent, "--sidecars", "", "--no-wait", "--no-witness"]
    return gt(bench.repository, "polecat", "spawn", "toast", "--worktree", *words, *more)


def _clean(bench: Bench) -> None:
    """Nothing half-made: no worktree, branch, record, session or polecat."""
    if (bench.repository / ".git").exists():
        assert len(run_git(bench.repository, "worktree", "list").splitlines()) == 1
        assert run_git(bench.repository, "branch", "--format=%(refname:short)", "--list", "polecat/*") == ""
    top = bench.town.root / ".worktrees"
    assert [each for each in top.rglob("*") if each.is_file() and each.name != ".gitignore"] == []
    assert bench.journal.worktrees.standing() == []
    assert bench.place.sessions() == []
    assert bench.place.witness.polecats() == []


def _shallow(bench: Bench) -> None:
    clone = bench.repository.parent / "shallow"
    (bench.repository / "a.txt").write_text("two\n")
    run_git(bench.repository, "commit", "-q", "-a", "-m", "two")
    run_git(bench.repository, "clone", "-q", "--depth=1", f"file://{bench.repository}", str(clone))
    bench.repository = clone


def _bare(bench: Bench) -> None:
    clone = bench.repository.parent / "bare.git"
    run_git(bench.repository, "clone", "-q", "--bare", str(bench.repository), str(clone))
    bench.repository = clone


def _no_git(bench: Bench) -> None:
    bench.repository = bench.repository.parent / "plain"
    bench.repository.mkdir()


def _empty(bench: Bench) -> None:
    _no_git(bench)
    run_git(bench.repository, "init", "-q")


def _settings(bench: Bench, text: str) -> None:
    (bench.town.root / "settings" / "witness.yaml").write_text(text)


BAD: dict[str, tuple[Callable[[Bench], object], list[str], int, str]] = {
    "branch exists": (lambda b: run_git(b.repository, "branch", "taken"), ["--branch", "taken"], 2, "taken exists"),
    "branch is checked out": (lambda b: None, ["--branch", "main"], 2, "main is checked out in"),
    "no name of a branch": (lambda b: None, ["--branch", "a..b"], 2, "no name for a branch"),
    "an option as a branch": (lambda b: None, ["--branch=--force"], 2, "no name for a branch"),
    "a branch in the way": (lambda b: run_git(b.repository, "branch", "polecat"), [], 1, "polecat"),
    "no such base": (lambda b: None, ["--base", "nowhere"], 2, "'nowhere' is no commit"),
    "an option as a base": (lambda b: None, ["--base=--all"], 2, "'--all' is no commit"),
    "shallow": (_shallow, ["--base", "HEAD~1"], 2, "shallow clone: git fetch --unshallow"),
    "bare": (_bare, [], 2, "bare repository"),
    "no git": (_no_git, [], 2, "in no git repository"),
    "no commit": (_empty, [], 2, "no commit yet"),
    "setup fails": (
        lambda b: _settings(b, "setup: [\"sh -c 'echo no such dependency; exit 3'\"]\n"), [], 1,
        "failed (3): no such dependency: see",
    ),
    "setup is no program": (lambda b: _settings(b, "setup: [no-such-program-here]\n"), [], 1, "cannot be started"),
    "setup hangs": (
        lambda b: _settings(b, "setup: [\"sh -c 'sleep 600 & sleep 600'\"]\nsetup_timeout: 200ms\n"), [], 1,
        "did not end within 0 s (setup_timeout)",
    ),
    "a spec that is not committed": (
        lambda b: (b.repository / "spec.md").write_text("# S\n"), ["--sidecars", "specs:spec.md"], 2, "spec.md",
    ),
    "an issue that is not committed": (
        lambda b: (b.repository / "issue.md").write_text("do\n"), ["--issue", "issue.md"], 2, "is not committed",
    ),
    "a folder that is not committed": (
        lambda b: (b.repository / "new").mkdir(), ["--workdir", "new"], 2, "new is not in the last commit",
    ),
    "the agent ends at once": (lambda b: None, ["--agent", "false"], 1, "ended at once"),
    "branch without a worktree": (lambda b: None, ["--no-worktree", "--branch", "x"], 2, "leave --no-worktree out"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_nothing_is_half_made(case: str, bench: Bench) -> None:
    prepare, arguments, code, piece = BAD[case]
    prepare(bench)
    done = _spawn(bench, *arguments)
    assert done.returncode == code, done.stderr
    lines = [line for line in done.stderr.splitlines() if "withheld" not in line]
    assert any(piece in line for line in lines), done.stderr
    assert len(lines) <= 2, done.stderr
    _clean(bench)
    assert bench.place.marked() == set()


def test_a_full_disk_in_the_midst_of_it_leaves_nothing(bench: Bench, tmp_path: Path) -> None:
    """git's checkout cannot write a file: as with a full disk it says so and fails half-way."""
    (bench.repository / "large").write_bytes(b"x" * (2 << 20))
    run_git(bench.repository, "add", "large")
    run_git(bench.repository, "commit", "-q", "-m", "large")
    script = tmp_path / "bin" / "git"
    script.parent.mkdir()
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    script.write_text(
        f'#!/bin/bash\ncase "$*" in *"worktree add"*) ulimit -f 1024; trap "" XFSZ;; esac\nexec {real} "$@"\n'
    )
    script.chmod(0o755)
    done = subprocess.run(
        [*GT, "polecat", "spawn", "toast", "--worktree", *AGENT], cwd=bench.repository, capture_output=True, text=True,
        env={**os.environ, "PATH": f"{script.parent}:{os.environ['PATH']}", "GT_TOWN_ROOT": str(bench.town.root)},
        check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "git worktree" in done.stderr
    _clean(bench)


def test_it_works_in_its_worktree_and_is_listed(bench: Bench) -> None:
    (bench.repository / "a.txt").write_text("not committed\n")
    spawned = _spawn(
        bench, "--workdir", "src", "--branch", "feature/x", "--json", agent="sh -c 'pwd > where; sleep 60'"
    )
    assert spawned.returncode == 0, spawned.stderr
    assert "1 uncommitted change" in spawned.stderr
    answer = json.loads(spawned.stdout)
    path = Path(answer["worktree"])
    assert answer["branch"] == "feature/x"
    until(lambda: (path / "src" / "where").is_file() and (path / "src" / "where").read_text().endswith("\n"))
    assert (path / "src" / "where").read_text().strip() == str(path / "src")
    assert (path / "a.txt").read_text() == "a\n"
    run_git(path, "add", "src/where")
    run_git(path, "commit", "-q", "-m", "where")
    (path / "a.txt").write_text("second\n")
    (path / "new.txt").write_text("third\n")
    (row,) = json.loads(gt(bench.town.root, "polecat", "list", "--json").stdout)
    assert row["worktree"]["branch"] == "feature/x"
    assert (row["worktree"]["ahead"], row["worktree"]["files"]) == (1, 2)
    listed = gt(bench.town.root, "polecat", "list").stdout
    assert "branch feature/x  1 commit ahead  2 files changed" in listed
    shown = gt(bench.town.root, "diff", "toast").stdout
    assert all(piece in shown for piece in (f"+{path}/src", "+second", "+third"))
    stat = gt(bench.town.root, "diff", "toast", "--stat").stdout
    assert "3 files changed" in stat
    assert run_git(path, "status", "--porcelain").split("\n") == ["M a.txt", "?? new.txt"]  # its index is as it was

    nuked = gt(bench.town.root, "polecat", "nuke", "toast")
    assert nuked.returncode == 0
    assert f"{path} (branch feature/x); gt diff main/toast" in nuked.stdout
    (kept,) = json.loads(gt(bench.town.root, "worktree", "list", "--json").stdout)
    assert (kept["state"], kept["address"]) == ("KEPT", "main/toast")
    assert "+third" in gt(bench.town.root, "diff", "toast").stdout

    refused = gt(bench.town.root, "polecat", "nuke", "--discard", "toast")
    assert refused.returncode == 2
    assert "say --yes" in refused.stderr
    assert "new.txt" in refused.stderr
    assert (path / "new.txt").read_text() == "third\n"
    done = gt(bench.town.root, "polecat", "nuke", "--discard", "--yes", "toast")
    assert done.returncode == 0, done.stderr
    assert not path.exists()
    assert run_git(bench.repository, "branch", "--list", "feature/x") == ""


@pytest.mark.parametrize("end", ["done", "agent dies", "patrol", "uninstall"])
def test_no_end_loses_work(end: str, bench: Bench) -> None:
    command = shlex.join([*GT, "done"])
    then = f"{command}; sleep 60" if end == "done" else "read x < go; exit 1"
    agent = shlex.join(["sh", "-c", f"echo work > work.txt; {then}"])
    words = ["--agent", agent, "--sidecars", "", "--no-wait", "--json"]
    if end in ("patrol", "uninstall"):
        words.append("--no-witness")
    _settings(bench, "containment: reaper\ndone_settle: 50ms\nspawn_settle: 10ms\nsetup: [mkfifo go]\n")
    spawned = gt(bench.repository, "polecat", "spawn", "toast", "--worktree", *words)
    assert spawned.returncode == 0, spawned.stderr
    answer = json.loads(spawned.stdout)
    path = Path(answer["worktree"])
    until((path / "work.txt").is_file)
    if end in ("agent dies", "patrol"):
        (path / "go").write_text("go\n")
        bench.place.witness.wait("toast", [GroupState.NUKED], seconds=30) if end == "agent dies" else None
    if end == "patrol":
        until(lambda: gt(bench.town.root, "witness", "patrol").returncode == 0 and not bench.place.witness.polecats())
    if end == "uninstall":
        said = gt(bench.town.root, "uninstall", "--yes").stdout
        assert f"kept: {path}" in said
        assert (path / "work.txt").read_text() == "work\n"
        return
    until(lambda: (found := bench.journal.worktrees.get(answer["run"])) and found.state is WorktreeState.KEPT)
    assert (path / "work.txt").read_text() == "work\n"
    found = bench.journal.worktrees.get(answer["run"])
    assert found
    assert "work.txt" in found.reason
    assert any("gt diff main/toast" in line for line in gt(bench.town.root, "logs", "toast").stdout.splitlines())


def test_a_molecule_and_the_settings_ask_for_one(bench: Bench) -> None:
    (bench.repository / "m.toml").write_text('formula = "m"\nworktree = true\n[[steps]]\nid = "a"\ntitle = "b"\n')
    plain = ["--agent", "sleep 60", "--no-wait", "--no-witness", "--json"]

    def spawned(*more: str) -> dict[str, object]:
        done = gt(bench.repository, "polecat", "spawn", "toast", *plain, *more)
        assert done.returncode == 0, done.stderr
        gt(bench.town.root, "polecat", "nuke", "toast")
        answer: dict[str, object] = json.loads(done.stdout)
        return answer

    assert "worktree" not in spawned()
    assert "worktree" in spawned("--molecule", "m.toml")
    _settings(bench, "worktree: true\n")
    assert "worktree" in spawned()
    assert "worktree" not in spawned("--no-worktree")


def test_a_project_that_nobody_trusts_runs_no_setup(make_place: Callable[..., Place], tmp_path: Path) -> None:
    """A clone that is a town itself brings settings; its commands count once it is trusted."""
    place = make_place("clone", settings='setup: ["touch ran"]\nworktree: true\n')
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
        run_git(place.town.root, *words)
    done = gt(place.town.root, "polecat", "spawn", "toast", *AGENT, "--no-witness", "--json")
    assert done.returncode == 0, done.stderr
    assert "setup" in done.stderr
    assert "touch ran" in done.stderr
    assert not Path(json.loads(done.stdout)["worktree"], "ran").exists()
    assert run_git(place.town.root, "status", "--porcelain") == "", "worktrees are not the project's files"
