"""The ``[vars]`` of a formula: what may be given, what it is when nothing is given, and ``{{placeholders}}``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from witness.declare.document import Document
from witness.declare.sidecar_spec import ACCEPTED_FORM
from witness.declare.source import Source
from witness.errors import Problem
from witness.expressions import foreign

SIDECARS = "sidecars"
PLACEHOLDER = re.compile(r"\{\{([A-Za-z_][A-Za-z0-9_]*)\}\}")
# Words of the template language in which some formulas' texts are written; Gas Town does not take them for variables.
TEMPLATE_WORDS = frozenset(
    [
        "else",
        "this",
        "root",
        "index",
        "key",
        "first",
        "last",
        "end",
        "range",
        "with",
        "block",
        "define",
        "template",
        "nil",
    ],
)
_KINDS: dict[str, tuple[type, str]] = {
    "description": (str, "a string"),
    "required": (bool, "true or false"),
    "default": (str, 'a string, as in default = "3"'),
    "type": (str, "a string"),
    "pattern": (str, "a string"),
    "enum": (list, "an array of strings"),
}
#: The keys of a variable.
VARIABLE_KEYS = frozenset(_KINDS)


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable that a formula declares.

    Args:
        name: its name.
        source: where it is declared; complaints about its value name this place.
        default: its value when none is given; None when it has none.
        description: for people.
        required: whether it must be given when it has no default.
        enum: the values that are allowed; empty allows all.
        pattern: what a value must match as a whole; empty allows all.
    """

    name: str
    source: Source
    default: str | None = None
    description: str = ""
    required: bool = False
    enum: tuple[str, ...] = ()
    pattern: str = ""

    def fault(self, value: str) -> str:
        """Why ``value`` may not be given for it; empty when it may."""
        if self.enum and value not in self.enum:
            return f"{value!r} is not one of {', '.join(self.enum)}"
        if self.pattern and not foreign(self.pattern).search(value):
            return f"{value!r} does not match {self.pattern}"
        return ""


def read_variables(document: Document) -> tuple[dict[str, Variable], list[Problem]]:
    """Read ``[vars]`` as far as it can be read.

    Returns:
        (the variables that stand, the faults of the others).
    """
    raw = document.raw.get("vars", {})
    if not isinstance(raw, dict):
        return {}, [document.source("vars").problem("must be a table: write [vars] and name = value lines below")]
    variables: dict[str, Variable] = {}
    problems: list[Problem] = []
    for name, given in raw.items():
        value = _as_bd_takes(name, given)
        source = document.source("vars", name)
        faults = list(_faults(document, name, value))
        if faults:
            problems += faults
        elif isinstance(value, str):
            variables[name] = Variable(name, source, value)
        else:
            default = value.get("default")
            line_source = document.source("vars", name, "default") if default is not None else source
            variables[name] = Variable(
                name,
                line_source,
                default,
                value.get("description", ""),
                value.get("required", False),
                tuple(value.get("enum", ())),
                value.get("pattern", ""),
            )
    return variables, problems


def _as_bd_takes(name: str, value: Any) -> Any:
    """A variable without what ``bd`` leaves aside: a default that is no string, a pattern that is no expression."""
    if not isinstance(value, dict):
        return value
    kept = dict(value)
    if name != SIDECARS and isinstance(kept.get("default"), bool | int | float | list | dict):
        del kept["default"]
    if isinstance(kept.get("pattern"), str) and _pattern_fault(kept["pattern"]):
        del kept["pattern"]
    return kept


def _pattern_fault(pattern: str) -> str:
    try:
        foreign(pattern)
    except ValueError as error:
        return str(error)
    return ""


def variable_slips(document: Document, declared: Mapping[str, Variable]) -> list[Problem]:
    """What of ``[vars]`` is taken, and hardly meant: ``bd`` says nothing of it."""
    raw = document.raw.get("vars")
    problems = []
    for name, value in raw.items() if isinstance(raw, dict) else ():
        if not isinstance(value, dict):
            continue
        default, pattern = value.get("default"), value.get("pattern")
        if name != SIDECARS and default is not None and not isinstance(default, str):
            where = document.source("vars", name, "default")
            problems.append(where.problem(f'{_spoken(default)} is left aside: write a string, as in default = "3"'))
        if isinstance(pattern, str) and (fault := _pattern_fault(pattern)):
            where = document.source("vars", name, "pattern")
            problems.append(where.problem(f"left aside: not a regular expression: {fault}"))
        if isinstance(default, str) and default and name in declared and (fault := declared[name].fault(default)):
            problems.append(document.source("vars", name, "default").problem(fault))
    return problems


def _accepted(name: str) -> str:
    if name == SIDECARS:
        return f"it must be one string: {ACCEPTED_FORM}"
    return f'a variable is a string, as in {name} = "…", or a table [vars.{name}] with description, required, default'


def _faults(document: Document, name: str, value: Any) -> list[Problem]:
    source = document.source("vars", name)
    if isinstance(value, str):
        if document.json:
            form = '{"default": "…"}'
            return [source.problem(f"in a JSON formula a variable is an object, as in {form}")]
        return []
    if not isinstance(value, dict):
        return [source.problem(f"{_spoken(value)} is not accepted: {_accepted(name)}")]
    problems = []
    for key, (kind, form) in _KINDS.items():
        given = value.get(key)
        strings = not isinstance(given, list) or all(isinstance(each, str) for each in given)
        if given is None or (isinstance(given, kind) and strings):
            continue
        here = document.source("vars", name, key)
        must = f"it must be one string: {ACCEPTED_FORM}" if (name, key) == (SIDECARS, "default") else f"write {form}"
        problems.append(here.problem(f"{_spoken(given)} is not accepted: {must}"))
    return problems


def _spoken(value: Any) -> str:
    """What TOML calls the kind of ``value``."""
    for kind, word in (
        (bool, "a boolean"),
        (int, "a number"),
        (float, "a number"),
        (list, "an array"),
        (dict, "a table"),
        (str, "a string"),
    ):
        if isinstance(value, kind):
            return word
    return "a date" if value is not None else "null"


def resolve(variables: Mapping[str, Variable], given: Mapping[str, str]) -> tuple[dict[str, str], list[Problem]]:
    """The value of every variable: what is given, else its default, else empty.

    Values that no variable stands for are kept too: Gas Town hands its own along (``base_branch``, ``issue``).

    Returns:
        (the values, the faults: a required one that is missing, a value outside ``enum`` or ``pattern``).
    """
    values = dict(given)
    problems: list[Problem] = []
    for name, variable in variables.items():
        if name in given:
            if fault := variable.fault(given[name]):
                problems.append(Problem(fault, "--var", 0, name))
        elif variable.default is not None:
            values[name] = variable.default
        elif variable.required:
            problems.append(variable.source.problem(f"required and not given: add --var {name}=VALUE"))
        else:
            values[name] = ""
    return values, problems


def placeholders(text: str) -> list[str]:
    """The names of the variables that ``text`` stands open for, each once, in order."""
    return [name for name in dict.fromkeys(PLACEHOLDER.findall(text)) if name not in TEMPLATE_WORDS]


def fill(text: str, values: Mapping[str, str]) -> str:
    """Put the values into the placeholders; one that has no value stays as it is."""
    return PLACEHOLDER.sub(lambda found: values.get(found.group(1), found.group(0)), text)
