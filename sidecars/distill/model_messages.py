"""What a model is given (its task, the passages that a search has ranked, the question), and its words as an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sidecars.distill.answer import Claim, Draft
from sidecars.distill.extractive_backend import search
from sidecars.distill.request import Inquiry
from sidecars.distill.tools import Tools
from sidecars.llm.reply import json_objects

# Characters of ranked passages that go with the question: most questions are answered from them alone.
PREPASS_ROOM = 2400


def instructions(tools: str) -> str:
    """What a model is told about its task.

    Args:
        tools: the names of its tools, as ``Read and Grep``.
    """
    return (Path(__file__).parent / "prompt.md").read_text(encoding="utf-8").replace("{tools}", tools)


def opening(inquiry: Inquiry, tools: Tools, names: Mapping[str, str] | None = None) -> tuple[str, tuple[Claim, ...]]:
    """The first message: the artifacts, the passages that the index has ranked, the question.

    Args:
        inquiry: the question.
        tools: for the marks around what comes from artifacts.
        names: how the artifacts are called there, when not by their own names.

    Returns:
        The text, and the passages as claims, for the case that nothing better comes.
    """
    found = search(inquiry.shelf, inquiry.question, PREPASS_ROOM)
    called = names or {}
    entries = inquiry.shelf.artifacts.entries()
    listed = [f"{called.get(entry.name, entry.name)} ({entry.size} bytes)" for entry in entries[:20]]
    if len(entries) > 20:
        listed.append(f"and {len(entries) - 20} more")
    counts = ", ".join(
        f"{each.term.text} {'' if each.exact else 'about '}{each.lines}"
        for each in found.ranking.counts[:10]
        if each.lines
    )
    several = len(entries) > 1
    passages = [
        f"{called.get(each.path, each.path) + ' ' if several else ''}{each.locator}: {each.quote}"
        for each in found.claims
    ]
    data = "\n".join(
        [
            *("Artifacts:", *listed),
            f"{found.ranking.lines} lines in all. Lines with: {counts or 'none of the words'}.",
            *("", "Passages:", *(passages or ["none"])),
        ]
    )
    return f"{tools.framed(data)}\n\nQuestion: {inquiry.question}", found.claims


# A model's words as an answer, however it has wrapped them.

_FENCE = re.compile(r"```[\w-]*[ \t]*\r?\n(.*?)(?:\r?\n)?```", re.DOTALL)
_MOST_CLAIMS = 40
_MOST_LINES = 20


def read_reply(text: str) -> Draft | None:
    """The answer in a reply: fenced, bare, between chatter, or cut off at its end. None when there is none.

    Of several the last is taken: a model that corrects itself does so afterwards.
    """
    for candidate in _candidates(text):
        if isinstance(candidate, dict) and isinstance(candidate.get("answer"), str) and candidate["answer"].strip():
            return Draft(
                candidate["answer"].strip(),
                tuple(_claims(candidate.get("evidence"))),
                _texts(candidate.get("gaps")),
                _texts(candidate.get("followups")),
            )
    return None


def _candidates(text: str) -> Iterator[Any]:
    for fenced in reversed(_FENCE.findall(text)):
        yield from reversed(list(json_objects(fenced)))
    yield from reversed(list(json_objects(text)))
    yield from _cut_off(text)


def _cut_off(text: str) -> Iterator[Any]:
    # What was written before the model ran out of tokens is still worth checking.
    import jiter

    at = text.find('{"')
    if at < 0:
        at = text.find("{")
    if at >= 0:
        try:
            yield jiter.from_json(text[at:].encode("utf-8", "replace"), partial_mode="trailing-strings")
        except ValueError:
            return


def _claims(value: Any) -> Iterator[Claim]:
    if isinstance(value, dict):
        value = [value]
    for each in value[:_MOST_CLAIMS] if isinstance(value, list) else ():
        if isinstance(each, str):
            each = {"quote": each}  # noqa: PLW2901
        if isinstance(each, dict):
            yield Claim(*(_text(each.get(key)) for key in ("path", "locator", "quote", "reason")))


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    found = [_text(each).strip() for each in value] if isinstance(value, list) else []
    return tuple(text for text in found if text)[:_MOST_LINES]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
