"""Rules as they are written in YAML → rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from pathlib import Path
from typing import Any

from sidecars.type_reader.sidecar_type import Rule
from sidecars.type_reader.type_schema import EXPRESSIONS, RULE_FIELDS
from witness.config.yaml_document import Document
from witness.errors import Problem

# The types that ride along.
SHIPPED = Path(__file__).resolve().parent.parent / "types"
_NO_CONDITIONS = frozenset(
    [
        "name",
        "confidence",
        "snippet",
        "say",
        "unless",
        "but_not",
        "within",
        "block_has",
        "once",
        "final",
        "given",
        "source",
        "cites",
        "shipped",
        "since_last",
        "after",
    ]
)
CONDITIONS = tuple(each.name for each in dataclass_fields(Rule) if each.name not in _NO_CONDITIONS)


def read_rules(document: Document, value: Any, problems: list[Problem], key: str = "rules") -> tuple[Rule, ...]:
    """Read a list of rules; what is wrong is added to ``problems``.

    Args:
        document: where they stand.
        value: the list.
        problems: grows by every fault.
        key: the list's own key.
    """
    if not isinstance(value, list):
        problems.append(document.problem("must be a list of rules", key))
        return ()
    rules: list[Rule] = []
    for index, raw in enumerate(value):
        at = f"{key}.{index}"
        if not isinstance(raw, dict):
            problems.append(document.problem("a rule is a mapping with at least name, a condition and its words", at))
            continue
        rule = _read_rule(document, raw, at, problems)
        if rule is None:
            continue
        if any(rule.name == other.name for other in rules):
            problems.append(document.problem(f"two rules are named {rule.name!r}", at))
        rules.append(rule)
    return tuple(rules)


def _read_rule(document: Document, raw: dict[str, Any], at: str, problems: list[Problem]) -> Rule | None:
    before = len(problems)
    given: dict[str, Any] = {}
    for name, each in raw.items():
        if name not in RULE_FIELDS:
            problems.append(document.unknown(f"{at}.{name}", RULE_FIELDS, "unknown key of a rule"))
            continue
        try:
            given[name] = RULE_FIELDS[name].convert(each)
        except ValueError as error:
            problems.append(document.problem(str(error), f"{at}.{name}"))
    if not raw.get("name"):
        problems.append(document.problem("is missing", f"{at}.name"))
    if bool(raw.get("snippet")) == bool(raw.get("say")):
        problems.append(document.problem("give its words either by snippet or in say", at))
    if not any(name in raw for name in CONDITIONS):
        named = raw.get("name", "")
        problems.append(document.problem(f"rule {named!r} has no condition and would fire at every action", at))
    if len(problems) > before:
        return None
    at_words = document.lines.get(f"{at}.say", 0)
    source = f"{document.path}:{at_words}" if at_words else ""
    shipped = Path(document.path).is_relative_to(SHIPPED)
    for name in ("since_last", "after"):
        if name in given:
            given[name] = replace(given[name], shipped=shipped)
    rule = Rule(**given, source=source, shipped=shipped)
    for each, key in ((rule, at), (rule.since_last, f"{at}.since_last.of"), (rule.after, f"{at}.after")):
        if each:
            problems += _no_expressions(document, each, key)
    return rule if len(problems) == before else None


def _no_expressions(document: Document, rule: Rule, at: str) -> Iterator[Problem]:
    for name in EXPRESSIONS:
        if getattr(rule, name):
            try:
                rule.expression(name)
            except (ValueError, re.error, RecursionError) as error:
                yield document.problem(f"not a regular expression: {error}", f"{at}.{name}")
