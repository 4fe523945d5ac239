"""The issue that the polecat works on: a text, a file, or a bead."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

from sidecars.observer.context import Context
from sidecars.observer.context.files import read_front_matter, read_text, within
from sidecars.observer.context.fixed_texts import found
from witness.assignment import Assignment
from witness.files import is_glob
from witness.process.child_programs import filtered_environ

_BEAD = re.compile(r"[a-z][a-z0-9]*-[a-z0-9.]+")
_BEAD_SECONDS = 5.0
# One within braces belongs to a glob.
_COMMA = re.compile(r",(?![^{}]*\})")


def add_issue(material: Context, assignment: Assignment) -> Context:
    """Add the issue and its files.

    The argument is the issue's file, a bead's id, or globs (``!`` in front of those out of scope); without one the task
    is the issue. The variables ``scope_files`` and ``scope_not`` (or ``files`` and ``not``) beat its front matter.

    Raises:
        DeclarationError: the file is missing, or its front matter is wrong.
    """
    argument = assignment.argument
    text, path = assignment.task, "--task"
    sets: dict[str, tuple[str, ...]] = {}
    if argument and ("!" in argument or is_glob(argument)):
        globs = _split(argument)
        sets["files"] = tuple(glob for glob in globs if not glob.startswith("!"))
        sets["not"] = tuple(glob[1:] for glob in globs if glob.startswith("!"))
    elif argument:
        path = str(Path(assignment.workdir, argument))
        text = found(f"bead {argument}", lambda: _bead(argument, assignment)) or read_text(Path(path))
    workdir = Path(assignment.workdir)
    front = read_front_matter(text, path)
    for name, globs_found in front.sets.items():
        sets.setdefault(name, globs_found)
    for name in ("files", "not"):
        variables = assignment.variables
        if given := _split(variables.get(f"scope_{name}", "") or variables.get(name, "")):
            sets[name] = given
    body = front.body.strip()
    return replace(
        material,
        sets={**material.sets, **sets},
        documents=material.documents + ((("issue", body),) if body else ()),
        rules=material.rules + tuple(replace(rule, source=within(rule.source, workdir)) for rule in front.rules),
    )


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in _COMMA.split(text) if part.strip())


def _bead(name: str, assignment: Assignment) -> str:
    """What ``bd show`` says of a bead; empty when it is none, or there is no ``bd``."""
    if not _BEAD.fullmatch(name) or Path(assignment.workdir, name).exists() or not (program := shutil.which("bd")):
        return ""
    try:
        done = subprocess.run(
            [program, "show", name],
            cwd=assignment.workdir,
            env=filtered_environ(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_BEAD_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""
