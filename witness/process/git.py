"""Calling git: the user's own configuration holds, a repository's runs nothing, and nobody is asked for a password."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from witness.errors import WitnessError

#: A cloned repository's own configuration must run nothing, and no shortcut may hide a change.
SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false")
# A large work tree on a cold disk takes its time.
PATIENCE = 120.0
_LONGEST = 300


class GitError(WitnessError):
    """git said no, is not installed, or gave no answer; the text is one line."""


def git_environ() -> dict[str, str]:
    """The environment of git: that of the process without what would lead it to another repository."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or _is_config(name)}
    return environment | {
        "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_CEILING_DIRECTORIES": "",
    }  # fmt: skip


def _is_config(name: str) -> bool:
    # Which file is the user's configuration, as people and tests set it; not single values.
    return name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")


def git(
    folder: Path | str,
    *words: str,
    data: bytes = b"",
    patience: float = PATIENCE,
    variables: Mapping[str, str] | None = None,
) -> bytes:
    """What git prints.

    Args:
        folder: where it works.
        words: its subcommand and arguments.
        data: its standard input.
        patience: seconds until it is ended.
        variables: for its environment.

    Raises:
        GitError: it failed.
    """
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *SAFE, *words],
            input=data, capture_output=True, env=git_environ() | dict(variables or {}), timeout=patience, check=False,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise GitError("git is not installed: install it, or leave --worktree out") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(f"git {words[0]} gave no answer within {patience:.0f} s in {folder}") from error
    except (OSError, ValueError) as error:
        raise GitError(f"git cannot be started: {error}") from error
    if done.returncode != 0:
        raise GitError(f"git {words[0]}: {_complaint(done.stderr) or f'exit {done.returncode}'}")
    return done.stdout


def git_says(folder: Path | str, *words: str) -> bool:
    """Whether git answers with success; a git that cannot be called says no."""
    try:
        git(folder, *words)
    except GitError:
        return False
    return True


def git_line(folder: Path | str, *words: str) -> str:
    """The one line that git prints.

    Raises:
        GitError: it failed.
    """
    return os.fsdecode(git(folder, *words)).rstrip("\n")


def _complaint(said: bytes) -> str:
    """The line of git's own words that says what is wrong."""
    lines = [line.strip() for line in said.decode(errors="replace").splitlines() if line.strip()]
    marked = [line for line in lines if line.startswith(("fatal:", "error:"))]
    line = (marked or lines or [""])[-1]
    return "".join(each for each in line if each.isprintable())[:_LONGEST]
