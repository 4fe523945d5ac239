"""Conditions of rules about what an action was: programs that ran, files that were made, packages that were added."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from sidecars.observer.context.project_names import new_definitions
from sidecars.syntax.command_pattern import CommandPattern
from sidecars.syntax.manifests import packages
from sidecars.type_reader.sidecar_type import Rule
from witness.expressions import Expression
from witness.judging.observation import Observation

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

# A condition looks at an action and gives all that it found there; nothing when it does not hold.
Values = dict[str, str]
Condition = Callable[[Observation], Sequence[Values]]
_LONGEST = 160


def action_conditions(rule: Rule) -> list[Condition]:
    """The rule's conditions of this kind, the cheapest first."""
    conditions: list[Condition] = []
    if rule.runs:
        conditions.append(_runs(rule.runs))
    if rule.creates:
        conditions.append(_creates(rule))
    if rule.adds_dependency:
        conditions.append(_adds_dependency)
    if rule.named:
        conditions.append(_named(rule.expression("named")))
    return conditions


def _runs(texts: Sequence[str]) -> Condition:
    patterns = [CommandPattern(text) for text in texts]

    def condition(seen: Observation) -> Sequence[Values]:
        return [
            {"ran": " ".join(" ".join(ran.words).split())[:_LONGEST]}
            for ran in seen.ran
            if any(pattern.matches(ran) for pattern in patterns)
        ][:1]

    return condition


def _creates(rule: Rule) -> Condition:
    chosen = PathSet(rule.creates)
    excepted = PathSet(rule.but_not)
    within = PathSet(rule.within or ("**",))

    def condition(seen: Observation) -> Sequence[Values]:
        made = seen.created
        if not made and seen.tool == "Write" and not seen.replaced:  # a client that does not say whether it is new
            made = seen.written
        return [
            {"path": path, "done": seen.done()[path], "set": str(chosen)}
            for path in made
            if path in chosen and path not in excepted and path in within
        ]

    return condition


def _adds_dependency(seen: Observation) -> Sequence[Values]:
    found = []
    for path in seen.written:
        if seen.text:
            new = packages(path, seen.text) - packages(path, seen.replaced)
            found += [{"path": path, "done": seen.done()[path], "name": name} for name in sorted(new)]
    return found


def _named(expression: Expression) -> Condition:
    def condition(seen: Observation) -> Sequence[Values]:
        return [
            {"name": each.name, "match": each.name}
            for each in new_definitions(seen.written, seen.text)
            if each.kind in ("function", "method") and expression.search(each.name)
        ]

    return condition


# Sets of files, given by globs as in `.gitignore`.


class PathSet:
    """Globs that a file matches or not.

    Relative files are matched from the agent's workdir. A glob that begins with ``/`` or ``~`` also means the
    file system's root or the home folder, and only such a glob matches a file outside of the workdir.
    """

    def __init__(self, globs: Iterable[str]) -> None:
        self.globs = tuple(globs)
        self._folders = any(glob.endswith(("/", "/**")) for glob in self.globs)
        self._inside, self._outside = _compiled(self.globs, os.path.expanduser("~"))  # noqa: PTH111 - a tenth of Path.home()'s time

    def __bool__(self) -> bool:
        return bool(self.globs)

    def __contains__(self, path: str) -> bool:
        chosen, path = (self._outside, path[1:]) if path.startswith("/") else (self._inside, path)
        # A folder itself counts as inside of "folder/" and "folder/**": a command that lists it has opened what is in
        # it.
        return chosen.match_file(path) or (self._folders and chosen.match_file(f"{path}/."))

    def __str__(self) -> str:
        shown = ", ".join(self.globs[:6])
        return shown + (", …" if len(self.globs) > 6 else "")


# Many rules of a type name the same files, and an evaluation makes them anew for each case.
@lru_cache(maxsize=1024)
def _compiled(globs: tuple[str, ...], home: str) -> tuple[GitIgnoreSpec, GitIgnoreSpec]:
    """What matches inside of the workdir, and what outside."""
    from pathspec import GitIgnoreSpec

    full = [home + glob[1:] if glob.startswith("~/") else glob for glob in globs]
    return (
        GitIgnoreSpec.from_lines(_rooted(glob) for glob in full if not glob.startswith(home + "/")),
        GitIgnoreSpec.from_lines(glob for glob in full if glob.startswith("/")),
    )


def _rooted(glob: str) -> str:
    return glob.removeprefix("./")


def path_set(globs: Iterable[str], sets: Mapping[str, tuple[str, ...]]) -> PathSet:
    """The set that a rule's list means; ``@name`` stands for a set of the context, an unknown one for none."""
    flat: list[str] = []
    for glob in globs:
        if glob.startswith("@"):
            flat += sets.get(glob[1:], ())
        else:
            flat.append(glob)
    return PathSet(flat)
