"""What a worktree holds that nothing else holds.

Theory of operation. ``look`` asks git for everything that differs from the last commit (changed, untracked and ignored
files, each by itself), for commits that no other branch, tag or remote has, and for what is under way (a merge, a
rebase). Submodules are looked at alike, for their repositories lie in the worktree's own folder and go with it. Left
out is what was laid there before the agent began: ``laid`` takes each such file's size, times and inode down, and a
file that has them still is as it was laid. Any doubt counts as work: what cannot be read, or was touched, is work.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from witness.files import read_from
from witness.process.git import GitError, git, git_line, git_says

#: Size, modification and change times in nanoseconds, inode, mode; None for a file that is not there.
Fingerprint = tuple[int, int, int, int, int] | None
# git's own memory of a file must not hide a change: not its times, nor an untracked cache.
_STRICT = ("-c", "core.trustctime=true", "-c", "core.checkStat=default", "-c", "core.untrackedCache=false")
_UNDER_WAY = {
    "rebase-merge": "a rebase", "rebase-apply": "a rebase", "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert", "BISECT_LOG": "a bisection",
}  # fmt: skip
# https://bford.info/cachedir: what a program can make again, by its own word.
_CACHE_TAG, _CACHE_SIGNATURE = "CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55"
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Findings:
    """What would be lost with a worktree.

    Args:
        changed: tracked files that differ from the last commit.
        untracked: files that git does not know.
        ignored: files that git ignores.
        commits: how many no other branch, tag or remote has.
        under_way: what git is in the midst of, in words; empty when nothing.
        locked: why a person has locked it; None when it is not.
    """

    changed: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    commits: int = 0
    under_way: str = ""
    locked: str | None = None

    def __bool__(self) -> bool:
        return bool(
            self.changed or self.untracked or self.ignored or self.commits or self.under_way or self.locked is not None
        )

    @property
    def words(self) -> str:
        """All of it in one line; empty when nothing would be lost."""
        parts = [
            _counted(self.changed, "changed file"),
            _counted(self.untracked, "new file"),
            f"{self.commits} unpushed commit{'s' * (self.commits != 1)}" if self.commits else "",
            _counted(self.ignored, "ignored file"),
            f"{self.under_way} under way" if self.under_way else "",
            "" if self.locked is None else f"locked{': ' * bool(self.locked)}{self.locked}",
        ]
        return ", ".join(filter(None, parts))


def _counted(paths: Collection[str], what: str) -> str:
    if not paths:
        return ""
    named = ["".join(each if each.isprintable() else "?" for each in path) for path in sorted(paths)[:_SHOWN]]
    return f"{len(paths)} {what}{'s' * (len(paths) != 1)} ({', '.join(named)}{', …' * (len(paths) > _SHOWN)})"


@dataclass
class _Gathered:
    changed: set[str] = field(default_factory=set)
    untracked: set[str] = field(default_factory=set)
    ignored: set[str] = field(default_factory=set)
    commits: int = 0


def look(
    path: Path, branch: str, base: str, laid: Mapping[str, Fingerprint], throwaway: Collection[str] = ()
) -> Findings:
    """Look for work in a worktree.

    Args:
        path: its folder.
        branch: the one that was made for it.
        base: the commit that it began at.
        laid: what was there before the agent began; see ``laid_files``.
        throwaway: names of files and folders that anybody can make again, as globs; they count where git ignores them.

    Raises:
        GitError: git cannot say; then nothing may be concluded.
        OSError: a file cannot be looked at.
    """
    found = _Gathered()
    _gather(path, "", found, throwaway)
    place = path / git_line(path, "rev-parse", "--absolute-git-dir")
    ours = [f"--exclude={name}" for name in dict.fromkeys((f"refs/heads/{branch}", _checked_out(path))) if name]
    tips = [
        "HEAD",
        *([f"refs/heads/{branch}"] if git_says(path, "rev-parse", "-q", "--verify", f"refs/heads/{branch}") else []),
    ]
    # "--glob" with "--exclude" takes whole names; "--branches" would take them without refs/heads/.
    known = [*ours, "--glob=refs/heads/*", "--glob=refs/remotes/*", "--glob=refs/tags/*", base]
    commits = int(git_line(path, "rev-list", "--count", *tips, "--not", *known))
    return Findings(
        tuple(sorted(_new(path, found.changed, laid))),
        tuple(sorted(_new(path, found.untracked, laid))),
        tuple(sorted(_new(path, found.ignored, laid))),
        commits + found.commits,
        next((words for name, words in _UNDER_WAY.items() if (place / name).exists()), ""),
        _lock_of(place),
    )


def laid_files(path: Path, throwaway: Collection[str] = ()) -> dict[str, Fingerprint]:
    """Every file that differs from the last commit, with its fingerprint: taken before the agent begins.

    Raises:
        GitError, OSError: as ``look``.
    """
    found = _Gathered()
    _gather(path, "", found, throwaway)
    return {each: fingerprint(path / each) for each in (*found.changed, *found.untracked, *found.ignored)}


def fingerprint(path: Path) -> Fingerprint:
    """What changes with every change of a file; no link is followed."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_mode)


