"""Asking Gas Town's issue tracker which bead hangs on a polecat's hook."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from witness.declare.attachment import Attachment, read_attachment
from witness.errors import WitnessError
from witness.launch.environment import filtered_environ

# bd answers in well under a second; behind a database server that starts it may need several.
_SECONDS = 20.0
# Work that is hooked, then work that was begun.
_STATUSES = ("hooked", "in_progress")


@dataclass(frozen=True, slots=True)
class HookedBead:
    """The bead on a polecat's hook.

    Args:
        id: its id, empty when nothing hangs there.
        title: what it is called.
        attachment: the formula and the variables that came with it.
    """

    id: str = ""
    title: str = ""
    attachment: Attachment = field(default_factory=Attachment)

    @property
    def task(self) -> str:
        """What the work is, in people's words; front matter stays at its top, where observers look for it."""
        prose = self.attachment.prose
        return prose if prose.startswith("---") or not self.title else f"{self.title}\n\n{prose}".strip()


def read_hooked_bead(rig: str, polecat: str, workdir: Path, database: Mapping[str, str]) -> HookedBead:
    """Ask ``bd`` for the bead of ``rig/polecats/polecat``.

    Args:
        rig, polecat: who.
        workdir: its worktree, from which ``bd`` finds the rig's beads.
        database: variables that say where the beads' database listens (``BEADS_DOLT_PORT`` and the like).

    Raises:
        WitnessError: there is no ``bd``, or it did not answer.
    """
    program = shutil.which("bd")
    if program is None:
        raise WitnessError("no bd on PATH: which formula a polecat of Gas Town works by is not known")
    # Nothing of a polecat's: a gt or bd that takes us for one would refresh its heartbeat.
    environment = {**filtered_environ(), **database}
    for status in _STATUSES:
        argv = [program, "list", "--json", f"--status={status}", f"--assignee={rig}/polecats/{polecat}", "--limit=0"]
        found = _first(_run(argv, workdir, environment))
        if found is not None:
            return found
    return HookedBead()


def _run(argv: list[str], workdir: Path, environment: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            argv, cwd=workdir, env=dict(environment), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise WitnessError(f"bd gave no answer within {_SECONDS:g} s") from error
    except OSError as error:
        raise WitnessError(f"bd cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip().splitlines()
        raise WitnessError(f"bd list failed: {reason[-1] if reason else f'exit code {done.returncode}'}")
    return done.stdout


def _first(text: str) -> HookedBead | None:
    try:
        raw: Any = json.loads(text)
    except ValueError:
        return None  # without results some versions print a sentence
    if not isinstance(raw, list) or not raw or not isinstance(raw[0], dict):
        return None
    bead = raw[0]
    return HookedBead(
        str(bead.get("id", "")), str(bead.get("title", "")), read_attachment(str(bead.get("description") or ""))
    )
