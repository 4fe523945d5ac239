"""The judge that needs no model: rules over structured events, in microseconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product

from sidecars.observer.context import Context
from sidecars.observer.context.project_names import code_of, comments_of, defined_anew, new_definitions
from sidecars.observer.judge.action_conditions import PathSet, action_conditions, path_set
from sidecars.observer.judge.history import History
from sidecars.observer.judge.verdict import Verdict, fill
from sidecars.type_reader.sidecar_type import Rule, tool_filter
from witness.expressions import Expression
from witness.journal import Subject
from witness.judging.observation import Observation

# A condition looks at an action and gives all that it found there; nothing when it does not hold.
_Values = dict[str, str]
_Condition = Callable[[Observation], Sequence[_Values]]
_HOLDS: Sequence[_Values] = ({},)
# So many places of one action are told apart; what a formatter does to a whole tree is one remark all the same.
_MOST = 10_000
_MOST_IN_A_TEXT = 20


class RulesJudge:
    """Judges by rules that people wrote.

    Args:
        rules: the type's rules, in order; of those that say something of the same place the first counts.
        material: the sets and blocks that they name.
    """

    def __init__(self, rules: Sequence[Rule], material: Context) -> None:
        self._rules = [
            (_sourced(rule, material), _conditions(rule, material), _history(rule, material)) for rule in rules
        ]

    @property
    def can_fire(self) -> bool:
        """Whether any rule can hold at all with this material."""
        return any(conditions is not None for _, conditions, _ in self._rules)

    def close(self) -> None:
        """It holds nothing open."""

    def sift(self, seen: Sequence[Observation]) -> tuple[list[Verdict], list[Observation]]:
        return self.judge(seen), []

    def judge(self, seen: Sequence[Observation], said: Sequence[str] = ()) -> list[Verdict]:
        """All that the rules find: a verdict for each rule that holds, or one silent verdict."""
        return [verdict for observation in seen for verdict in self._all(observation)]

    def _all(self, observation: Observation) -> list[Verdict]:
        verdicts = []
        told: set[Subject] = set()
        for rule, conditions, history in self._rules:
            if conditions is None:
                continue
            places: dict[Subject, _Values] = {}
            for values in (
                _remembered(observation, conditions, history) if history else _places(observation, conditions)
            ):
                places.setdefault(_subject(values), values)
            fresh = {subject: values for subject, values in places.items() if subject not in told}
            if fresh:
                told.update(fresh)
                verdicts.append(_verdict(rule, observation, fresh))
        return verdicts or [Verdict(False, observation=observation.id)]


def _sourced(rule: Rule, material: Context) -> Rule:
    """A rule that gives a block says the words of the file that holds it."""
    return replace(rule, source=material.library_sources.get(rule.lacks_block, "")) if rule.lacks_block else rule


def _places(observation: Observation, conditions: Sequence[_Condition]) -> Sequence[_Values]:
    """Every place of an action at which all conditions hold, with what was found there."""
    places: Sequence[_Values] = ({"tool": observation.tool},)
    for condition in conditions:
        found = condition(observation)
        if not found:
            return ()
        if len(found) == 1:
            for place in places:
                place.update(found[0])
        else:
            places = [{**place, **more} for place, more in product(places, found[:_MOST])][:_MOST]
    return places


def _remembered(observation: Observation, conditions: Sequence[_Condition], history: History) -> Sequence[_Values]:
    """As ``_places`` for a rule that looks further than one action: one place, where its history holds too."""
    history.pass_by(observation)
    places = _places(observation, conditions)
    if not places:
        history.note(observation)
        return ()
    return [{**places[0], **values} for values in history.count(observation)]


def _history(rule: Rule, material: Context) -> History | None:
    if not (rule.repeats or rule.after or rule.undoes):
        return None
    return History(rule, _matcher(rule.since_last, material), _matcher(rule.after, material))


def _matcher(rule: Rule | None, material: Context) -> Callable[[Observation], bool] | None:
    if rule is None:
        return None
    conditions = _conditions(rule, material)
    return lambda seen: conditions is not None and bool(_places(seen, conditions))


def _subject(values: _Values) -> Subject:
    return Subject(values.get("path", ""), values.get("name") or values.get("match", ""))


def _verdict(rule: Rule, observation: Observation, places: Mapping[Subject, _Values]) -> Verdict:
    values = next(iter(places.values()))
    return Verdict(
        signal=True,
        evidence=_evidence(observation, values),
        confidence=rule.confidence,
        snippet=rule.snippet,
        message=fill(rule.say, values),
        say=rule.say,
        once=rule.once,
        final=rule.final,
        observation=observation.id,
        rule=rule.name,
        values=tuple(values.items()),
        source=rule.source,
        places=tuple((subject, tuple(each.items())) for subject, each in places.items()),
    )


def _evidence(observation: Observation, values: dict[str, str]) -> str:
    if failure := values.get("failure"):
        return failure
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
        conditions.append(lambda seen: _HOLDS if accepts(seen.tool) else ())
    if rule.failed is not None:
        conditions.append(lambda seen: _HOLDS if seen.failed is rule.failed and not seen.untold else ())
    if rule.lines_over >= 0 and not rule.defines:
        conditions.append(
            lambda seen: [{"lines": str(seen.lines_written)}] if seen.lines_written > rule.lines_over else ()
        )
    if rule.given and not _stands_in(rule.expression("given"), material.documents):
        return None
    if rule.lacks_block:
        block = rule.lacks_block
        content = material.library.get(block, "")
        if material.blocks is None or block in material.blocks or not content:
            return None
        if rule.block_has and not rule.expression("block_has").search(content):
            return None
        conditions.append(lambda seen: [{"block": block, "content": content}])
    paths = _path_conditions(rule, material)
    if paths is None:
        return None
    conditions += paths
    conditions += action_conditions(rule)
    content_conditions = _content_conditions(rule, material)
    if content_conditions is None:
        return None
    conditions += content_conditions
    if rule.unless:
        unless = rule.expression("unless", multiline=False)
        conditions.append(lambda seen: () if unless.search(seen.rendered()) else _HOLDS)
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


def _defined_anew(seen: Observation, names: Mapping[str, str], over: int) -> list[_Values]:
    """Names in the new text that the project defines elsewhere, in more than ``over`` lines."""
    return [
        {"name": found.name, "api": home, "match": found.name, "lines": str(found.lines)}
        for found, home in defined_anew(seen.written, seen.text, names)
        if found.lines > over
    ]


def _too_long(seen: Observation, over: int) -> list[_Values]:
    """The functions in the new text that have more than ``over`` lines."""
    if seen.lines_written <= over // 2:  # blank lines apart
        return []
    return [
        {"name": each.name, "lines": str(each.lines), "match": each.name}
        for each in new_definitions(seen.written, seen.text)
        if each.kind in ("function", "method") and each.lines > over
    ]


def _matches(part: str, expression: Expression) -> _Condition:
    # Each line of new text may hold a violation of its own; of a command or an answer one place tells all.
    most = _MOST_IN_A_TEXT if part == "text" else 1
    return lambda seen: _found(expression, getattr(seen, part), most)


def _matches_within(read: Callable[[tuple[str, ...], str], str | None], expression: Expression) -> _Condition:
    """Like ``_matches``, in a part of the new text; it is read only where the whole text has a match."""

    def condition(seen: Observation) -> list[_Values]:
        if not expression.search(seen.text):
            return []
        return _found(expression, read(seen.written, seen.text) or "", _MOST_IN_A_TEXT)

    return condition


def _found(expression: Expression, text: str, most: int) -> list[_Values]:
    """What an expression finds, at most once in a line."""
    found: list[_Values] = []
    while text and len(found) < most and (match := expression.search(text)):
        found.append({"match": " ".join(match[0].split())[:200]})
        end = text.find("\n", text.find(match[0]) + len(match[0]))
        text = text[end + 1 :] if end >= 0 else ""
    return found


def _path_conditions(rule: Rule, material: Context) -> list[_Condition] | None:
    excepted = PathSet(rule.but_not) if rule.but_not else None
    within = PathSet(rule.within) if rule.within else None
    conditions = []
    for key, part, inside in (
        ("opens", "opened", True),
        ("writes", "written", True),
        ("changes", "changed", True),
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
        conditions.append(_path_condition(part, chosen, inside, excepted, within))
    return conditions


def _path_condition(
    part: str, chosen: PathSet, inside: bool, excepted: PathSet | None, within: PathSet | None
) -> _Condition:
    shown = str(chosen)

    def condition(seen: Observation) -> list[_Values]:
        done = seen.done()
        generated = frozenset(seen.generated)
        return [
            {"path": path, "done": done[path], "set": shown}
            for path in getattr(seen, part)
            # What nobody writes by hand is held against nobody, unless it is named.
            if (inside or path not in generated)
            and (path in chosen) is inside
            and not (excepted and path in excepted)
            and (within is None or path in within)
        ]

    return condition
