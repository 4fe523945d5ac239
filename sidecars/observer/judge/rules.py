"""The judge that needs no model: rules over structured events, in microseconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sidecars.definition.sidecar_type import Rule, tool_filter
from sidecars.observer.context.context import Context
from sidecars.observer.context.definitions import code_of, comments_of, defined_anew, new_definitions
from sidecars.observer.judge.path_matcher import PathSet, path_set
from sidecars.observer.judge.template import fill
from sidecars.observer.judge.verdict import Verdict
from sidecars.observer.observe.observation import Observation
from witness.expressions import Expression

# A condition looks at an action and gives what it found there, None when it does not hold.
_Condition = Callable[[Observation], dict[str, str] | None]


class RulesJudge:
    """Judges by rules that people wrote.

    Args:
        rules: the type's rules, in order; of each action the first that holds is reported.
        material: the sets and blocks that they name.
    """

    def __init__(self, rules: Sequence[Rule], material: Context) -> None:
        self._rules = [(rule, _conditions(rule, material)) for rule in rules]

    @property
    def can_fire(self) -> bool:
        """Whether any rule can hold at all with this material."""
        return any(conditions is not None for _, conditions in self._rules)

    def close(self) -> None:
        """It holds nothing open."""

    def sift(self, seen: Sequence[Observation]) -> tuple[list[Verdict], list[Observation]]:
        return self.judge(seen), []

    def judge(self, seen: Sequence[Observation]) -> list[Verdict]:
        return [self._first(observation) for observation in seen]

    def _first(self, observation: Observation) -> Verdict:
        for rule, conditions in self._rules:
            if conditions is None:
                continue
            values: dict[str, str] = {"tool": observation.tool}
            for condition in conditions:
                found = condition(observation)
                if found is None:
                    break
                values.update(found)
            else:
                return Verdict(
                    signal=True,
                    evidence=_evidence(observation, values),
                    confidence=rule.confidence,
                    snippet=rule.snippet,
                    message=fill(rule.say, values),
                    once=rule.once,
                    final=rule.final,
                    observation=observation.id,
                    rule=rule.name,
                    values=tuple(values.items()),
                )
        return Verdict(False, observation=observation.id)


def _evidence(observation: Observation, values: dict[str, str]) -> str:
    if path := values.get("path"):
        return f"{'wrote' if path in observation.written else 'opened'}: {path}"
    if match := values.get("match"):
        return match
    if observation.command:
        return f"command: {observation.command.splitlines()[0][:200]}"
    return next(iter(observation.rendered().splitlines()), "")


def _conditions(rule: Rule, material: Context) -> list[_Condition] | None:
    """The rule's conditions, the cheapest first; None when it can never hold with this material."""
    conditions: list[_Condition] = []
    if rule.tools:
        accepts = tool_filter(rule.tools)
        conditions.append(lambda seen: {} if accepts(seen.tool) else None)
    if rule.failed is not None:
        conditions.append(lambda seen: {} if seen.failed is rule.failed else None)
    if rule.lines_over >= 0 and not rule.defines:
        conditions.append(
            lambda seen: {"lines": str(seen.lines_written)} if seen.lines_written > rule.lines_over else None
        )
    if rule.given and not _stands_in(rule.expression("given"), material.documents):
        return None
    if rule.lacks_block:
        block = rule.lacks_block
        content = material.library.get(block, "")
        if material.blocks is None or block in material.blocks or not content:
            return None
        conditions.append(lambda seen: {"block": block, "content": content})
    paths = _path_conditions(rule, material)
    if paths is None:
        return None
    conditions += paths
    content_conditions = _content_conditions(rule, material)
    if content_conditions is None:
        return None
    conditions += content_conditions
    if rule.unless:
        unless = rule.expression("unless", multiline=False)
        conditions.append(lambda seen: None if unless.search(seen.rendered()) else {})
    return conditions


def _content_conditions(rule: Rule, material: Context) -> list[_Condition] | None:
    """What the action must contain."""
    conditions: list[_Condition] = []
    for part in ("command", "text", "output"):
        if getattr(rule, part):
            conditions.append(_matches(part, rule.expression(part)))
    for part, read in (("code", code_of), ("comments", comments_of)):
        if getattr(rule, part):
            conditions.append(_matches_within(read, rule.expression(part)))
    if rule.defines:
        if not material.names:
            return None
        conditions.append(lambda seen: _defined_anew(seen, material.names, rule.lines_over))
    if rule.function_over:
        conditions.append(lambda seen: _too_long(seen, rule.function_over))
    return conditions


def _stands_in(expression: Expression, documents: Sequence[tuple[str, str]]) -> bool:
    return any(expression.search(text) for _, text in documents)


def _defined_anew(seen: Observation, names: Mapping[str, str], over: int) -> dict[str, str] | None:
    """A name in the new text that the project defines elsewhere, in more than ``over`` lines."""
    for found, home in defined_anew(seen.written, seen.text, names):
        if found.lines > over:
            return {"name": found.name, "api": home, "match": found.name, "lines": str(found.lines)}
    return None


def _too_long(seen: Observation, over: int) -> dict[str, str] | None:
    """The longest function in the new text, when it has more than ``over`` lines."""
    if seen.lines_written <= over // 2:  # blank lines apart
        return None
    functions = [each for each in new_definitions(seen.written, seen.text) if each.kind in ("function", "method")]
    longest = max(functions, key=lambda each: each.lines, default=None)
    if longest is None or longest.lines <= over:
        return None
    return {"name": longest.name, "lines": str(longest.lines), "match": longest.name}


def _matches(part: str, expression: Expression) -> _Condition:
    def condition(seen: Observation) -> dict[str, str] | None:
        found = expression.search(getattr(seen, part))
        return {"match": " ".join(found[0].split())[:200]} if found else None

    return condition


def _matches_within(read: Callable[[tuple[str, ...], str], str | None], expression: Expression) -> _Condition:
    """Like ``_matches``, in a part of the new text; it is read only where the whole text has a match."""

    def condition(seen: Observation) -> dict[str, str] | None:
        if not expression.search(seen.text):
            return None
        part = read(seen.written, seen.text)
        found = expression.search(part) if part is not None else None
        return {"match": " ".join(found[0].split())[:200]} if found else None

    return condition


def _path_conditions(rule: Rule, material: Context) -> list[_Condition] | None:
    excepted = PathSet(rule.but_not) if rule.but_not else None
    conditions = []
    for key, part, inside in (
        ("opens", "opened", True),
        ("writes", "written", True),
        ("touches", "paths", True),
        ("writes_outside", "written", False),
        ("touches_outside", "paths", False),
    ):
        globs = getattr(rule, key)
        if not globs:
            continue
        chosen = path_set(globs, material.sets)
        if not chosen:  # "@files" of an issue that lists none: nothing can be held against it
            return None
        conditions.append(_path_condition(part, chosen, inside, excepted))
    return conditions


def _path_condition(part: str, chosen: PathSet, inside: bool, excepted: PathSet | None) -> _Condition:
    shown = str(chosen)

    def condition(seen: Observation) -> dict[str, str] | None:
        for path in getattr(seen, part):
            # What nobody writes by hand is held against nobody, unless it is named.
            if not inside and path in seen.generated:
                continue
            if (path in chosen) is inside and not (excepted and path in excepted):
                return {"path": path, "done": seen.done(path), "set": shown}
        return None

    return condition
