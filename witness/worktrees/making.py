"""Making a worktree: what is checked first, then git, then the files and commands that a project wants in it.

Theory of operation. ``plan_worktree`` only looks. Everything else happens between two states of the journal: MAKING is
written before the first byte, READY after the last one and before any agent starts. So a worktree that is found MAKING
after a crash holds nothing of anybody's and is removed whole; one that is READY is judged by what it holds.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from witness.config.town import Town
from witness.errors import UsageError, WitnessError
from witness.files import open_log, read_from
from witness.journal import Worktree
from witness.names import MARKER_VARIABLE, GroupId
from witness.process.child_programs import TOKEN_VARIABLE, end_tree, filtered_environ
from witness.process.git import GitError, git, git_line, git_says
from witness.worktrees.findings import laid_files
from witness.worktrees.place import save_laid, worktree_path

_BRANCH_LONGEST = 200
# A checkout of gigabytes, or a submodule from afar.
_MAKING_SECONDS = 1800.0
_LOG_TAIL = 4096


@dataclass(frozen=True, slots=True)
class WorktreePlan:
    """A worktree that can be made.

    Args:
        worktree: as it will be recorded.
        source: the work tree that it is made from.
        workdir: where in it the agent will work.
        files: what is taken along from the source, as ``worktree_files`` of the settings.
        setup: commands that are run in it.
        setup_timeout: seconds for each.
        throwaway: names of ignored files that anybody can make again.
        warnings: one line each.
    """

    worktree: Worktree
    source: Path
    workdir: Path
    files: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    setup_timeout: float = 600.0
    throwaway: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def plan_worktree(
    town: Town,
    group: GroupId,
    workdir: Path,
    *,
    branch: str = "",
    base: str = "",
    files: Sequence[str] = (),
    setup: Sequence[str] = (),
    setup_timeout: float = 600.0,
    throwaway: Sequence[str] = (),
) -> WorktreePlan:
    """Check that a worktree can be made, without making anything.

    Args:
        town: its town.
        group: whose it will be.
        workdir: where the agent would work without one.
        branch: its name; one after the polecat and the run when empty.
        base: what it begins at; the commit that is checked out when empty.
        files, setup, setup_timeout, throwaway: of the settings.

    Raises:
        UsageError: it cannot be made; one line.
    """
    try:
        if git_line(workdir, "rev-parse", "--is-bare-repository") == "true":
            raise UsageError(f"{workdir} is a bare repository: give --workdir a checkout of it")
        source = Path(git_line(workdir, "rev-parse", "--show-toplevel"))
        repository = git_line(workdir, "rev-parse", "--path-format=absolute", "--git-common-dir")
    except GitError as error:
        if "not a git repository" in str(error):
            raise UsageError(f"{workdir} is in no git repository: git init there, or leave --worktree out") from error
        raise UsageError(f"no worktree of {workdir}: {error}") from error
    branch = branch or f"polecat/{group.polecat}-{group.run[:8]}"
    _check_branch(source, branch)
    commit = _commit(source, base)
    inner = Path(os.path.realpath(workdir)).relative_to(os.path.realpath(source))
    path = worktree_path(town, group)
    if inner.parts and not git_says(source, "cat-file", "-e", f"{commit}:{inner.as_posix()}/"):
        raise UsageError(f"{inner} is not in {base or 'the last commit'}: commit it, or give another --base")
    warnings = []
    status = git(source, "status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=all")
    if changed := sum(1 for entry in status.split(b"\0") if entry):
        warnings.append(
            f"{source} has {changed} uncommitted change{'s' * (changed != 1)}: the worktree begins at {commit[:10]} "
            "without them"
        )
    warnings += [
        f"worktree_files: {source} has no {name}" for name in map(_plain, files) if not os.path.lexists(source / name)
    ]
    worktree = Worktree(group.run, group.rig, group.polecat, str(path), repository, branch, commit)
    return WorktreePlan(
        worktree, source, path / inner, tuple(files), tuple(setup), setup_timeout, tuple(throwaway), tuple(warnings)
    )


def _check_branch(source: Path, branch: str) -> None:
    if len(branch) > _BRANCH_LONGEST or not git_says(source, "check-ref-format", "--branch", branch):
        raise UsageError(f"--branch {branch!r} is no name for a branch")
    for entry in os.fsdecode(git(source, "worktree", "list", "--porcelain")).split("\n\n"):
        fields = dict(line.partition(" ")[::2] for line in entry.splitlines())
        if fields.get("branch") == f"refs/heads/{branch}":
            raise UsageError(f"the branch {branch} is checked out in {fields.get('worktree')}: choose another --branch")
    if git_says(source, "rev-parse", "-q", "--verify", f"refs/heads/{branch}"):
        raise UsageError(f"a branch {branch} exists: choose another --branch, or begin at it with --base {branch}")


def _commit(source: Path, base: str) -> str:
    try:
        return git_line(source, "rev-parse", "-q", "--verify", "--end-of-options", f"{base or 'HEAD'}^{{commit}}")
    except GitError as error:
        if not base:
            raise UsageError(f"{source} has no commit yet: make one, or leave --worktree out") from error
        shallow = git_line(source, "rev-parse", "--is-shallow-repository") == "true"
        more = f"; {source} is a shallow clone: git fetch --unshallow" if shallow else ""
        raise UsageError(f"--base {base!r} is no commit of {source}{more}") from error


def make_worktree(town: Town, group: GroupId, plan: WorktreePlan, log: Path) -> None:
    """Make a worktree whose intent is on record.

    Args:
        town: its town.
        group: whose it is; what is started for it carries the group's marker, and so ends with the group.
        plan: of ``plan_worktree``.
        log: where the output of the set-up commands goes.

    Raises:
        WitnessError: it could not be made; what there is of it is for the caller to take away.
    """
    path, found = Path(plan.worktree.path), plan.worktree
    marker = {MARKER_VARIABLE: group.marker}
    git(
        plan.source, "worktree", "add", "--no-track", "-b", found.branch, "--", str(path), found.base,
        patience=_MAKING_SECONDS, variables=marker,
    )  # fmt: skip
    _make_submodules(plan, path, marker)
    try:
        for name in plan.files:
            _lay(plan.source, path, name)
    except (OSError, shutil.Error) as error:
        raise WitnessError(f"worktree_files: {error}") from error
    for command in plan.setup:
        _run_setup(command, plan, group, log)
    try:
        save_laid(town, found.run, laid_files(path, plan.throwaway))
    except OSError as error:
        raise WitnessError(f"its worktree cannot be recorded: {error}") from error


def _make_submodules(plan: WorktreePlan, path: Path, marker: dict[str, str]) -> None:
    """The submodules that the source has, with its objects; the others stay as in a fresh clone."""
    for entry in git(path, "ls-files", "-s", "-z").split(b"\0"):
        if not entry.startswith(b"160000 "):
            continue
        name = os.fsdecode(entry.split(b"\t", 1)[1])
        if os.path.lexists(plan.source / name / ".git"):
            objects = git_line(plan.source / name, "rev-parse", "--path-format=absolute", "--git-common-dir")
            git(
                path, "submodule", "--quiet", "update", "--init", "--recursive", "--reference", objects, "--", name,
                patience=_MAKING_SECONDS, variables=marker,
            )  # fmt: skip


def _plain(entry: str) -> str:
    return entry.removeprefix("link:").removeprefix("copy:")


def _lay(source: Path, path: Path, entry: str) -> None:
    """Take one path along: a folder as a link where git ignores the link too, all else as a copy."""
    name = _plain(entry)
    there, here = source / name, path / name
    if not os.path.lexists(there) or os.path.lexists(here):
        return  # it was told at the plan, or git has it
    here.parent.mkdir(parents=True, exist_ok=True)
    is_folder = there.is_dir() and not there.is_symlink()
    if entry.startswith("link:") or (is_folder and not entry.startswith("copy:")):
        here.symlink_to(there)
        # "node_modules/" in .gitignore means folders alone: the agent's "git add -A" would take the link in.
        if entry.startswith("link:") or git_says(path, "check-ignore", "-q", "--", name):
            return
        here.unlink()
    if is_folder:
        shutil.copytree(there, here, symlinks=True)
    else:
        shutil.copy2(there, here, follow_symlinks=False)


def _run_setup(command: str, plan: WorktreePlan, group: GroupId, log: Path) -> None:
    """Run one command of a project's set-up in the worktree."""
    token = uuid.uuid4().hex
    environment = filtered_environ() | {MARKER_VARIABLE: group.marker, TOKEN_VARIABLE: token}
    environment |= {"GT_WORKTREE_SOURCE": str(plan.source)}
    handle = open_log(log, below=log.parent.parent)
    try:
        os.write(handle, f"$ {command}\n".encode(errors="surrogateescape"))
        began = os.lseek(handle, 0, os.SEEK_END)
        try:
            program = subprocess.Popen(
                shlex.split(command), cwd=plan.workdir, env=environment, stdin=subprocess.DEVNULL, stdout=handle,
                stderr=handle, start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise WitnessError(f"setup: {command!r} cannot be started: {error}") from error
        try:
            code = program.wait(plan.setup_timeout)
        except subprocess.TimeoutExpired as error:
            raise WitnessError(
                f"setup: {command!r} did not end within {plan.setup_timeout:.0f} s (setup_timeout): see {log}"
            ) from error
        finally:
            end_tree(program, token)
        if code:
            raise WitnessError(f"setup: {command!r} failed ({code}){_last_line(log, began)}: see {log}")
    finally:
        os.close(handle)


def _last_line(log: Path, began: int) -> str:
    try:
        end = log.stat().st_size
        text = read_from(log, max(began, end - _LOG_TAIL), _LOG_TAIL).decode(errors="replace")
    except OSError:
        return ""
    line = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
    line = "".join(each for each in line if each.isprintable())[:200]
    return f": {line}" if line else ""
