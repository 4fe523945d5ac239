"""The rules of Gas Town's formulas: kinds, steps, what refers to what. What its readers refuse is refused here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from witness.declare.document import Document
from witness.declare.source import Place, dotted
from witness.errors import Problem, did_you_mean
from witness.process.limits import LIMITS

KINDS = ("convoy", "workflow", "expansion", "aspect")
# Which list of parts each kind consists of; `advice` is how bd writes an aspect.
_PARTS: dict[str, tuple[str, ...]] = {
    "workflow": ("steps",),
    "convoy": ("legs",),
    "expansion": ("template",),
    "aspect": ("aspects", "advice"),
}
_STRINGS = ["…"]
_STEP: dict[str, Any] = {
    "id": "…",
    "title": "…",
    "description": "…",
    "needs": _STRINGS,
    "parallel": True,
    "interactive": True,
    "acceptance": "…",
}
_LEG: dict[str, Any] = {
    "id": "…",
    "title": "…",
    "focus": "…",
    "description": "…",
    "agent": "…",
    "review_only": True,
}
# An example of each key that has a fixed type; keys that are not named here are left alone, as by Gas Town's readers.
_SHAPE: dict[str, Any] = {
    "formula": "…",
    "description": "…",
    "type": "…",
    "version": 1,
    "pour": True,
    "agent": "…",
    "review_only": True,
    "inputs": {"*": {"description": "…", "type": "…", "required": True, "required_unless": _STRINGS, "default": "…"}},
    "prompts": {"*": "…"},
    "output": {"directory": "…", "leg_pattern": "…", "synthesis": "…"},
    "legs": [_LEG],
    "synthesis": {"title": "…", "description": "…", "depends_on": _STRINGS},
    "steps": [_STEP],
    "extends": _STRINGS,
    "compose": {"expand": [{"target": "…", "with": "…"}], "aspects": _STRINGS},
    "template": [_STEP],
    "aspects": [_LEG],
}


# What bd's reader, or a newer Gas Town's, knows beside these, by where it stands.
_ALSO: Mapping[str, frozenset[str]] = {
    "": frozenset(["vars", "advice", "pointcuts", "phase", "source", "title", "labels", "metadata", "squash", *LIMITS]),
    "steps": frozenset(
        [
            "notes",
            "type",
            "priority",
            "labels",
            "metadata",
            "depends_on",
            "waits_for",
            "assignee",
            "expand",
            "expand_vars",
            "condition",
            "children",
            "gate",
            "loop",
            "on_complete",
            "tags",
            "target",
            "agent",
            "ephemeral",
        ]
    ),
}
#: Every key at the top of a formula that is known.
FORMULA_KEYS = frozenset([*_SHAPE, *_ALSO[""], *(part for parts in _PARTS.values() for part in parts)])
# What decides who observes the polecat: a slip here would leave it unobserved.
_OBSERVERS = "sidecars"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a workflow."""

    id: str
    title: str = ""
    description: str = ""
    needs: tuple[str, ...] = ()


def formula_name(document: Document) -> str:
    """What the formula calls itself, else its file's name without endings."""
    name = document.raw.get("formula")
    return name if isinstance(name, str) and name else document.path.name.partition(".")[0]


def formula_kind(document: Document) -> str:
    """The declared type, else the one that the content shows, else empty."""
    raw = document.raw
    given = raw.get("type")
    if isinstance(given, str) and given:
        return given
    if raw.get("extends"):
        return "workflow"
    return next((kind for kind, parts in _PARTS.items() if any(raw.get(part) for part in parts)), "")


def is_bare(document: Document) -> bool:
    """Whether the file holds ``[vars]`` and nothing that makes it a formula."""
    parts = [part for names in _PARTS.values() for part in names]
    return not any(document.raw.get(key) for key in ("formula", "type", "extends", "compose", *parts))


