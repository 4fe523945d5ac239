"""What becomes of a formula's steps before anybody works by them, in the order in which ``bd cook`` does it.

1. control flow: a step with ``loop`` gives way to its body, once or several times (``ID.iterN.BODY``), each turn after
   the last step of the one before; ``compose.branch`` and ``compose.gate`` tie steps together.
2. advice: what the formula itself puts before and after its steps.
3. expansions: ``expand`` in a step, then ``compose.expand`` and ``compose.map``. The steps of a template that need
   nothing need what their target needed; who needed the target needs the template's last step.
4. aspects: the advice of the formulas that ``compose.aspects`` names.

``condition`` stands for the one who works: it is decided when the work is given out, so a step that has one stays.
Where ``bd`` itself is of two minds (``compose.map`` over steps that need one another comes out one way or the other
from run to run) the need leads to the last step of what stands in the needed one's place.

Steps are tables here, as they stand in the file, with their ``children``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

Table = dict[str, Any]
_RANGE = re.compile(r"^\s*(-?\d+)\s*\.\.\s*(-?\d+)\s*$")
# A loop is written out: what would fill a terminal is a slip.
_MOST_TURNS = 1000


class CookError(Exception):
    """A step cannot become what the formula wants of it."""


@dataclass
class Recipes:
    """Formulas that others name.

    Args:
        expansion: by name, (its template, the defaults of its variables).
        aspect: by name, its advice.
    """

    expansion: Callable[[str], tuple[Sequence[Table], Mapping[str, str]]]
    aspect: Callable[[str], Sequence[Table]]


def walk(steps: Iterable[Mapping[str, Any]]) -> Iterator[Table]:
    """Every step with the children of each, in order."""
    for step in steps:
        yield step  # type: ignore[misc] # what is read of a file, and only read
        yield from walk(_tables(step, "children"))


def cook(steps: Sequence[Table], advice: Sequence[Table], compose: Mapping[str, Any], recipes: Recipes) -> list[Table]:
    """The steps that there are in the end.

    Args:
        steps: the formula's, its parents' before its own.
        advice: the formula's own.
        compose: its ``[compose]``.
        recipes: what it names.

    Raises:
        CookError: something that it names is not there, or cannot be used so.
    """
    cooked = _looped(steps)
    _branch(cooked, _tables(compose, "branch"))
    for gate in _tables(compose, "gate"):
        _find(cooked, str(gate.get("before", "")), "compose.gate")
    cooked = _advised(cooked, advice)
    cooked = _inline(cooked, recipes)
    for rule in _tables(compose, "expand"):
        target = str(rule.get("target", ""))
        cooked = _expanded(cooked, _find(cooked, target, "compose.expand"), rule, recipes)
    for rule in _tables(compose, "map"):
        chosen = [str(step["id"]) for step in walk(cooked) if _matches(step, str(rule.get("select", "")))]
        for name in chosen:
            cooked = _expanded(cooked, _find(cooked, name, "compose.map"), rule, recipes)
    names = compose.get("aspects", ())
    for name in names if isinstance(names, list) else ():
        cooked = _advised(cooked, recipes.aspect(str(name)))
    return cooked


def _tables(table: Mapping[str, Any], key: str) -> list[Table]:
    raw = table.get(key)
    return [each for each in raw if isinstance(each, Mapping)] if isinstance(raw, list) else []  # type: ignore[misc]


def _needs(step: Mapping[str, Any], key: str = "needs") -> list[str]:
    raw = step.get(key)
    return [str(each) for each in raw] if isinstance(raw, list) else []


def _find(steps: Sequence[Table], name: str, where: str) -> Table:
    for step in walk(steps):
        if step.get("id") == name:
            return step
    raise CookError(f"{where}: {name!r} is no step here")


def _matches(step: Mapping[str, Any], pattern: str) -> bool:
    return fnmatchcase(str(step.get("id", "")), pattern)


def _mapped(steps: Sequence[Table], change: Callable[[Table], list[Table]]) -> list[Table]:
    """Each step, its children first, as what ``change`` makes of it."""
    found: list[Table] = []
    for step in steps:
        children = _tables(step, "children")
        found += change({**step, "children": _mapped(children, change)} if children else dict(step))
    return found


# 1. control flow


def _looped(steps: Sequence[Table]) -> list[Table]:
    return _mapped(steps, lambda step: _turns(step) if "loop" in step else [step])


def _turns(step: Table) -> list[Table]:
    loop, name = step["loop"], str(step.get("id", ""))
    if not isinstance(loop, Mapping) or not (body := _tables(loop, "body")):
        raise CookError(f"loop {name!r}: it has no [[steps.loop.body]]")
    values = _values(loop, name)
    inner = {str(each.get("id", "")) for each in walk(body)}
    found: list[Table] = []
    for turn, value in enumerate(values, 1):
        variable = str(loop.get("var", ""))
        new = [_of_turn(each, f"{name}.iter{turn}", inner, variable, value) for each in _looped(body)]
        if found:
            new[0]["needs"] = [*_needs(new[0]), str(found[-1]["id"])]
        found += new
    return found


def _values(loop: Mapping[str, Any], name: str) -> list[str]:
    given = [key for key in ("count", "until", "range") if loop.get(key)]
    if len(given) != 1:
        raise CookError(f"loop {name!r}: give one of count, until and range")
    if given == ["until"]:
        if not loop.get("max"):
            raise CookError(f"loop {name!r}: until needs a max")
        return ["1"]
    if given == ["range"]:
        ends = _RANGE.match(str(loop["range"]))
        if ends is None:
            raise CookError(f"loop {name!r}: the range {loop['range']!r} is not FIRST..LAST")
        first, last = int(ends[1]), int(ends[2])
    else:
        first, last = 1, int(loop["count"])
    if not first <= last < first + _MOST_TURNS:
        raise CookError(f"loop {name!r}: {last - first + 1} turns, of 1 to {_MOST_TURNS}")
    return [str(value) for value in range(first, last + 1)]


def _of_turn(step: Table, prefix: str, inner: set[str], variable: str, value: str) -> Table:
    def filled(text: str) -> str:
        return text.replace(f"{{{variable}}}", value) if variable else text

    new = {**step, "id": f"{prefix}.{step.get('id', '')}"}
    for key in ("title", "description"):
        if isinstance(step.get(key), str):
            new[key] = filled(step[key])
    for key in ("needs", "depends_on"):
        if _needs(step, key):
            new[key] = [f"{prefix}.{each}" if each in inner else each for each in _needs(step, key)]
    if children := _tables(step, "children"):
        new["children"] = [_of_turn(each, prefix, inner, variable, value) for each in children]
    return new


def _branch(steps: list[Table], rules: Sequence[Table]) -> None:
    for rule in rules:
        first = _find(steps, str(rule.get("from", "")), "compose.branch")
        middle = [_find(steps, str(name), "compose.branch") for name in rule.get("steps", ())]
        last = _find(steps, str(rule.get("join", "")), "compose.branch")
        for step in middle:
            _need(step, str(first["id"]))
            _need(last, str(step["id"]))


def _need(step: Table, name: str) -> None:
    if name not in _needs(step):
        step["needs"] = [*_needs(step), name]


# 2. and 4. advice


def _advised(steps: Sequence[Table], advice: Sequence[Table]) -> list[Table]:
    return _mapped(steps, lambda step: _around(step, [each for each in advice if _matches(step, _glob(each))]))


def _glob(advice: Mapping[str, Any]) -> str:
    return str(advice.get("target", ""))


def _around(step: Table, advice: Sequence[Table]) -> list[Table]:
    before: list[Table] = []
    after: list[Table] = []
    for each in advice:
        around = each.get("around")
        around = around if isinstance(around, Mapping) else {}
        befores = [each["before"]] if isinstance(each.get("before"), Mapping) else []
        afters = [each["after"]] if isinstance(each.get("after"), Mapping) else []
        for raw in [*befores, *_tables(around, "before")]:
            new = _woven(raw, step)
            if before:
                _need(new, str(before[-1]["id"]))
            before.append(new)
        for raw in [*afters, *_tables(around, "after")]:
            new = _woven(raw, step)
            _need(new, str((after[-1] if after else step)["id"]))
            after.append(new)
    if before:
        _need(step, str(before[-1]["id"]))
    return [*before, step, *after]


def _woven(raw: Mapping[str, Any], step: Mapping[str, Any]) -> Table:
    def filled(text: str) -> str:
        for key in ("id", "title", "description"):
            text = text.replace(f"{{step.{key}}}", str(step.get(key, "")))
        return text

    return {key: filled(value) if isinstance(value, str) else value for key, value in raw.items()}


# 3. expansions


def _inline(steps: Sequence[Table], recipes: Recipes) -> list[Table]:
    def change(step: Table) -> list[Table]:
        if not step.get("expand"):
            return [step]
        return _instance(step, {"with": step["expand"], "vars": step.get("expand_vars", {})}, recipes, "expand")

    return _mapped(steps, change)


def _instance(target: Table, rule: Mapping[str, Any], recipes: Recipes, where: str) -> list[Table]:
    """The template's steps for one target."""
    template, defaults = recipes.expansion(str(rule.get("with", "")))
    if not template:
        raise CookError(f"{where}: {rule.get('with')!r} is no expansion: it has no [[template]]")
    given = rule.get("vars", {})
    values = {**defaults, **{str(key): str(value) for key, value in (given.items() if given else ())}}

    def filled(text: str) -> str:
        for key in ("title", "description"):
            text = text.replace(f"{{target.{key}}}", str(target.get(key, "")))
        text = text.replace("{target}", str(target.get("id", ""))).replace("{target.id}", str(target.get("id", "")))
        for key, value in values.items():
            text = text.replace(f"{{{key}}}", value)
        return text

    def made(raw: Mapping[str, Any]) -> Table:
        new = {key: filled(value) if isinstance(value, str) else value for key, value in raw.items()}
        for key in ("needs", "depends_on"):
            if _needs(raw, key):
                new[key] = [filled(each) for each in _needs(raw, key)]
        if children := _tables(raw, "children"):
            new["children"] = [made(each) for each in children]
        return new

    found = [made(raw) for raw in template]
    for step in found:
        if not _needs(step) and not _needs(step, "depends_on"):
            for key in ("needs", "depends_on"):
                if _needs(target, key):
                    step[key] = _needs(target, key)
    return found


def _expanded(steps: Sequence[Table], target: Table, rule: Mapping[str, Any], recipes: Recipes) -> list[Table]:
    new = _instance(target, rule, recipes, "compose")
    gone, last = str(target["id"]), str(new[-1]["id"])

    def change(step: Table) -> list[Table]:
        if step.get("id") == gone:
            return new
        for key in ("needs", "depends_on"):
            if gone in _needs(step, key):
                step[key] = list(dict.fromkeys(last if each == gone else each for each in _needs(step, key)))
        return [step]

    found = _mapped(steps, change)
    seen: set[str] = set()
    for step in walk(found):
        name = str(step.get("id", ""))
        if name in seen:
            raise CookError(f"{name!r} is there twice after {rule.get('with')!r} has been put in")
        seen.add(name)
    return found
