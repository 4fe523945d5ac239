"""What came of one question: an answer that is whole, or a fault.

The server is a peer and not trusted: an answer over ``LONGEST_ANSWER`` characters is broken off, token counts that are
negative or absurd count as the limit, and JSON that is nested too deeply is no JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: Characters of all blocks of one answer together.
LONGEST_ANSWER = 400_000
# A failed try costs time in proportion to the whole text.
_MOST_TRIES = 200
# No model takes or gives as many tokens in one call; a count above is a fault of the server and counts as this.
_MOST_TOKENS_COUNTED = 10_000_000
# Their names of token counts and ours, in the first and in the last report of an answer.
_FIRST_COUNTS = {
    "input_tokens": "input_tokens",
    "cache_read_input_tokens": "cached_tokens",
    "cache_creation_input_tokens": "cache_written_tokens",
}
_LAST_COUNTS = {"output_tokens": "output_tokens"}
COUNTS = (*_FIRST_COUNTS.values(), *_LAST_COUNTS.values())


class ModelFault(Exception):
    """The model gave no usable answer.

    Args:
        reason: one line.
        status: the HTTP status, 0 when none came.
        retryable: it passes by itself.
        pause: seconds for which the server asked to be left alone, 0 when it did not.
        timeout: the deadline came first.
    """

    def __init__(
        self, reason: str, *, status: int = 0, retryable: bool = False, pause: float = 0.0, timeout: bool = False
    ) -> None:
        self.reason, self.status, self.retryable = reason, status, retryable
        self.pause, self.timeout = pause, timeout
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that came whole.

    Args:
        blocks: its content, as the API spells it, with each tool's input as an object (as text where it was no JSON).
        stop: the stop reason.
    """

    blocks: tuple[Mapping[str, Any], ...]
    stop: str

    @property
    def text(self) -> str:
        """What it said in words."""
        return "\n".join(str(block.get("text", "")) for block in self.blocks if block["type"] == "text")

    @property
    def calls(self) -> tuple[Mapping[str, Any], ...]:
        """The tools that it calls."""
        return tuple(block for block in self.blocks if block["type"] == "tool_use")

    def called(self, tool: str) -> Any:
        """The input of the first call of a tool; None when there is none. The first block may be thinking."""
        return next((block["input"] for block in self.calls if block["name"] == tool), None)


class StreamedAnswer:
    """What has come of a streamed answer."""

    def __init__(self) -> None:
        self._blocks: dict[int, dict[str, Any]] = {}
        self._parts: dict[int, list[str]] = {}
        self._size = 0
        self._stop = ""
        self._whole = False
        #: Tokens as the server counts them; its later reports hold the output so far, not what is new.
        self.tokens: dict[str, int] = {}

    def take(self, event: Any) -> None:
        kind = getattr(event, "type", "")
        if kind == "message_start":
            self._count(event.message.usage, _FIRST_COUNTS)
        elif kind == "content_block_start":
            block = event.content_block.model_dump(exclude_none=True)
            self._blocks[event.index] = block
            given = block.get("input") or block.get("text")
            # Some compatible servers send the whole block at once.
            self._add(event.index, json.dumps(given) if isinstance(given, dict) else str(given or ""))
        elif kind == "content_block_delta":
            delta = event.delta
            if signature := getattr(delta, "signature", None):
                self._blocks.setdefault(event.index, {"type": "thinking"})["signature"] = signature
            else:
                text = next(
                    (value for name in ("partial_json", "text", "thinking") if (value := getattr(delta, name, None))),
                    "",
                )
                self._add(event.index, text)
        elif kind == "message_delta":
            self._stop = event.delta.stop_reason or self._stop
            self._count(event.usage, _LAST_COUNTS)
        elif kind == "message_stop":
            self._whole = True

    def _add(self, index: int, text: str) -> None:
        self._size += len(text)
        if self._size > LONGEST_ANSWER:
            raise ModelFault(f"garbage: the answer is longer than {LONGEST_ANSWER} characters")
        self._parts.setdefault(index, []).append(text)

    def _count(self, tokens: Any, names: Mapping[str, str]) -> None:
        self.tokens |= _counted({ours: getattr(tokens, theirs, 0) for theirs, ours in names.items()})

    def reply(self) -> Reply:
        """The whole answer, its blocks by their types.

        Raises:
            ModelFault: it is not whole, or says that it is no answer.
        """
        if not self._whole:
            reason = "the stream was cut off" if self._blocks else "garbage: no message in the answer"
            raise ModelFault(reason, retryable=True)
        if self._stop == "refusal":
            raise ModelFault("refusal: the model declined to answer")
        return Reply(tuple(self._filled(index) for index in sorted(self._blocks)), self._stop)

    def _filled(self, index: int) -> dict[str, Any]:
        block, text = self._blocks[index], "".join(self._parts.get(index, ()))
        if block["type"] == "tool_use":
            try:
                return {**block, "input": json.loads(text or "{}")}
            except (ValueError, RecursionError):
                return {**block, "input": text}
        return {**block, "thinking" if block["type"] == "thinking" else "text": text}


def count_tokens(usage: Mapping[str, Any]) -> dict[str, int]:
    """Our counts of the tokens that a whole answer's ``usage`` tells of."""
    return _counted({ours: usage.get(theirs, 0) for theirs, ours in (_FIRST_COUNTS | _LAST_COUNTS).items()})


def _counted(told: Mapping[str, Any]) -> dict[str, int]:
    # A negative count would make a budget endless.
    return {
        name: number if 0 <= number <= _MOST_TOKENS_COUNTED else _MOST_TOKENS_COUNTED
        for name, number in told.items()
        if isinstance(number, int) and not isinstance(number, bool)
    }


def one_line(text: str) -> str:
    """What a server said, in one line of 200 characters at most."""
    return " ".join(text.split())[:200]


def json_objects(text: str) -> Iterator[Any]:
    """The outermost JSON objects in free text: bare, fenced, or with prose around them.

    Args:
        text: as a model wrote it; of more than ``_MOST_TRIES`` opening braces the rest is not looked at.

    Yields:
        Each object; a ``ValueError`` in its place where an opening brace begins none.
    """
    decoder = json.JSONDecoder(strict=False)
    at = text.find("{")
    for _ in range(_MOST_TRIES):
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            yield error if isinstance(error, ValueError) else ValueError("it is nested too deeply")
            at = text.find("{", at + 1)
            continue
        yield value
        at = text.find("{", end)
