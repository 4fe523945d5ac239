"""The bead on a polecat's hook, as Gas Town's issue tracker tells it: which formula, with which variables.

Gas Town writes it into the bead's description, one ``key: value`` a line, the keys in any case, with ``_``, ``-`` or
nothing between their words.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from witness.errors import WitnessError
from witness.process.child_programs import filtered_environ


@dataclass(frozen=True, slots=True)
class Attachment:
    """The attached work.

    Args:
        formula: name of the formula, empty when none is attached.
        variables: what was given with ``gt sling --var``.
        prose: the rest of the description: what people wrote.
    """

    formula: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    prose: str = ""


# Every field that Gas Town writes among people's words, without the marks between its words.
_FIELDS = frozenset(
    [
        "attachedformula", "attachedmolecule", "attachedat", "attachedargs", "attachedvars", "dispatchedby", "nomerge",
        "reviewonly", "mode", "convoyid", "convoy", "mergestrategy", "convoyowned", "formulavars",
    ]
)  # fmt: skip


def read_attachment(description: str) -> Attachment:
    """Read a bead's description; lines that are no such field are somebody's prose."""
    formula, attached, given = "", {}, {}
    lines = description.splitlines()
    prose: list[str] = []
    below: set[int] = set()
    for at, line in enumerate(lines):
        key, colon, value = line.strip().partition(":")
        name = key.strip().lower().replace("_", "").replace("-", "")
        value = value.strip()
        if not colon or not value or name not in _FIELDS:
            prose += [line] if at not in below else []
            continue
        if name == "attachedformula":
            formula = value
        elif name == "attachedvars":
            attached = _pairs(_list(value))
        elif name == "formulavars":
            # Several are written one below the other, and only the first stands behind the key.
            more = _bare_pairs(lines[at + 1 :])
            given = _pairs([value, *more])
            below = set(range(at + 1, at + 1 + len(more)))
    return Attachment(formula, {**given, **attached}, "\n".join(prose).strip())


def _list(value: str) -> list[str]:
    try:
        raw = json.loads(value)
    except ValueError:
        return [part.strip() for part in value.split(",")]
    return [each for each in raw if isinstance(each, str)] if isinstance(raw, list) else []


def _bare_pairs(lines: list[str]) -> list[str]:
    found = []
    for line in lines:
        name, equals, _ = line.strip().partition("=")
        if not equals or not name.isidentifier():
            break
        found.append(line.strip())
    return found


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if equals and name.strip():
            pairs[name.strip()] = value.strip()
    return pairs


# Asking Gas Town's issue tracker which bead hangs on a polecat's hook.

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
