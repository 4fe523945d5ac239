"""The keys of ``sidecar.yaml``: one table that checks them and from which their JSON Schema is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sidecars.type_reader.sidecar_type import (
    ALIKE,
    ARGUMENTS,
    JUDGES,
    PANE_USES,
    Confidence,
    NearMiss,
    Repeats,
    Rule,
)
from witness.errors import UsageError

# The sources that sidecars.observer.context knows, with what each one gives.
SOURCES: Mapping[str, str] = {
    "argument": "the files and globs of the spec's argument",
    "issue": "the issue or task, with files: and not: of its front matter",
    "prompt": "the blocks of the polecat's prompt",
    "mcp": "the project's MCP servers and, where allowed, their tools",
    "conventions": (
        "the project's guides and its linters' configuration, as documents and as rules that cite their line"
    ),
}
# Sources that name something: files of the project that may be missing, and files of the type's own folder.
NAMED_SOURCES = ("files:", "own:")
# More of them would teach the model its examples.
MOST_NEAR_MISSES = 4


@dataclass(frozen=True, slots=True)
class Field:
    """One key.

    Args:
        convert: reads the YAML value; ValueError says what form is right.
        schema: its JSON Schema.
        about: what it means, shown by editors.
    """

    convert: Callable[[Any], Any]
    schema: Mapping[str, Any]
    about: str


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {value!r}")
    return value


def _strings(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise ValueError("must be a text or a list of texts")
    return tuple(value)


def _near_misses(value: Any) -> tuple[NearMiss, ...]:
    if not isinstance(value, list) or len(value) > MOST_NEAR_MISSES:
        raise ValueError(f"must be a list of at most {MOST_NEAR_MISSES} of {{case: NAME, seen: TEXT}}")
    for each in value:
        if not isinstance(each, dict) or set(each) != {"case", "seen"} or not all(each.values()):
            raise ValueError(f"each is {{case: NAME, seen: TEXT}}, not {each!r}")
    return tuple(NearMiss(_string(each["case"]), " ".join(_string(each["seen"]).split())) for each in value)


def _citation(value: Any) -> str:
    text = _string(value)
    file, _, line = text.rpartition(":")
    if not file or not line.isdigit() or file.startswith(("/", "~")) or ".." in file.split("/"):
        raise ValueError(f"a file of the project and a line, as AGENTS.md:12, not {text!r}")
    return text


def _patterns(value: Any) -> tuple[str, ...]:
    from sidecars.syntax.command_pattern import CommandPattern

    found = _strings(value)
    for each in found:
        CommandPattern(each)
    return found


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _repeats(value: Any) -> Repeats:
    if not isinstance(value, dict) or "times" not in value or not set(value) <= {"times", "within", "same"}:
        raise ValueError("write it as {times: 4, within: 30m, same: [command, failure]}")
    same = _strings(value.get("same", "call"))
    if unknown := [each for each in same if each not in ALIKE]:
        raise ValueError(f"same: one or more of {', '.join(ALIKE)}, not {unknown[0]!r}")
    within = _duration(1, 86400)(value.get("within", "1h"))
    return Repeats(_whole(2, 1000)(value["times"]), within, same)


def _conditions(value: Any) -> Rule:
    """The conditions of an earlier action, as a rule that says nothing."""
    if not isinstance(value, dict) or not value:
        raise ValueError(f"write it as conditions of an action: {', '.join(EARLIER)}")
    given = {}
    for name, each in value.items():
        if name not in EARLIER:
            raise ValueError(f"{name}: of an earlier action only {', '.join(EARLIER)} can be asked")
        try:
            given[name] = RULE_FIELDS[name].convert(each)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return Rule("", **given)


def _since_last(value: Any) -> Rule:
    if not isinstance(value, dict) or set(value) != {"of"}:
        raise ValueError("write it as {of: {writes: ['**']}}")
    return _conditions(value["of"])


def _one_of(*names: str) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        if value not in names:
            raise ValueError(f"one of {', '.join(names)}, not {value!r}")
        return str(value)

    return convert


def _number(low: float, high: float) -> Callable[[Any], float]:
    def convert(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ValueError(f"must be a number from {low:g} to {high:g}")
        return float(value)

    return convert


def _whole(low: int, high: int) -> Callable[[Any], int]:
    def convert(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return value

    return convert


def _duration(low: float, high: float) -> Callable[[Any], float]:
    def convert(value: Any) -> float:
        from witness.config.settings import parse_duration

        if not isinstance(value, str | int | float):
            raise ValueError("a duration is written like 10s, 1m30s or 250ms")
        seconds = parse_duration(value)
        if not low <= seconds <= high:
            raise ValueError(f"must be from {low:g} s to {high:g} s")
        return seconds

    return convert


def _confidence(value: Any) -> Confidence:
    return Confidence.named(_string(value))


def _judge_name(value: Any) -> str:
    from witness.judging.functions import check_judge

    name = _string(value)
    try:
        check_judge(name)
    except UsageError as error:
        raise ValueError(str(error)) from error
    return name


def _sources(value: Any) -> tuple[str, ...]:
    found = _strings(value)
    for source in found:
        if source not in SOURCES and not source.startswith(NAMED_SOURCES):
            raise ValueError(f"{source!r} is not a source: one of {', '.join(SOURCES)}, files:GLOB or own:FILE")
    return found


_TEXT = {"type": "string"}
_TEXTS = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_PATTERN = {"type": "string", "format": "regex"}
_DURATION = {"anyOf": [{"type": "string", "pattern": r"^(\d+(\.\d+)?(ms|s|m|h|d)?)+$"}, {"type": "number"}]}
_REPEATS = {
    "type": "object",
    "additionalProperties": False,
    "required": ["times"],
    "properties": {
        "times": {"type": "integer", "minimum": 2, "maximum": 1000},
        "within": _DURATION,
        "same": {"anyOf": [{"enum": list(ALIKE)}, {"type": "array", "items": {"enum": list(ALIKE)}}]},
    },
}
_LEVEL = {"enum": [str(level) for level in Confidence]}

RULE_FIELDS: Mapping[str, Field] = {
    "name": Field(_string, _TEXT, "how the rule is named in the ledger"),
    "tools": Field(_strings, _TEXTS, "globs of tool names; none means any tool"),
    "failed": Field(_flag, {"type": "boolean"}, "only failed calls, or only those that did not fail"),
    "opens": Field(_strings, _TEXTS, "a file that was opened matches one of these globs or @sets"),
    "writes": Field(_strings, _TEXTS, "a file that was written matches one of these globs or @sets"),
    "touches": Field(_strings, _TEXTS, "a file that was opened or written matches one of these"),
    "writes_outside": Field(_strings, _TEXTS, "a file that was written matches none of these"),
    "touches_outside": Field(_strings, _TEXTS, "a file that was opened or written matches none of these"),
    "but_not": Field(_strings, _TEXTS, "files that never count for this rule"),
    "creates": Field(_strings, _TEXTS, "a file that was made anew matches one of these globs"),
    "changes": Field(
        _strings, _TEXTS, "a file that stood there before and was changed or removed matches one of these"
    ),
    "within": Field(_strings, _TEXTS, "only files count that match one of these, too"),
    "runs": Field(_patterns, _TEXTS, "a program ran that matches one of these, as 'git push -f|--force'"),
    "named": Field(_string, _PATTERN, "found in the name of a new function"),
    "adds_dependency": Field(_flag, {"type": "boolean"}, "a manifest names a package that it did not name before"),
    "command": Field(_string, _PATTERN, "found in the shell command"),
    "text": Field(_string, _PATTERN, "found in the text that was written"),
    "output": Field(_string, _PATTERN, "found in the tool's answer"),
    "code": Field(_string, _PATTERN, "found in the code that was written, comments and strings left out"),
    "comments": Field(_string, _PATTERN, "found in the comments that were written"),
    "unless": Field(_string, _PATTERN, "found anywhere in the action, it silences the rule"),
    "lines_over": Field(_whole(0, 100_000), {"type": "integer", "minimum": 0}, "more lines were written than this"),
    "function_over": Field(_whole(1, 100_000), {"type": "integer", "minimum": 1}, "a new function has more lines"),
    "lacks_block": Field(_string, _TEXT, "the polecat's prompt has no block of this type, and there is one to give"),
    "block_has": Field(_string, _PATTERN, "the block that the prompt lacks has this in its text"),
    "defines": Field(_one_of("@apis"), {"const": "@apis"}, "a name is defined anew that the argument's files define"),
    "undoes": Field(_flag, {"type": "boolean"}, "the edit puts back what an earlier edit of the run has replaced"),
    "repeats": Field(_repeats, _REPEATS, "it is the so-manieth action of its kind: {times, within, same}"),
    "since_last": Field(
        _since_last, {"type": "object"}, "repeats and after count only since the last action of these conditions"
    ),
    "after": Field(_conditions, {"type": "object"}, "an action of these conditions came before"),
    "given": Field(_string, _PATTERN, "the rule holds only where the sidecar's documents match this"),
    "confidence": Field(_confidence, _LEVEL, "how sure the rule is"),
    "once": Field(_flag, {"type": "boolean"}, "it speaks once in a run"),
    "final": Field(_flag, {"type": "boolean"}, "no model is asked whether it is right"),
    "snippet": Field(_string, _TEXT, "name of the text that is said"),
    "say": Field(_string, _TEXT, "the text that is said, in place of a snippet"),
    "cites": Field(_citation, _TEXT, "the line of the project that the words rest on, as AGENTS.md:12"),
}

#: What can be asked of an action that came before.
EARLIER = (
    "tools", "failed", "opens", "writes", "touches", "changes", "creates", "but_not", "within", "runs", "command",
    "output",
)  # fmt: skip

# What of a rule is a regular expression.
EXPRESSIONS = ("command", "text", "output", "code", "comments", "named", "block_has", "unless", "given")

FIELDS: Mapping[str, Field] = {
    "summary": Field(_string, _TEXT, "one line for people"),
    "argument": Field(_one_of(*ARGUMENTS), {"enum": list(ARGUMENTS)}, "what the spec's argument is; files are checked"),
    "tools": Field(_strings, _TEXTS, "globs of the tools whose calls are looked at; none means all"),
    "pane": Field(
        _one_of(*PANE_USES), {"enum": list(PANE_USES)}, "whether the pane is read: where no events come, never, only"
    ),
    "pane_lines": Field(_whole(5, 1000), {"type": "integer"}, "how many lines of the pane are looked at"),
    "change": Field(_number(0, 1), {"type": "number"}, "share of the pane that must change before it is judged"),
    "judge": Field(_one_of(*JUDGES), {"enum": list(JUDGES)}, "who judges"),
    "poll": Field(_duration(0.05, 3600), _DURATION, "the look-round when nothing wakes the sidecar"),
    "cooldown": Field(_duration(0, 86400), _DURATION, "silence after an injection"),
    "gap": Field(_duration(0, 3600), _DURATION, "silence after another sidecar's injection; signals are put off"),
    "threshold": Field(_confidence, _LEVEL, "a verdict below it is not said"),
    "cap": Field(_whole(0, 1000), {"type": "integer"}, "injections in one run of the polecat"),
    "max_age": Field(_duration(1, 86400), _DURATION, "a model's word on an older action is not said; a rule's is"),
    "duplicate_window": Field(_duration(0, 86400), _DURATION, "the same thing is not said twice within it"),
    "holdout": Field(_number(0, 1), {"type": "number"}, "share of signals that are recorded and not said"),
    "timeout": Field(_duration(0.05, 15), _DURATION, "the judge's whole time, retries included"),
    "model": Field(_string, _TEXT, "the model's id; the town's setting when empty"),
    "max_tokens": Field(_whole(64, 8192), {"type": "integer"}, "upper end of the model's answer"),
    "batch": Field(_duration(0, 600), _DURATION, "wait for more actions before a model is asked"),
    "calls_per_hour": Field(_whole(1, 3600), {"type": "integer"}, "how often a model may be asked"),
    "command": Field(_strings, _TEXTS, "the judge program and its arguments"),
    "function": Field(_judge_name, _TEXT, "name of the Python function that judges; the type's name when empty"),
    "context": Field(
        _sources, _TEXTS, "where the judge's context comes from: " + ", ".join([*SOURCES, "files:GLOB", "own:FILE"])
    ),
    "rules": Field(lambda value: value, {"type": "array"}, "the rules"),
    "prompt": Field(_string, _TEXT, "instructions to the model, in place of prompt.md"),
    "near_misses": Field(
        _near_misses,
        {
            "type": "array",
            "maxItems": MOST_NEAR_MISSES,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["case", "seen"],
                "properties": {"case": _TEXT, "seen": _TEXT},
            },
        },
        "silent cases that the model is shown, at most four: the case's name, and what of its action shows it",
    ),
}


def json_schema() -> dict[str, Any]:
    """The JSON Schema of ``sidecar.yaml``, for editors."""
    rule = {
        "type": "object",
        "additionalProperties": False,
        "required": ["name"],
        "oneOf": [{"required": ["snippet"]}, {"required": ["say"]}],
        "properties": {name: {**each.schema, "description": each.about} for name, each in RULE_FIELDS.items()},
    }
    properties = {name: {**each.schema, "description": each.about} for name, each in FIELDS.items()}
    properties["rules"] = {"type": "array", "items": rule, "description": FIELDS["rules"].about}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "sidecar.yaml of gt-witness",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }
