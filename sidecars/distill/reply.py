"""A model's words as an answer, however it has wrapped them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from sidecars.distill.answer import Claim, Draft
from sidecars.llm.reply import json_objects

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
