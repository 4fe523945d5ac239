"""Labelled cases: what a sidecar must say, and what it must not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from witness.config.yaml_document import Document, load_yaml
from witness.errors import DeclarationError, Problem

CASES_FILE = "cases.yaml"
_SHARED = ("argument", "files", "task", "variables", "prompt", "type")
_OWN = ("name", "event", "events", "expect", "needs", "knowable", "say", "not_say")
# What was seen of the event, as the spool has it; beside the only event, or in each of several.
EFFECTS = ("changed", "created", "removed", "generated", "exit")


@dataclass(frozen=True, slots=True)
class Case:
    """One labelled case.

    Args:
        name: what it shows.
        type: the sidecar type.
        events: completed tool calls, as hooks tell them, with what was seen of them (``EFFECTS``).
        signal: whether something should be said.
        needs: the judge without which it cannot be known, empty when rules suffice.
        say: a text that must stand in what is said, empty when any will do.
        not_say: a text that must not stand there.
        argument, task, variables, prompt: as the sidecar would have them.
        files: the project's files by path.
    """

    name: str
    type: str
    events: tuple[Mapping[str, Any], ...]
    signal: bool
    needs: str = ""
    say: str = ""
    not_say: str = ""
    argument: str = ""
    task: str = ""
    prompt: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def load_cases(path: Path) -> list[Case]:
    """Read a file of cases.

    It holds ``cases``, a list; what several share may stand beside it and is overridden by a case's own.

    Raises:
        DeclarationError: it is missing or wrong.
    """
    if not path.is_file():
        raise DeclarationError([Problem("no such file", str(path))])
    document = load_yaml(path)
    problems: list[Problem] = []
    shared = {key: value for key, value in document.values.items() if key != "cases"}
    problems += [document.problem(f"unknown key; known are cases, {', '.join(_SHARED)}", key)
                 for key in shared if key not in _SHARED]  # fmt: skip
    raw = document.values.get("cases")
    if not isinstance(raw, list) or not raw:
        problems.append(document.problem("must be a list of cases", "cases"))
        raw = []
    shared.setdefault("type", path.resolve().parent.name)
    cases = [case for index, each in enumerate(raw) if (case := _case(document, each, shared, index, problems))]
    if problems:
        raise DeclarationError(problems)
    return cases


def _case(document: Document, raw: Any, shared: Mapping[str, Any], index: int, problems: list[Problem]) -> Case | None:
    at = f"cases.{index}"
    if not isinstance(raw, dict):
        problems.append(document.problem("a case is a mapping with name, event and expect", at))
        return None
    before = len(problems)
    for key in raw:
        if key not in _SHARED + _OWN + EFFECTS:
            known = ", ".join(_OWN + EFFECTS + _SHARED)
            problems.append(document.problem(f"unknown key; known are {known}", f"{at}.{key}"))
    events = raw.get("events", [raw["event"]] if "event" in raw else [])
    if (
        not isinstance(events, list)
        or not events
        or not all(isinstance(each, dict) and "tool" in each for each in events)
    ):
        problems.append(document.problem("give event: {tool: NAME, …its input}, or a list of them in events", at))
    elif "event" in raw:
        events = [{**raw["event"], **{key: raw[key] for key in EFFECTS if key in raw}}]
    if raw.get("expect") not in ("signal", "silent"):
        problems.append(document.problem("one of signal, silent", f"{at}.expect"))
    if raw.get("knowable", "rules") not in ("rules", "model"):
        problems.append(document.problem("one of rules, model", f"{at}.knowable"))
    if not isinstance(raw.get("name"), str):
        problems.append(document.problem("is missing", f"{at}.name"))
    if len(problems) > before:
        return None
    both = {**shared, **raw}
    return Case(
        name=raw["name"],
        type=str(both["type"]),
        events=tuple(events),
        signal=raw["expect"] == "signal",
        needs=str(raw.get("needs", "model" if raw.get("knowable") == "model" else "")),
        say=str(raw.get("say", "")),
        not_say=str(raw.get("not_say", "")),
        argument=str(both.get("argument", "")),
        task=str(both.get("task", "")),
        prompt=str(both.get("prompt", "")),
        variables=dict(both.get("variables") or {}),
        files={**(shared.get("files") or {}), **(raw.get("files") or {})},
    )