def check_formula(document: Document, *, strict: bool) -> list[Problem]:
    """Everything but ``[vars]`` that Gas Town would refuse.

    Args:
        document: the file.
        strict: also refuse a file of bare ``[vars]``.
    """
    problems = _misshapen(document, document.raw, _SHAPE, ())
    if problems:
        return problems  # what is of the wrong type cannot be looked into
    if is_bare(document) and not strict:
        return []
    if not document.raw.get("formula"):
        problems.append(document.source("formula").problem('no name: begin the file with formula = "mol-…"'))
    kind = formula_kind(document)
    if kind not in KINDS:
        what = (
            f"type {kind!r} is not one"
            if kind
            else "no type and nothing to tell it by: add [[steps]], or set type to one"
        )
        return [*problems, document.source("type").problem(f"{what} of {', '.join(KINDS)}")]
    problems += _check_parts(document, kind)
    if kind == "convoy":
        problems += _check_convoy(document)
    return problems


def unknown_keys(document: Document) -> tuple[list[Problem], list[Problem]]:
    """(faults, warnings) about keys that nobody reads: faults where a slip would leave the polecat unobserved."""
    faults: list[Problem] = []
    warnings: list[Problem] = []
    raw = document.raw
    for place, table, known in _tables(document):
        for key in table:
            if key in known:
                continue
            here = document.source(*place, key)
            if not here.line and isinstance(table[key], Mapping) and table[key]:
                # [key.name] alone stands in the file.
                here = replace(here, line=document.source(*place, key, next(iter(table[key]))).line)
            near = did_you_mean(key, known)
            if place[:2] == ("vars", _OBSERVERS):
                faults.append(here.problem(f"unknown key; {near or 'known are ' + ', '.join(known)}"))
            elif not place and (did_you_mean(key, ["vars", _OBSERVERS])):
                faults.append(
                    here.problem(f"unknown key; write [vars.{_OBSERVERS}] for the sidecars, [vars] for others")
                )
            else:
                warnings.append(
                    here.problem(" ".join(filter(None, ("unknown key, which nobody reads;", near))).rstrip(";"))
                )
    names = raw["vars"] if isinstance(raw.get("vars"), Mapping) else {}
    if _OBSERVERS not in names:
        faults += [
            document.source("vars", name).problem(f"did you mean {_OBSERVERS}? as it is, nobody observes the polecat")
            for name in names
            if name.lower().rstrip("s") in ("sidecar", "side_car", "side-car") or name.lower() == _OBSERVERS
        ]
    return faults, warnings


def _tables(document: Document) -> Iterator[tuple[Place, Mapping[str, Any], list[str]]]:
    """Each table whose keys are known, with them."""
    raw = document.raw
    yield (), raw, [*_SHAPE, *_ALSO[""]]
    for part, shape in (("steps", _STEP), ("template", _STEP), ("legs", _LEG), ("aspects", _LEG)):
        for at, each in enumerate(_parts(document, part)):
            yield (part, at), each, [*shape, *_ALSO["steps"]]
    variables = raw.get("vars")
    for name, each in variables.items() if isinstance(variables, Mapping) else ():
        if isinstance(each, Mapping):
            yield ("vars", name), each, ["default", "description", "required", "enum", "pattern", "type"]


def _misshapen(document: Document, value: Any, shape: Any, place: Place) -> list[Problem]:
    """Where ``value`` is of another type than its example in ``shape``."""
    if isinstance(shape, dict):
        if not isinstance(value, Mapping):
            return [_wrong(document, place, f"must be a table: write [{dotted(place)}]")]
        inner = shape.get("*")
        return [
            problem
            for key, each in value.items()
            if (example := inner if inner is not None else shape.get(key)) is not None
            for problem in _misshapen(document, each, example, (*place, key))
        ]
    if isinstance(shape, list):
        tables = isinstance(shape[0], dict)
        if not isinstance(value, list):
            form = f"[[{dotted(place)}]]" if tables else f'{place[-1]} = ["…"]'
            return [_wrong(document, place, f"must be an array: write {form}")]
        return [
            problem for at, each in enumerate(value) for problem in _misshapen(document, each, shape[0], (*place, at))
        ]
    if isinstance(value, bool) != isinstance(shape, bool) or not isinstance(value, type(shape)):
        form = {str: "a string", bool: "true or false", int: "a whole number"}[type(shape)]
        return [_wrong(document, place, f"must be {form}")]
    return []


