"""What a polecat may change, as ``gt polecat spawn`` is told it: by globs, or by the words of its issue."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from witness.api import Witness
from witness.errors import UsageError
from witness.launch.spawn_request import SpawnRequest

if TYPE_CHECKING:
    from sidecars.observer.context.issue_paths import NamedPath

_TYPE = "scope"
_SIDE = {True: "out of scope", False: "in scope"}


@dataclass(frozen=True, slots=True)
class Scope:
    """What was said on the command line.

    Args:
        only, outside: the globs.
        accept: take the issue's words as they are read.
    """

    only: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    accept: bool = False


def with_scope(witness: Witness, request: SpawnRequest, scope: Scope, *, asks: bool) -> SpawnRequest:
    """The request with its scope told to a ``scope`` sidecar, which is added where none is declared.

    Without globs the issue's words are read, and what they name is shown. It counts when it is accepted by the flag or
    by a person.

    Args:
        witness: of the town.
        request: the rest.
        scope: what was said.
        asks: a person can be asked.

    Raises:
        UsageError: a glob is none, or nothing is named that could be accepted.
    """
    for option, globs in (("--only", scope.only), ("--not", scope.outside)):
        for glob in globs:
            if not glob.strip() or glob.startswith("!") or ".." in glob:
                raise UsageError(f"{option} {glob!r}: a glob below the working directory is wanted, such as 'src/**'")
    if scope.only or scope.outside:
        return _told(request, scope.only, scope.outside)
    words = _words(witness, request, scope)
    if not words:
        return request
    only = [each.glob for each in words if not each.forbidden]
    outside = [each.glob for each in words if each.forbidden]
    flags = " ".join(
        [*(f"--only {shlex.quote(glob)}" for glob in only), *(f"--not {shlex.quote(glob)}" for glob in outside)]
    )
    said = ", ".join(f"{each.glob} as {_SIDE[each.forbidden]} (line {each.line})" for each in words)
    if not scope.accept and asks:
        scope = replace(scope, accept=click.confirm(f"The issue's words name {said}. Hold it to that?", default=True))
    elif not scope.accept:
        click.echo(f"gt: the issue's words name {said}: if that is meant, add {flags}, or --accept-scope", err=True)
    else:
        click.echo(f"gt: by the issue's words it is held to {flags}: {said}", err=True)
    return _told(request, only, outside) if scope.accept else request


def _told(request: SpawnRequest, only: Sequence[str], outside: Sequence[str]) -> SpawnRequest:
    globs = {"scope_files": ",".join(map(_bare, only)), "scope_not": ",".join(map(_bare, outside))}
    return replace(request, more_variables={name: text for name, text in globs.items() if text}, more_sidecars=_TYPE)


def _bare(glob: str) -> str:
    return glob.strip().removeprefix("./")


def _words(witness: Witness, request: SpawnRequest, scope: Scope) -> tuple[NamedPath, ...]:
    """The paths that the issue's words name; none where its front matter says what is in scope.

    Raises:
        UsageError: they are to be accepted, and there are none.
    """
    from sidecars.observer.context.files import read_front_matter, read_text
    from sidecars.observer.context.issue_paths import paths_in_prose

    plan = witness.prepare(replace(request, check=None, ask_folder=None))
    scopes = [spec for spec in plan.specs if spec.type == _TYPE]
    if not (scope.accept or scopes):
        return ()
    texts = [read_text(path) for spec in scopes if spec.argument and (path := plan.workdir / spec.argument).is_file()]
    found: dict[str, NamedPath] = {}
    for text in dict.fromkeys([*texts, plan.task.text]):
        front = read_front_matter(text, "the issue")
        if front.sets:
            return ()
        for each in paths_in_prose(front.body, plan.workdir, 1 + text.count("\n") - front.body.count("\n")):
            found.setdefault(each.glob, each)
    if scope.accept and not found:
        raise UsageError("--accept-scope: the work names no path as allowed or forbidden: say --only or --not")
    return tuple(found.values())
