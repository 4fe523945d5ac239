"""The model judge against a real HTTP server that misbehaves."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from sidecars.llm.client import Endpoint, ModelClient
from sidecars.observer.context import Context
from sidecars.observer.factory import build_components
from sidecars.observer.judge.model import ModelJudge
from sidecars.observer.judge.model_prompt import SILENT_TOKENS
from sidecars.observer.judge.verdict import Verdict
from sidecars.type_reader.sidecar_type import Confidence, NearMiss, SidecarType
from tests.sidecars.reports import report, tool
from witness.config.settings import Settings
from witness.judging.observation import Observation
from witness.testing import (
    Answer,
    MessagesServer,
    call,
    drip,
    fail,
    fail_inside,
    hang_up,
    hold,
    message,
    raw,
    say,
    think,
)

SEEN = [Observation("e1", tool="Edit", written=("a.py",), text="return 400")]
SIGNAL = report(
    signal=True,
    evidence="return 400",
    source_quote="Status 422 for bad input.",
    confidence="high",
    message="a.py answers 400; the spec says 422.",
)
LONG = Context(documents=(("spec.md", "Status 422 for bad input. " * 200),))
Ask = Callable[..., tuple[Verdict, MessagesServer]]


@pytest.fixture
def ask() -> Iterator[Ask]:
    with ExitStack() as stack:

        def put(
            *answers: Answer, timeout: float = 5.0, material: Context = LONG, **fields: Any
        ) -> tuple[Verdict, MessagesServer]:
            server = stack.enter_context(MessagesServer(*answers))
            kind = SidecarType("specs", prompt="Hold it against the spec.", timeout=timeout, **fields)
            judge = ModelJudge(
                kind, material, ModelClient(Endpoint("sk-secret", kind.model or "claude-haiku-5-5", server.url))
            )
            stack.callback(judge.close)
            (verdict,) = judge.judge(SEEN)
            return verdict, server

        yield put


def test_a_signal_with_its_cost(ask: Ask) -> None:
    verdict, _ = ask(tool(SIGNAL))
    assert (verdict.signal, verdict.confidence, verdict.evidence) == (True, Confidence.HIGH, "return 400")
    usage = verdict.usage
    assert usage is not None
    assert (usage.calls, usage.input_tokens, usage.cached_tokens, usage.cache_written_tokens) == (1, 40, 1000, 200)
    assert usage.output_tokens == 60
    assert usage.dollars == pytest.approx((40 * 0.10 + 1000 * 0.01 + 200 * 0.125 + 60 * 0.50) / 1e6)
    assert 0 < usage.seconds < 5


def test_silence(ask: Ask) -> None:
    verdict, _ = ask(tool(report()))
    assert (verdict.signal, verdict.error) == (False, "")


def test_the_request_is_what_the_model_family_takes(ask: Ask) -> None:
    _, server = ask(tool(report()), snippets={"one": "One."}, max_tokens=300)
    (request,) = server.bodies
    assert request["model"] == "claude-haiku-5-5"
    assert request["max_tokens"] == 300
    assert request["tool_choice"] == {"type": "tool", "name": "report_signal"}
    assert request["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert "spec.md" in request["system"][0]["text"]
    assert "return 400" in request["messages"][0]["content"]
    assert "return 400" not in request["system"][0]["text"]
    assert request["tools"][0]["input_schema"]["properties"]["snippet"]["anyOf"][0]["enum"] == ["one"]


def test_a_prefix_below_the_models_minimum_is_not_marked(ask: Ask) -> None:
    _, server = ask(tool(report()), model="claude-haiku-4-5")
    assert "cache_control" not in server.bodies[0]["system"][0]


def test_the_system_prompt_is_the_same_at_every_call() -> None:
    with MessagesServer(tool(report()), tool(report())) as server:
        judge = ModelJudge(
            SidecarType("specs", prompt="x"), LONG, ModelClient(Endpoint("k", "claude-haiku-5-5", server.url))
        )
        judge.judge(SEEN)
        judge.judge([Observation("e2", tool="Bash", command="ls")])
        judge.close()
        assert server.bodies[0]["system"] == server.bodies[1]["system"]
        assert server.bodies[0]["tools"] == server.bodies[1]["tools"]


@pytest.mark.parametrize(
    "fault",
    [
        fail(429, "rate_limit_error", retry_after="0"),
        fail(529, "overloaded_error"),
        fail(500, "api_error", "Overloaded"),
        fail(503, "api_error"),
        fail_inside("overloaded_error"),
        fail_inside("api_error", "Overloaded"),
        message(call("report_signal", SIGNAL), events=4),
        message(events=1),
        raw(b"<html>gateway</html>", "text/html"),
        raw(b"event: message_start\ndata: {broken\n\n"),
        raw(b"\x00\xff\xfe" * 100),
        raw(b""),
        hang_up(),
        tool({"evidence": "no signal field"}),
        tool('{"signal": tr'),
        say(""),
        say('{"signal": true'),
        say('{"signal": true} or {"signal": false}'),
    ],
)
def test_a_fault_that_passes_is_tried_again(ask: Ask, fault: Answer) -> None:
    verdict, server = ask(fault, tool(SIGNAL))
    assert verdict.signal
    assert len(server.bodies) == 2
    assert verdict.usage is not None
    assert verdict.usage.calls == 2


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (fail(401, "authentication_error", "invalid x-api-key"), "authentication_error 401: invalid x-api-key"),
        (fail(404, "not_found_error", "model: nope"), "not_found_error 404"),
        (fail_inside("invalid_request_error", "bad"), "invalid_request_error 200: bad"),
        (message(stop="refusal"), "refusal"),
        (message(say(""), stop="max_tokens"), "max_tokens"),
    ],
)
def test_a_fault_that_stays_is_told_at_once(ask: Ask, fault: Answer, error: str) -> None:
    verdict, server = ask(fault, tool(SIGNAL))
    assert not verdict.signal
    assert verdict.error.startswith(error)
    assert not verdict.passing
    assert len(server.bodies) == 1
    assert "sk-secret" not in repr(verdict)


@pytest.mark.parametrize(
    "answer",
    [
        message(think("Hm."), call("report_signal", SIGNAL)),
        message(say("Let me report."), call("report_signal", SIGNAL)),
        say(f"```json\n{json.dumps(SIGNAL)}\n```"),
        say(f"```json\r\n{json.dumps(SIGNAL)}\r\n```\r\nThat is {{all}}."),
        say(f"Here it is: {json.dumps(SIGNAL, indent=2)} Done."),
    ],
)
def test_however_the_report_is_wrapped(ask: Ask, answer: Answer) -> None:
    verdict, server = ask(answer)
    assert verdict.signal
    assert len(server.bodies) == 1


def test_the_deadline_holds_for_all_tries_together(ask: Ask) -> None:
    verdict, server = ask(*[fail(529, "overloaded_error")] * 50, timeout=0.8)
    assert (verdict.signal, verdict.passing) == (False, True)
    assert "overloaded_error 529" in verdict.error
    assert 1 < len(server.bodies) < 10
    assert verdict.usage is not None
    assert verdict.usage.seconds < 1.2


@pytest.mark.parametrize("slow", [hold, drip])
def test_a_slow_server_costs_the_deadline_and_no_more(ask: Ask, slow: Callable[[threading.Event], Answer]) -> None:
    gate = threading.Event()
    verdict, _ = ask(slow(gate), timeout=0.4)
    gate.set()
    assert verdict.error.startswith("timeout: no answer within 0.4 s")
    assert verdict.passing
    assert verdict.usage is not None
    assert verdict.usage.seconds < 0.9


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_server_that_wants_a_long_pause_gets_it(ask: Ask, form: str) -> None:
    later = datetime.now(UTC) + timedelta(seconds=120)
    after = "120" if form == "seconds" else format_datetime(later, usegmt=True)
    verdict, server = ask(fail(429, "rate_limit_error", retry_after=after))
    assert len(server.bodies) == 1
    assert verdict.usage is not None
    assert verdict.usage.seconds < 4
    assert 60 < verdict.pause <= 120


def test_a_retry_after_that_means_nothing(ask: Ask) -> None:
    verdict, _ = ask(fail(429, "rate_limit_error", retry_after="soon"), tool(SIGNAL))
    assert verdict.signal


def test_nobody_listens() -> None:
    kind = SidecarType("specs", prompt="x", timeout=0.5)
    judge = ModelJudge(kind, Context(), ModelClient(Endpoint("k", "claude-haiku-5-5", "http://127.0.0.1:9")))
    (verdict,) = judge.judge(SEEN)
    judge.close()
    assert verdict.error.startswith(("connection:", "timeout:"))
    assert verdict.passing


def test_the_base_url_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(tool(SIGNAL)) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        judge = ModelJudge(SidecarType("specs", prompt="x"), Context(), ModelClient(Endpoint("k", "any-model")))
        (verdict,) = judge.judge(SEEN)
        judge.close()
    assert verdict.signal


def test_the_base_url_may_be_a_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GT_WITNESS_API_KEY", "sk-test")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    with MessagesServer(tool(SIGNAL)) as server:
        settings = Settings(model_url=server.url, model="local-1", prices={"local": {"input": 1.0}})
        parts = build_components(SidecarType("own", judge="model", prompt="x"), Context(), settings, tmp_path)
        (verdict,) = parts.judge.judge(SEEN)
        parts.judge.close()
    assert verdict.signal
    assert verdict.usage is not None
    assert verdict.usage.model == "local-1"
    assert verdict.usage.dollars == pytest.approx(1240 / 1e6)


def test_nothing_seen_asks_nobody() -> None:
    assert ModelJudge(SidecarType("specs", prompt="x"), Context(), ModelClient(Endpoint("k", "m"))).judge([]) == []


def test_a_sentence_that_stands_in_no_document_is_no_signal(ask: Ask) -> None:
    verdict, _ = ask(tool({**SIGNAL, "source_quote": "Status 418 for teapots."}))
    assert (verdict.signal, verdict.error) == (False, "")
    assert "source_quote" in verdict.rule


def test_what_is_quoted_comes_before_the_decision(ask: Ask) -> None:
    _, server = ask(tool(report()))
    fields = list(server.bodies[0]["tools"][0]["input_schema"]["properties"])
    assert fields[:2] == ["evidence", "source_quote"]
    assert fields[-1] == "signal"


# -- several actions at once ----------------------------------------------------------------------------------------

MANY = [
    Observation("e1", tool="Edit", written=("a.py",), text="return 400"),
    Observation("e2", tool="Bash", command="ls"),
    Observation("e3", tool="Edit", written=("c.py",), text="status = 404"),
]


def many(
    *answers: Answer, seen: Sequence[Observation] = MANY, material: Context = LONG, **given: Any
) -> tuple[list[Verdict], MessagesServer]:
    with MessagesServer(*answers) as server:
        kind = SidecarType("specs", prompt="x", near_misses=NEAR, max_tokens=500)
        judge = ModelJudge(kind, material, ModelClient(Endpoint("k", "claude-haiku-5-5", server.url)))
        verdicts = judge.judge(seen, **given)
        judge.close()
        return verdicts, server


NEAR = (NearMiss("400 for what is no JSON", "except JSONDecodeError: return 400"),)


def reports(*given: dict[str, Any]) -> Answer:
    return message(*(call("report_signal", each) for each in given))


def test_each_action_has_its_own_verdict_and_the_call_is_paid_once() -> None:
    verdicts, server = many(
        reports(
            {**SIGNAL, "action": 1},
            report(action=2),
            {**SIGNAL, "action": 3, "evidence": "status = 404", "message": "c.py answers 404; the spec says 422."},
        )
    )
    assert [(each.observation, each.signal, each.message) for each in verdicts] == [
        ("e1", True, "a.py answers 400; the spec says 422."),
        ("e2", False, ""),
        ("e3", True, "c.py answers 404; the spec says 422."),
    ]
    assert [each.usage.calls if each.usage else 0 for each in verdicts] == [1, 0, 0]
    asked = server.bodies[0]["messages"][0]["content"]
    assert [f"[action {number}]" in asked for number in range(5)] == [False, True, True, True, False]
    assert server.bodies[0]["max_tokens"] == 500 + 2 * SILENT_TOKENS


def test_a_quote_that_is_checked_beats_a_number_that_is_not() -> None:
    verdicts, _ = many(reports({**SIGNAL, "action": 3}, report(action=1), report(action=2)))
    assert [each.observation for each in verdicts if each.signal] == ["e1"]


def test_an_action_without_a_verdict_is_not_all_right() -> None:
    verdicts, _ = many(reports({**SIGNAL, "action": 1}, report(action=2)))
    assert [(each.observation, each.signal, each.error) for each in verdicts] == [
        ("e1", True, ""),
        ("e2", False, ""),
        ("e3", False, "no verdict: the model has answered on 2 of 3 actions"),
    ]


def test_one_report_without_a_number_is_about_all() -> None:
    verdicts, _ = many(tool(SIGNAL))
    assert [(each.observation, each.signal, each.error) for each in verdicts] == [
        ("e1", True, ""),
        ("e2", False, ""),
        ("e3", False, ""),
    ]


def test_what_finds_no_room_in_a_question_has_no_verdict() -> None:
    seen = [Observation(f"e{n}", tool="Edit", written=(f"{n}.py",), text=f"x = {n}\n" * 2_000) for n in range(5)]
    verdicts, server = many(reports(*(report(action=n) for n in range(1, 5))), seen=seen)
    failed = {each.observation for each in verdicts if each.error.startswith("no verdict: more was done at once")}
    assert failed
    assert failed == {f"e{n}" for n in range(5) if f"wrote: {n}.py" not in server.bodies[0]["messages"][0]["content"]}


def test_what_was_said_before_and_what_a_rule_has_found_are_in_view() -> None:
    _, server = many(
        reports(*(report(action=n) for n in (1, 2, 3))), said=["b.py answers 400."], hints={"e3": "new-text"}
    )
    asked = server.bodies[0]["messages"][0]["content"]
    assert asked.index("- b.py answers 400.") < asked.index("[action 1]\n")
    assert "[action 3, a rule has pointed at it: new-text]" in asked
    assert "b.py" not in server.bodies[0]["system"][0]["text"]


def test_near_misses_are_shown_and_none_is_in_what_changes() -> None:
    _, server = many(reports(*(report(action=n) for n in (1, 2, 3))))
    assert "- except JSONDecodeError: return 400: 400 for what is no JSON" in server.bodies[0]["system"][0]["text"]


def twice(*answers: Answer) -> tuple[list[Verdict], MessagesServer]:
    """Two actions, one after the other, put to one judge."""
    with MessagesServer(*answers) as server:
        judge = ModelJudge(
            SidecarType("specs", prompt="x"), LONG, ModelClient(Endpoint("k", "claude-haiku-5-5", server.url))
        )
        verdicts = [*judge.judge(SEEN), *judge.judge(SEEN)]
        judge.close()
        return verdicts, server


def test_a_forced_tool_that_is_refused_is_asked_for_once_unforced_and_so_from_then_on() -> None:
    refused = fail(400, "invalid_request_error", "tool_choice: forced tool use is not supported by this model")
    verdicts, server = twice(refused, tool(SIGNAL), tool(SIGNAL))
    assert [each.signal for each in verdicts] == [True, True]
    assert [each["tool_choice"]["type"] for each in server.bodies] == ["tool", "auto", "auto"]


@pytest.mark.parametrize(
    ("code", "message", "asked"),
    [
        (400, "tools.0.input_schema: keyword maxItems is not supported", 2),
        (401, "invalid x-api-key", 1),
        (404, "model: nope", 1),
    ],
)
def test_a_lasting_refusal_is_told_once_and_not_asked_again(code: int, message: str, asked: int) -> None:
    refused = fail(code, "invalid_request_error", message)
    verdicts, server = twice(refused, refused, refused)
    assert len(server.bodies) == asked
    assert ["fault of the configuration" in each.error for each in verdicts] == [True]


def test_a_refusal_that_is_about_one_question_does_not_last() -> None:
    verdicts, server = twice(fail(400, "invalid_request_error", "prompt is too long"), tool(SIGNAL))
    assert [each.signal for each in verdicts] == [False, True]
    assert len(server.bodies) == 2
