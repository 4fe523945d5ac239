"""A Messages server that means harm: its counts, its sizes, its nesting."""

from __future__ import annotations

import json
import resource
import zlib
from functools import cache

import pytest

from sidecars.llm.client import Endpoint, ModelClient
from sidecars.llm.reply import ModelFault
from witness.testing import Answer, Exchange, MessagesServer, call, message, raw, say

_QUESTION = {"max_tokens": 10, "messages": [{"role": "user", "content": "x"}]}


def _counts(**usage: int) -> Answer:
    return message(usage={"input_tokens": 1, "output_tokens": 1} | usage)


@pytest.mark.parametrize("count", [-(10**9), 10**15])
def test_an_absurd_count_never_lowers_what_was_spent(count: int) -> None:
    with MessagesServer(_counts(output_tokens=count), _counts(input_tokens=count)) as server:
        client = ModelClient(Endpoint("k", "claude-haiku-5-5", server.url))
        client.ask(_QUESTION, 5)
        first = client.usage.dollars
        client.ask(_QUESTION, 5)
        client.close()
    assert first > 0
    assert client.usage.dollars > first
    assert client.usage.dollars < 1e3


@pytest.mark.parametrize(
    "answer",
    [
        message(call("report_signal", "[" * 60_000)),
        say("{" * 60_000),
        raw(b'event: message_start\ndata: {"type":"message_start","message":' + b"[" * 100_000 + b"\n\n"),
    ],
)
def test_deep_nesting_is_no_answer_and_no_crash(answer: Answer) -> None:
    with MessagesServer(answer) as server:
        client = ModelClient(Endpoint("k", "m", server.url))
        try:
            reply = client.ask(_QUESTION, 3)
            said = str(reply.called("report_signal") or "")
        except ModelFault as error:
            said = error.reason
        client.close()
    assert "\n" not in said
    assert len(said) < 400 or said == "[" * 60_000


@cache
def _zeros() -> bytes:
    """256 MB, compressed piece by piece: they are never in memory."""
    packer = zlib.compressobj(1, wbits=31)
    return b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(256)), packer.flush()])


def _bomb(code: int) -> Answer:
    packed = _zeros()

    def write(exchange: Exchange) -> None:
        exchange.start(code, "application/json", content_encoding="gzip", content_length=str(len(packed)))
        exchange.write(packed)

    return Answer(write)


@pytest.mark.parametrize("code", [200, 400])
def test_a_compressed_body_is_refused_unread(code: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with MessagesServer(*[_bomb(code)] * 6) as server:
        before = max(before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        client = ModelClient(Endpoint("k", "m", server.url))
        with pytest.raises(ModelFault, match="connection: "):
            client.ask(_QUESTION, 20)
        client.close()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


@pytest.mark.parametrize("code", [200, 400, 529])
def test_endless_bodies_are_broken_off_once_for_all_tries_of_a_question(code: int) -> None:
    written: list[int] = []

    def endless(exchange: Exchange) -> None:
        exchange.start(code, "application/json")
        while True:
            exchange.write(b" " * 65536)
            written.append(65536)

    with MessagesServer(*[Answer(endless)] * 12) as server:
        client = ModelClient(Endpoint("k", "m", server.url))
        with pytest.raises(ModelFault):
            client.ask(_QUESTION, 20)
        first = sum(written)
        with pytest.raises(ModelFault):
            client.ask(_QUESTION, 20)
        client.close()
    # The sockets' own buffers come on top.
    assert (16 << 20) <= first < (32 << 20)
    assert sum(written) > first + (16 << 20), "the next question has its own room"


def test_a_huge_answer_is_broken_off() -> None:
    with MessagesServer(say("x" * 600_000)) as server:
        client = ModelClient(Endpoint("k", "m", server.url))
        with pytest.raises(ModelFault, match="longer than"):
            client.ask(_QUESTION, 10)
        client.close()


def test_a_report_that_is_nested_without_end_costs_no_time() -> None:
    from time import process_time

    from sidecars.observer.judge.signal_tool import find_reports

    began = process_time()
    with pytest.raises(ValueError, match="JSON"):
        find_reports("{" * 60_000)
    with pytest.raises(ValueError, match="JSON"):
        find_reports(json.dumps({"a": 1})[:-1] + "," + '{"b":[' * 20_000)
    assert process_time() - began < 1.5
