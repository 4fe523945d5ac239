"""The ``report_signal`` tool, and reading what a judge reports, however it wraps it."""

from __future__ import annotations

from typing import Any

from sidecars.llm.reply import json_objects
from sidecars.observer.judge.verdict import Verdict
from sidecars.type_reader.sidecar_type import Confidence

TOOL = "report_signal"
_LONGEST = 4_000


def tool(snippets: list[str]) -> dict[str, Any]:
    """The tool's declaration for the Messages API.

    Args:
        snippets: names of the pre-written texts that may be chosen.
    """
    return {
        "name": TOOL,
        "description": "Report whether one action of the agent needs a word, and which. Call it once for each action.",
        "input_schema": {
            "type": "object",
            "additionalProperties": False,
            # What is quoted comes first and the decision last: who decides first quotes what fits.
            "required": ["evidence", "source_quote", "action", "snippet", "message", "confidence", "signal"],
            "properties": {
                "evidence": {"type": "string", "description": "the action, copied exactly from the observation"},
                "source_quote": {
                    "type": "string",
                    "description": "the document's sentence that it is held against, copied exactly; empty for none",
                },
                "action": {"type": "integer", "description": "the number of the action that this is about"},
                "snippet": {
                    "anyOf": [{"type": "string", "enum": snippets}, {"type": "null"}]
                    if snippets
                    else [{"type": "null"}],
                    "description": "the pre-written text that fits, null when none does",
                },
                "message": {"type": "string", "description": "one or two sentences of fact; empty beside a snippet"},
                "confidence": {"type": "string", "enum": [str(level) for level in Confidence]},
                "signal": {"type": "boolean", "description": "false unless something clearly needs saying"},
            },
        },
    }


def read_report(value: Any) -> Verdict:
    """Read the tool's input.

    Args:
        value: as the judge gave it.

    Raises:
        ValueError: it is no report; a report without a usable ``signal`` is none, never a silent "all is well".
    """
    if not isinstance(value, dict):
        raise ValueError("the report is no JSON object")
    signal = value.get("signal")
    if isinstance(signal, str) and signal.strip().lower() in ("true", "false"):
        signal = signal.strip().lower() == "true"
    if not isinstance(signal, bool):
        raise ValueError("the report has no boolean 'signal'")
    try:
        confidence = Confidence.named(str(value.get("confidence", "low")))
    except ValueError:
        confidence = Confidence.LOW  # a judge that cannot say how sure it is, is not
    return Verdict(
        signal=signal,
        evidence=_words(value.get("evidence")),
        source_quote=_words(value.get("source_quote")),
        confidence=confidence,
        snippet=_words(value.get("snippet")),
        message=_words(value.get("message")),
        observation=_action(value.get("action", value.get("observation"))),
    )


def find_reports(text: str) -> list[Verdict]:
    """Read the reports out of free text: bare, fenced, or with prose around them.

    Raises:
        ValueError: there is none, one is cut off, or there are several about the same that disagree.
    """
    found: list[Verdict] = []
    fault = "the answer holds no JSON object"
    for value in json_objects(text):
        try:
            if isinstance(value, ValueError):
                raise ValueError(f"the answer's JSON is broken: {value}") from value
            found.append(read_report(value))
        except ValueError as error:
            fault = str(error)
    if not found:
        raise ValueError(fault)
    decided = {(each.observation, each.signal) for each in found}
    if len(decided) > len({observation for observation, _ in decided}):
        raise ValueError("the answer holds reports that disagree")
    return found


def _words(value: Any) -> str:
    return value[:_LONGEST] if isinstance(value, str) else ""


def _action(value: Any) -> str:
    """What a report is about: an action's number, or an observation's id."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _words(value)
