"""Formulas made by dice: what ``bd cook`` knows, mixed, and now and then a slip."""

from __future__ import annotations

import json
import random
from typing import Any

_HELPERS = {
    "e-two": {
        "formula": "e-two", "type": "expansion", "version": 1,
        "template": [
            {"id": "{target}.p", "title": "P {target.title} {k}"},
            {"id": "{target}.q", "title": "Q {target.description}", "needs": ["{target}.p"]},
        ],
        "vars": {"k": {"default": "dk"}},
    },
    "e-wide": {
        "formula": "e-wide", "type": "expansion", "version": 1,
        "template": [{"id": "{target}.l", "title": "L"}, {"id": "{target}.m", "title": "M"},
                     {"id": "{target}.n", "title": "N", "needs": ["{target}.l"]}],
    },
    "s-a": {
        "formula": "s-a", "type": "aspect", "version": 1,
        "advice": [{"target": "a*", "before": {"id": "{step.id}-pre", "title": "pre {step.title}"},
                    "after": {"id": "{step.id}-post", "title": "post"}}],
    },
    "s-around": {
        "formula": "s-around", "type": "aspect", "version": 1,
        "advice": [{"target": "*b", "around": {
            "before": [{"id": "{step.id}-1", "title": "1"}, {"id": "{step.id}-2", "title": "2"}],
            "after": [{"id": "{step.id}-3", "title": "3"}, {"id": "{step.id}-4", "title": "4"}]}}],
    },
    "base": {
        "formula": "base", "version": 1,
        "steps": [{"id": "base1", "title": "Base 1"}, {"id": "base2", "title": "Base {{who}}", "needs": ["base1"]}],
        "vars": {"who": {"default": "x", "description": "w"}},
        "compose": {"aspects": ["s-around"]},
    },
}  # fmt: skip


def helpers() -> dict[str, str]:
    """The formulas that the others name, by name."""
    return {name: toml(each) for name, each in _HELPERS.items()}


def formula(seed: int) -> str:
    """One formula, the same for the same seed."""
    dice = random.Random(seed)  # noqa: S311 - made from a seed, on purpose
    steps: list[dict[str, Any]] = []
    names: list[str] = []
    for letter in "abcdefg"[: dice.randint(1, 7)]:
        name = dice.choice([letter, f"{letter}b", f"t.{letter}"])
        step: dict[str, Any] = {"id": name, "title": f"Title {letter}"}
        if dice.random() < 0.5:
            step["description"] = dice.choice(["Do it.", "Line\nand line", 'with "quotes"', "für {{x}}"])
        if names and dice.random() < 0.6:
            step[dice.choice(["needs", "needs", "depends_on"])] = dice.sample(
                names, dice.randint(1, min(2, len(names)))
            )
        _more(step, letter, dice)
        steps.append(step)
        names.append(name)
    made: dict[str, Any] = {"formula": f"g-{seed}", "version": dice.choice([1, 2]), "steps": steps}
    if dice.random() < 0.2:
        made["extends"] = ["base"]
    if variables := {name: _variable(dice) for name in "xyz"[: dice.randint(0, 3)]}:
        made["vars"] = variables
    _compose(made, steps, dice)
    if dice.random() < 0.3:
        _slip(made, steps, dice)
    return toml(made)


def _more(step: dict[str, Any], letter: str, dice: random.Random) -> None:
    what = dice.random()
    if what < 0.12:
        step["children"] = [
            {"id": f"{letter}1", "title": "One"},
            {"id": f"{letter}2", "title": "Two", "needs": [f"{letter}1"]},
        ]
    elif what < 0.24:
        turns: dict[str, Any] = dice.choice([{"count": 2}, {"count": 3}, {"range": "2..4", "var": "n"},
                             {"until": "step.status == 'complete'", "max": 3}])  # fmt: skip
        body: list[dict[str, Any]] = [{"id": "x", "title": "X {n}"}]
        if dice.random() < 0.6:
            body.append({"id": "y", "title": "Y", **({"needs": ["x"]} if dice.random() < 0.7 else {})})
        step["loop"] = {**turns, "body": body}
    elif what < 0.32:
        step["expand"] = dice.choice(["e-two", "e-wide"])
    elif what < 0.4:
        step["condition"] = dice.choice(["{{x}}", "!{{x}}", "{{x}} == yes"])
    elif what < 0.46:
        step["priority"] = dice.randint(0, 4)
    elif what < 0.5:
        step["gate"] = {"type": "gh:run", "id": "ci"}


