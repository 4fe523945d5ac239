"""The model that the observed session's own client asks for us, at its user's subscription, in place of a key.

Only a client that runs our mod can: its server (``hooks/gt_mod.py``) takes the question over the run's socket and the
mod puts it to ``$.model.complete``. There are no tools and no streaming, so a question is one text and its answer is
read out of one.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sidecars.llm.client import Endpoint
from sidecars.llm.reply import LONGEST_ANSWER, ModelFault, Reply, count_tokens, one_line
from witness.clock import Clock, SystemClock
from witness.journal.records import Usage
from witness.prices import dollars

_SOCKET = "mod.sock"
# What stands around the answer's text.
_ENVELOPE = 10_000


class ClientModel:
    """Asks through the client of one run; what it costs is added up as for ``ModelClient``.

    Args:
        spool: the run's spool.
        endpoint: the model's id and the town's own prices; the client has the key.
        clock: where the time comes from.

    Attributes:
        usage: what all its questions cost so far.
    """

    def __init__(self, spool: Path, endpoint: Endpoint, clock: Clock | None = None) -> None:
        self._spool, self.endpoint, self._clock = spool, endpoint, clock or SystemClock()
        self.usage = Usage(model=endpoint.model)

    def close(self) -> None:
        """There is nothing to let go of."""

    def ask(
        self, arguments: Mapping[str, Any], seconds: float, accept: Callable[[Reply], object] = lambda reply: None
    ) -> Reply:
        """Put one question.

        Args:
            arguments: of ``messages.create``; a tool in it is asked for as JSON.
            seconds: for everything.
            accept: looks at the answer; it is none when this raises ``ValueError``.

        Raises:
            ModelFault: there is no answer.
        """
        began = self._clock.monotonic()
        question = {
            "model": self.endpoint.model,
            "prompt": _prompt(arguments),
            "maxTokens": arguments["max_tokens"],
            "seconds": seconds,
        }
        try:
            answer = self._exchange(json.dumps(question).encode(), seconds)
            if fault := answer.get("fault"):
                raise ModelFault(f"the client: {one_line(str(fault))}")
            self._count(answer.get("usage"), self._clock.monotonic() - began)
            if answer.get("isAnswered") is False or not isinstance(answer.get("text"), str):
                raise ModelFault("the client gave no answer")
            reply = Reply(({"type": "text", "text": answer["text"]},), "end_turn")
            accept(reply)
        except TimeoutError:
            raise ModelFault(f"timeout: no answer within {seconds:g} s", retryable=True, timeout=True) from None
        except (FileNotFoundError, ConnectionError) as error:
            raise ModelFault("the session's client runs no mod of ours that could ask") from error
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            raise ModelFault(f"garbage: {one_line(str(error))}") from error
        return reply

    def _exchange(self, body: bytes, seconds: float) -> dict[str, Any]:
        connection = _Connection(self._spool, seconds)
        try:
            connection.request("POST", "/complete", body)
            data = connection.getresponse().read(LONGEST_ANSWER + _ENVELOPE)
        finally:
            connection.close()
        answer = json.loads(data)
        if not isinstance(answer, dict):
            raise ValueError("the answer is no JSON object")
        return answer

    def _count(self, told: Any, seconds: float) -> None:
        counts = count_tokens(told if isinstance(told, dict) else {})
        each = Usage(self.endpoint.model, calls=1, **counts)
        self.usage = replace(
            self.usage,
            calls=self.usage.calls + 1,
            seconds=self.usage.seconds + seconds,
            input_tokens=self.usage.input_tokens + each.input_tokens,
            cached_tokens=self.usage.cached_tokens + each.cached_tokens,
            cache_written_tokens=self.usage.cache_written_tokens + each.cache_written_tokens,
            output_tokens=self.usage.output_tokens + each.output_tokens,
            dollars=self.usage.dollars + dollars(each, self.endpoint.prices),
        )


class _Connection(http.client.HTTPConnection):
    """To the mod's server of a run, however long the path of its folder is."""

    def __init__(self, spool: Path, seconds: float) -> None:
        super().__init__("gt-witness", timeout=seconds)
        self._spool = spool

    def connect(self) -> None:
        at = os.open(self._spool, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(self.timeout)
            self.sock.connect(f"/proc/self/fd/{at}/{_SOCKET}")
        finally:
            os.close(at)


def _prompt(arguments: Mapping[str, Any]) -> str:
    """One text of what the Messages API takes in parts."""
    parts = [str(block["text"]) for block in arguments.get("system", ())]
    for tool in arguments.get("tools", ()):
        parts.append(
            f"There are no tools here: in place of each call of {tool['name']} write its input as one JSON object "
            f"of this schema, and write nothing else:\n{json.dumps(tool['input_schema'])}"
        )
    parts += [str(message["content"]) for message in arguments["messages"]]
    return "\n\n".join(parts)
