"""What a polecat is to do: the task in words, and the prompt it is started with."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from witness.errors import Problem
from witness.names import GroupId
from witness.prompts.blocks import minimal_prompt

_LARGEST_ISSUE = 256 * 1024
_BD_SECONDS = 10.0
# A task of this length is work for the prompt itself; a longer one is better read from its file.
_FINISH = "When it is finished, run `gt done`."


@dataclass(frozen=True, slots=True)
class Task:
    """The work.

    Args:
        text: all of it, for the sidecars (front matter of an issue included); empty when none was given.
        source: the issue's file or id, empty for a task in words.
    """

    text: str = ""
    source: str = ""

    def prompt(self, group: GroupId, sidecars: Sequence[str], memory: str = "") -> str:
        """The minimal prompt of a polecat with this task; empty when it has none.

        Args:
            group: who it is.
            sidecars: names of those it may ask.
            memory: its briefing, framed as data already; empty when none.
        """
        if not self.text and not memory:
            return ""
        objective = f"Do what {self.source} asks; read it first." if self.source else self.text
        prompt = minimal_prompt(
            f"You are {group.polecat}, a coding agent working alone in this directory.",
            f"{objective} {_FINISH}".strip(),
            polecat=group.address,
            sidecars=sidecars,
        )
        return f"{prompt}\n{memory}" if memory else prompt


def read_task(task: str, issue: str, workdir: Path) -> tuple[Task, list[Problem]]:
    """The work as it was ordered.

    Args:
        task: the text of ``--task``.
        issue: file or id of ``--issue``.
        workdir: relative files are read from here.

    Returns:
        (the task, what is wrong with the order).
    """
    if not issue:
        return Task(task), []
    path = workdir / issue
    if path.is_file():
        try:
            with path.open("rb") as file:
                return Task(file.read(_LARGEST_ISSUE).decode("utf-8-sig", errors="replace"), issue), []
        except OSError as error:
            return Task(), [Problem(f"cannot be read: {error}", issue)]
    return _ask_bd(issue, workdir)


def _ask_bd(issue: str, workdir: Path) -> tuple[Task, list[Problem]]:
    """Gas Town's own issue tracker, where it is installed."""
    if not shutil.which("bd"):
        return Task(), [Problem(f"no file {issue!r} under {workdir}, and no bd to ask for an issue", "--issue")]
    try:
        done = subprocess.run(
            ["bd", "show", "--", issue], cwd=workdir, capture_output=True, timeout=_BD_SECONDS, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return Task(), [Problem(f"bd show {issue} gave no answer: {error}", "--issue")]
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        return Task(), [Problem(f"neither a file nor an issue of bd's: {said[0] if said else issue}", "--issue")]
    return Task(done.stdout[:_LARGEST_ISSUE].decode(errors="replace"), issue), []