def _variable(dice: random.Random) -> Any:
    return dice.choice(
        ["plain", {"default": "d"}, {"required": True, "description": "must"}, {"default": "a", "enum": ["a", "b"]},
         {"default": "v1", "pattern": r"^v\d+$"}, {"description": "only told"}, {"default": "3", "type": "int"}]
    )  # fmt: skip


def _compose(made: dict[str, Any], steps: list[dict[str, Any]], dice: random.Random) -> None:
    plain = [step for step in steps if not {"loop", "expand", "children"} & set(step)]
    compose: dict[str, Any] = {}
    if plain and dice.random() < 0.3:
        rule: dict[str, Any] = {"target": dice.choice(plain)["id"], "with": dice.choice(["e-two", "e-wide"])}
        compose["expand"] = [{**rule, **({"vars": {"k": "given"}} if dice.random() < 0.5 else {})}]
    elif plain and dice.random() < 0.2:
        # One step alone: over several that need one another bd itself comes out one way or the other.
        compose["map"] = [{"select": dice.choice(plain)["id"], "with": "e-two"}]
    if dice.random() < 0.3:
        compose["aspects"] = dice.choice([["s-a"], ["s-around"], ["s-a", "s-around"]])
    if len(plain) > 2 and dice.random() < 0.15:
        one, two, three = dice.sample(plain, 3)
        compose["branch"] = [{"from": one["id"], "steps": [two["id"]], "join": three["id"]}]
    if compose:
        made["compose"] = compose
    if dice.random() < 0.1:
        made["advice"] = [{"target": "a*", "before": {"id": "own-{step.id}", "title": "own"}}]


def _slip(made: dict[str, Any], steps: list[dict[str, Any]], dice: random.Random) -> None:
    step = dice.choice(steps)
    slips: list[tuple[dict[str, Any], str, Any]] = [
        (step, "needs", ["nowhere"]), (step, "depends_on", ["nowhere"]), (step, "title", None), (step, "id", None),
        (step, "priority", 7), (step, "id", steps[0]["id"]), (step, "waits_for", "soon"), (made, "formula", None),
        (made, "type", "recipe"), (made, "version", "one"), (made, "steps", []), (step, "needs", "one"),
        (made, "vars", {"x": {"required": True, "default": "d"}}), (made, "vars", {"x": 3}),
        (made, "vars", {"x": ["a"]}),
        (made, "vars", {"x": {"default": 3}}), (made, "vars", {"x": {"default": "c", "enum": ["a"]}}),
        (made, "vars", {"x": {"default": "c", "pattern": "("}}), (made, "compose", {"aspects": ["nowhere"]}),
        (made, "compose", {"expand": [{"target": step["id"], "with": "nowhere"}]}), (made, "extends", ["nowhere"]),
        (made, "compose", {"expand": [{"target": "nowhere", "with": "e-two"}]}), (made, "unheard", 1),
        (step, "loop", {"count": 2}), (made, "compose", {"aspects": ["e-two"]}), (step, "needs", [step["id"]]),
        (step, "on_complete", {"for_each": "x", "bond": "y"}), (step, "children", [{"id": "k"}]),
    ]  # fmt: skip
    table, key, value = dice.choice(slips)
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def toml(table: dict[str, Any]) -> str:
    """A table as TOML: values first, then its tables."""
    return "\n".join([*_lines(table, "")]) + "\n"


def _lines(table: dict[str, Any], place: str) -> list[str]:
    lines = [f"{json.dumps(key)} = {_value(value)}" for key, value in table.items() if not _is_table(value)]
    for key, value in table.items():
        if isinstance(value, dict):
            lines += [f"[{place}{key}]", *_lines(value, f"{place}{key}.")]
        elif _is_table(value):
            for each in value:
                lines += [f"[[{place}{key}]]", *_lines(each, f"{place}{key}.")]
    return lines


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))


def _value(value: Any) -> str:
    return (
        json.dumps(value, ensure_ascii=False) if not isinstance(value, list) else f"[{', '.join(map(_value, value))}]"
    )
