"""What a polecat has done in its worktree, for people and for listings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from witness.errors import UsageError
from witness.files import read_bytes
from witness.journal import Worktree
from witness.process.git import GitError, git, git_line
from witness.worktrees.findings import Fingerprint, fingerprint

_SHOWING = ("--no-ext-diff", "--no-textconv", "--submodule=short")
# git waits mostly for the disk.
_AT_ONCE = 4
_LARGEST_INDEX = 1 << 30


def diff(found: Worktree, laid: Mapping[str, Fingerprint], *, stat: bool = False, colour: bool = False) -> str:
    """The differences between a worktree and the commit that it began at: committed, changed and new files.

    Args:
        found: which.
        laid: what was there before its agent began; as long as it is untouched it is no difference.
        stat: only the names of the files and how much of each.
        colour: with the colours of a terminal.

    Raises:
        UsageError: it does not stand any more.
        GitError: git cannot say.
    """
    path = Path(found.path)
    if not path.is_dir():
        raise UsageError(f"the worktree {path} is not there any more")
    new = [name for name in _untracked(path) if laid.get(name, ()) != fingerprint(path / name)]
    words = ["diff", *_SHOWING, f"--color={'always' if colour else 'never'}", *(["--stat"] if stat else []), found.base]
    import tempfile

    with tempfile.TemporaryDirectory(prefix="gt-diff-") as scratch:
        # An index of our own: new files show in the difference, and the agent's index stays as it is.
        index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        place = path / git_line(path, "rev-parse", "--git-path", "index")
        if place.exists():
            Path(index["GIT_INDEX_FILE"]).write_bytes(read_bytes(place, _LARGEST_INDEX, owners=()))
        if new:
            listed = b"\0".join(os.fsencode(name) for name in new)
            git(
                path, "--literal-pathspecs", "add", "-N", "--pathspec-from-file=-", "--pathspec-file-nul",
                data=listed, variables=index,
            )  # fmt: skip
        return git(path, *words, variables=index).decode(errors="replace")


def facts_of(worktrees: Iterable[Worktree], laid: Mapping[str, Mapping[str, Fingerprint]]) -> dict[str, dict[str, Any]]:
    """What listings tell of worktrees, by run: commits ahead of their base, and files that are not committed.

    Args:
        worktrees: which.
        laid: what was there before their agents began, by run.
    """
    listed = list(worktrees)
    if not listed:
        return {}
    from concurrent.futures import ThreadPoolExecutor  # logging and threads, 30 ms that a town without worktrees saves

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip((each.run for each in listed), pool.map(lambda each: _facts(each, laid), listed), strict=True))


def _facts(found: Worktree, laid: Mapping[str, Mapping[str, Fingerprint]]) -> dict[str, Any]:
    path = Path(found.path)
    ahead: int | None = None
    files: int | None = None
    branch = found.branch
    try:
        if path.is_dir():
            ahead = int(git_line(path, "rev-list", "--count", f"{found.base}..HEAD"))
            known = laid.get(found.run, {})
            names = {*_untracked(path), *_changed(path)}
            files = sum(1 for name in names if name not in known or known[name] != fingerprint(path / name))
            branch = git_line(path, "rev-parse", "--abbrev-ref", "HEAD")
    except GitError:
        pass  # it is being made or removed, or the repository is gone: that is shown as not known
    return {
        "path": found.path,
        "branch": branch,
        "base": found.base,
        "state": str(found.state),
        "ahead": ahead,
        "files": files,
        "reason": found.reason,
    }


def _untracked(path: Path) -> list[str]:
    output = git(path, "ls-files", "--others", "--exclude-standard", "-z")
    return [os.fsdecode(name).rstrip("/") for name in output.split(b"\0") if name]


def _changed(path: Path) -> list[str]:
    output = git(path, "diff", "--name-only", "--no-ext-diff", "-z", "HEAD")
    return [os.fsdecode(name) for name in output.split(b"\0") if name]


def words_of(facts: Mapping[str, Any]) -> str:
    """The facts of one worktree in a few words."""
    if facts["ahead"] is None:
        return f"branch {facts['branch']}"
    ahead, files = facts["ahead"], facts["files"]
    return (
        f"branch {facts['branch']}  {ahead} commit{'s' * (ahead != 1)} ahead  {files} file{'s' * (files != 1)} changed"
    )
