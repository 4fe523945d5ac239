"""The rules of Gas Town's formulas: kinds, steps, what refers to what. What its readers refuse is refused here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from witness.declare.cook import walk
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
    "worktree": True,
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


def slips(document: Document) -> list[Problem]:
    """What Gas Town's readers take, and nobody can work by: a formula without parts, needs that go in a circle."""
    if is_bare(document) or _misshapen(document, document.raw, _SHAPE, ()):
        return []
    kind = formula_kind(document) or "workflow"
    names = _PARTS.get(kind, ("steps",))
    if not any(_parts(document, part) for part in names):
        if document.raw.get("extends"):
            return []
        return [document.source(names[0]).problem(f"there is nothing to do: a {kind} has [[{names[0]}]]")]
    if kind not in ("workflow", "expansion"):
        return []
    needs = {str(step.get("id", "")): step_needs(step) for step in walk(_parts(document, names[0]))}
    known = {name: [each for each in wanted if each in needs] for name, wanted in needs.items()}
    return [document.source(names[0]).problem(fault) for fault in circles(known)]


def step_needs(step: Mapping[str, Any]) -> tuple[str, ...]:
    """What a step waits for, under either name."""
    found: list[str] = []
    for key in ("needs", "depends_on"):
        raw = step.get(key)
        found += [str(each) for each in raw] if isinstance(raw, list) else []
    return tuple(dict.fromkeys(found))


_WAITS = re.compile(r"^(all-children|any-children|children-of\([^()]+\))$")


def check_as_bd(document: Document, inherited: Iterable[str] = ()) -> list[Problem]:
    """What only ``bd`` refuses, which cooks and pours a formula.

    Args:
        document: the file.
        inherited: ids of the steps of all parents.
    """
    problems: list[Problem] = []
    variables = document.raw.get("vars")
    for name, each in variables.items() if isinstance(variables, Mapping) else ():
        if isinstance(each, Mapping) and each.get("required") is True and isinstance(each.get("default"), str):
            where = document.source("vars", name, "required")
            problems.append(where.problem("required and with a default: leave one of them away"))
    if formula_kind(document) not in ("", "workflow"):
        return problems
    steps = list(_placed(document.raw.get("steps"), ("steps",)))
    ids = {str(step.get("id", "")) for _, step in steps} | set(inherited)
    seen: set[str] = set()
    for place, step in steps:
        name = str(step.get("id", ""))
        if name in seen and len(place) > 2:  # at the top it is told already
            problems.append(document.source(*place, "id").problem(f"{name!r} is there twice: ids must differ"))
        seen.add(name)
        problems += _refused_by_bd(document, place, step, ids)
    return problems


def _refused_by_bd(document: Document, place: Place, step: Mapping[str, Any], ids: set[str]) -> Iterator[Problem]:
    source = document.source
    if not step.get("id") and len(place) > 2:
        yield source(*place, "id").problem('no id: give each one id = "…"')
    if not step.get("title") and (len(place) > 2 or not step.get("expand")):
        yield source(*place, "title").problem('no title: give each one title = "…"')
    priority = step.get("priority")
    if priority is not None and not (isinstance(priority, int) and 0 <= priority <= 4):
        yield source(*place, "priority").problem("must be a number from 0 to 4")
    for key in ("needs", "depends_on") if len(place) > 2 else ("depends_on",):
        for need in step.get(key, ()) if isinstance(step.get(key), list) else ():
            if need not in ids:
                yield source(*place, key).problem(f"{step.get('id')!r} needs {need!r}, which is no id here")
    waits = step.get("waits_for")
    if isinstance(waits, str) and waits and not _WAITS.match(waits):
        yield source(*place, "waits_for").problem("must be all-children, any-children or children-of(STEP)")
    over = step.get("on_complete")
    each = over.get("for_each") if isinstance(over, Mapping) else None
    if isinstance(each, str) and each and not each.startswith("output."):
        yield source(*place, "on_complete", "for_each").problem("must begin with output.")


def _placed(raw: Any, place: Place) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Each step with its place, its children after it."""
    for at, step in enumerate(raw if isinstance(raw, list) else ()):
        if isinstance(step, Mapping):
            yield (*place, at), step
            yield from _placed(step.get("children"), (*place, at, "children"))


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
    kind = formula_kind(document) or "workflow"
    if kind not in KINDS:
        what = f"type {kind!r} is not one of {', '.join(KINDS)}"
        return [*problems, document.source("type").problem(what)]
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
    part = _PARTS[kind][0]
    problems: list[Problem] = []
    seen: set[str] = set()
    for at, each in enumerate(_parts(document, part)):
        name = str(each.get("id", ""))
        if not name:
            problems.append(document.source(part, at, "id").problem('no id: give each one id = "…"'))
        elif name in seen:
            problems.append(document.source(part, at, "id").problem(f"{name!r} is there twice: ids must differ"))
        else:
            seen.add(name)
    if kind == "workflow":
        problems += _check_needs(document, part)
    return problems


def _check_needs(document: Document, part: str) -> list[Problem]:
    # Steps of a parent may be needed too; what is missing then shows only when all are merged.
    inherits = bool(document.raw.get("extends"))
    seen = {*(str(step.get("id", "")) for step in walk(_parts(document, part)))}
    return [
        document.source(part, at, "needs").problem(f"{each.get('id')!r} needs {need!r}, which is no id here")
        for at, each in enumerate(_parts(document, part))
        for need in each.get("needs", ())
        if need not in seen and not inherits
    ]


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
        steps.append(
            Step(
                str(each.get("id", "")), str(each.get("title", "")), str(each.get("description", "")), step_needs(each)
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