def _new(path: Path, names: Collection[str], laid: Mapping[str, Fingerprint]) -> list[str]:
    return [name for name in names if name not in laid or laid[name] != fingerprint(path / name)]


def _checked_out(path: Path) -> str:
    try:
        return git_line(path, "symbolic-ref", "-q", "HEAD")
    except GitError:
        return ""  # no branch is checked out


def _lock_of(place: Path) -> str | None:
    try:
        said = read_from(place / "locked", 0, 800, owners=()).decode(errors="replace")[:200]
    except FileNotFoundError:
        return None
    return " ".join("".join(each if each.isprintable() else " " for each in said).split())


def _gather(path: Path, prefix: str, found: _Gathered, throwaway: Collection[str]) -> None:
    """Take in one repository, then its submodules."""
    output = git(
        path, *_STRICT, "status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignored=matching",
        "--ignore-submodules=none", "--no-renames",
    )  # fmt: skip
    for entry in output.split(b"\0"):
        kind, fields = entry[:1], {b"1": 8, b"u": 10, b"?": 1, b"!": 1}.get(entry[:1])
        if fields is None:
            continue
        name = os.fsdecode(entry.split(b" ", fields)[fields])
        if kind == b"!":
            for each in _ignored_below(path, name, throwaway):
                found.ignored.add(prefix + each)
        elif kind == b"?":
            # A folder stands for itself only where it is a repository of its own.
            found.untracked.add(prefix + name.rstrip("/"))
        else:
            found.changed.add(prefix + name)
    # What git was told not to look at.
    for entry in git(path, "ls-files", "-v", "-z").split(b"\0"):
        mark, name = entry[:1], os.fsdecode(entry[2:])
        if mark and (mark == b"S" or mark.islower()) and os.path.lexists(path / name):
            found.changed.add(prefix + name)
    for name in _submodules(path):
        inner = path / name
        found.commits += int(git_line(inner, "rev-list", "--count", "--all", "HEAD", "--not", "--remotes"))
        _gather(inner, f"{prefix}{name}/", found, throwaway)


def _submodules(path: Path) -> Iterator[str]:
    for entry in git(path, "ls-files", "-s", "-z").split(b"\0"):
        if entry.startswith(b"160000 "):
            name = os.fsdecode(entry.split(b"\t", 1)[1])
            if os.path.lexists(path / name / ".git"):
                yield name


def _ignored_below(root: Path, name: str, throwaway: Collection[str]) -> Iterator[str]:
    """The files that one ignored entry stands for, but those that can be made again.

    Raises:
        OSError: a folder cannot be read.
    """
    left = [name.rstrip("/")]
    while left:
        each = left.pop()
        if any(fnmatchcase(part, pattern) for part in each.split("/") for pattern in throwaway):
            continue
        full = root / each
        try:
            mode = full.lstat().st_mode
        except FileNotFoundError:
            continue
        if not stat.S_ISDIR(mode):
            yield each
        elif not _is_cache(full):
            left += [f"{each}/{inner}" for inner in sorted(os.listdir(full))]  # noqa: PTH208 - names only


def _is_cache(folder: Path) -> bool:
    try:
        return read_from(folder / _CACHE_TAG, 0, len(_CACHE_SIGNATURE), owners=()) == _CACHE_SIGNATURE
    except OSError:
        return False