def _wrong(document: Document, place: Place, message: str) -> Problem:
    return document.source(*place).problem(message)


def _parts(document: Document, part: str) -> list[Mapping[str, Any]]:
    raw = document.raw.get(part, [])
    return [each for each in raw if isinstance(each, Mapping)] if isinstance(raw, list) else []


def _check_parts(document: Document, kind: str) -> list[Problem]:
    names = _PARTS[kind]
    if not any(_parts(document, part) for part in names):
        if kind == "workflow" and document.raw.get("extends"):
            return []
        return [document.source(names[0]).problem(f"a {kind} needs at least one [[{names[0]}]]")]
    part = names[0]
    problems: list[Problem] = []
    seen: dict[str, tuple[str, ...]] = {}
    for at, each in enumerate(_parts(document, part)):
        name = str(each.get("id", ""))
        if not name:
            problems.append(document.source(part, at, "id").problem('no id: give each one id = "…"'))
        elif name in seen:
            problems.append(document.source(part, at, "id").problem(f"{name!r} is there twice: ids must differ"))
        else:
            seen[name] = tuple(each.get("needs", ()))
    if kind in ("workflow", "expansion"):
        problems += _check_needs(document, part, seen)
    return problems


def _check_needs(document: Document, part: str, seen: Mapping[str, Iterable[str]]) -> list[Problem]:
    # Steps of a parent may be needed too; what is missing then shows only when all are merged.
    inherits = bool(document.raw.get("extends"))
    problems = [
        document.source(part, at, "needs").problem(f"{each.get('id')!r} needs {need!r}, which is no id here")
        for at, each in enumerate(_parts(document, part))
        for need in each.get("needs", ())
        if need not in seen and not inherits
    ]
    return problems or [document.source(part).problem(fault) for fault in circles(seen)]


def circles(needs: Mapping[str, Iterable[str]]) -> list[str]:
    """A line for a circle in what needs what; none when there is an order."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return [f"needs go round in a circle: {' → '.join(error.args[1])}"]
    return []


def _check_convoy(document: Document) -> list[Problem]:
    raw = document.raw
    legs = {each.get("id") for each in _parts(document, "legs")}
    problems = [
        document.source("synthesis", "depends_on").problem(f"{name!r} is no leg's id")
        for name in raw.get("synthesis", {}).get("depends_on", ())
        if name not in legs
    ]
    inputs = raw.get("inputs", {})
    return problems + [
        document.source("inputs", key, "required_unless").problem(f"{name!r} is no input")
        for key, each in inputs.items()
        for name in each.get("required_unless", ())
        if name not in inputs
    ]


def read_steps(document: Document, part: str = "steps") -> tuple[Step, ...]:
    """The steps that stand in the file itself; those that are misshapen are left out."""
    steps = []
    for each in _parts(document, part):
        needs = each.get("needs", ())
        steps.append(
            Step(
                str(each.get("id", "")),
                str(each.get("title", "")),
                str(each.get("description", "")),
                tuple(map(str, needs)) if isinstance(needs, list) else (),
            )
        )
    return tuple(steps)


_TEXT_KEYS = ("title", "description", "focus")


def formula_texts(document: Document) -> Iterable[tuple[Place, str]]:
    """Every text of the formula in which placeholders are filled, with its place."""
    raw = document.raw
    yield ("description",), str(raw.get("description", ""))
    for part in ("steps", "legs", "template", "aspects"):
        for at, each in enumerate(_parts(document, part)):
            for key in _TEXT_KEYS:
                yield (part, at, key), str(each.get(key, ""))
    for table in ("synthesis", "prompts", "output"):
        for key, text in raw.get(table, {}).items():
            if isinstance(text, str):
                yield (table, key), text
    for name, each in raw.get("inputs", {}).items():
        for key in ("description", "default"):
            yield ("inputs", name, key), str(each.get(key, ""))
