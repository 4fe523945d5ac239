"""What is offered to other people's tests."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from witness.testing import MessagesServer, drip, fail, hang_up, hold, message, say, scratch_town, use

QUESTION = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}


def post(server: MessagesServer, body: dict[str, Any], path: str = "/v1/messages") -> bytes:
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), {"x-api-key": "sk-x"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
        return bytes(answer.read())


def test_a_script_is_answered_in_its_order_whole_or_as_a_stream() -> None:
    with MessagesServer(use("Grep", pattern="x"), [say("one"), say("two")], lambda request: say(request.key)) as server:
        first = json.loads(post(server, QUESTION))
        assert (first["stop_reason"], first["content"][0]["input"]) == ("tool_use", {"pattern": "x"})
        events = post(server, QUESTION | {"stream": True}).decode().split("\n\n")
        said = [json.loads(event.partition("data: ")[2])["delta"]["text"] for event in events if "text_delta" in event]
        assert "".join(said) == "onetwo"
        assert json.loads(post(server, QUESTION))["content"][0]["text"] == "sk-x"
        assert json.loads(post(server, QUESTION, "/v1/messages/count_tokens"))["input_tokens"] > 0
    assert [request.news for request in server.requests] == ["Hello"] * 3


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (QUESTION, "the script has run out"),
        (QUESTION | {"temperature": 0.5}, "sampling parameters"),
        (QUESTION | {"messages": [{"role": "assistant", "content": "x"}]}, "prefill"),
        (QUESTION | {"messages": QUESTION["messages"] * 2}, "alternate"),  # type: ignore[operator]
        (QUESTION | {"messages": [{"role": "user", "content": " "}]}, "empty"),
    ],
)
def test_a_request_that_breaks_a_rule_is_refused(body: dict[str, Any], fault: str) -> None:
    with MessagesServer() as server, pytest.raises(urllib.error.HTTPError) as error:
        post(server, body)
    assert error.value.code == 400
    assert fault in json.loads(error.value.read())["error"]["message"]


def test_errors_and_silence() -> None:
    gate = threading.Event()
    gate.set()
    with MessagesServer(fail(529, retry_after="2"), hang_up(), hold(gate), drip(gate), message(events=1)) as server:
        with pytest.raises(urllib.error.HTTPError) as error:
            post(server, QUESTION)
        assert (error.value.code, error.value.headers["retry-after"]) == (529, "2")
        assert json.loads(error.value.read())["error"]["type"] == "overloaded_error"
        for _ in range(2):
            with pytest.raises(OSError, match=r"closed|reset"):
                post(server, QUESTION)
        assert post(server, QUESTION) == b""
        assert b"message_stop" not in post(server, QUESTION | {"stream": True})
        with pytest.raises(TimeoutError, match="5 main: 'Hello'"):
            server.wait_for(lambda request: "Bye" in request.text, timeout=0)


def test_a_client_of_agents_has_a_script_for_each_kind_of_request() -> None:
    bash, judge = {"tools": [{"name": "Bash"}]}, {"tools": [{"name": "report_signal"}]}
    given = {"messages": [{"role": "user", "content": "Look around"}]}
    with MessagesServer(use("Agent", prompt="Look around"), client=True) as server:
        server.play(say("I looked."), kind="subagent")
        server.play(say("All is well."), kind="judge")
        for body in (QUESTION, QUESTION | bash, QUESTION | bash | given, QUESTION | judge, QUESTION | bash):
            post(server, body)
    assert [request.kind for request in server.requests] == ["side", "main", "subagent", "judge", "main"]
    said = [request.answered[-1].get("text", "") for request in server.requests]
    assert said == ["Done.", "", "I looked.", "All is well.", "Done."]


def test_a_scratch_town_is_gone_with_all_that_it_ran() -> None:
    with scratch_town() as witness:
        root = witness.town.root
        spawned = witness.spawn("toast", workdir=root / "repo", agent=["sleep", "60"], sidecars="")
        assert Path(f"/proc/{spawned.agent.pid}").exists()
    assert not root.exists()
    assert not Path(f"/proc/{spawned.agent.pid}").exists()


def test_it_needs_no_pytest() -> None:
    code = "import sys, witness.testing; print('pytest' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
