"""The hooks in the real client: what waits is in the next request, whatever the agent was doing."""

from __future__ import annotations

import shlex
import threading
import time
from pathlib import Path

from tests.e2e.conftest import PERMITTED, Session, wait_until
from witness.agents.clients import CLAUDE
from witness.clock import SystemClock
from witness.delivery.nudge_queue import Nudge, NudgeQueue
from witness.delivery.prompt_typist import IdlePoller
from witness.events.spool_reader import SpoolReader
from witness.testing import MessagesServer, Request, say, use
from witness.tmux import Tmux


def queue_of(session: Session) -> NudgeQueue:
    return NudgeQueue(session.queue, SystemClock())


def times_said(server: MessagesServer, text: str) -> int:
    """How often the model was told, counted in the longest conversation (each request repeats the ones before)."""
    return max(server.of("main"), key=lambda request: len(request.messages)).text.count(text)


def test_what_waits_is_in_the_request_after_the_tool_call(server: MessagesServer, session: Session, work: Path) -> None:
    def then_nudge(request: Request) -> list[dict[str, object]]:
        queue_of(session).enqueue(Nudge("sidecar:scope", "[sidecar:scope] app.py is out of scope"))
        return [use("Bash", command="echo one")]

    server.play(use("Read", file_path=str(work / "app.py")), then_nudge, use("Bash", command="echo two"), say("Fin."))
    session.headless()
    requests = server.of("main")
    assert ["[sidecar:scope]" in request.news for request in requests] == [False, False, True, False]
    assert [event.payload["hook_event_name"] for event in SpoolReader(session.spool).read()] == [
        "SessionStart",
        "UserPromptSubmit",
        *["PostToolUse"] * 3,
        "Stop",
        "SessionEnd",
    ]


def test_three_parallel_calls_say_it_once(server: MessagesServer, session: Session) -> None:
    def then_nudge(request: Request) -> list[dict[str, object]]:
        for number in range(3):
            queue_of(session).enqueue(Nudge("sidecar:scope", f"[sidecar:scope] note {number}"))
        return [use("Bash", command=f"echo {number}") for number in range(3)]

    server.play(then_nudge, say("Fin."))
    session.headless()
    news = server.wait_for_count(2).news
    assert [news.count(f"[sidecar:scope] note {number}") for number in range(3)] == [1, 1, 1]
    assert len(SpoolReader(session.spool).read()) == 7


def test_a_failing_bash_is_recorded_and_delivers(server: MessagesServer, session: Session) -> None:
    def then_nudge(request: Request) -> dict[str, object]:
        queue_of(session).enqueue(Nudge("sidecar:tools", "[sidecar:tools] there is a make target for this"))
        return use("Bash", command="exit 3")

    server.play(then_nudge, say("Fin."))
    session.headless()
    assert "[sidecar:tools] there is a make target" in server.wait_for_count(2).news
    events = [event.payload for event in SpoolReader(session.spool).read()]
    assert "PostToolUseFailure" in [event["hook_event_name"] for event in events]


def test_a_subagents_call_leaves_it_to_the_main_agent(server: MessagesServer, session: Session) -> None:
    def then_nudge(request: Request) -> dict[str, object]:
        queue_of(session).enqueue(Nudge("sidecar:scope", "[sidecar:scope] for the main agent"))
        return use("Bash", command="echo in the subagent")

    server.play(
        use(
            "Agent",
            description="look",
            prompt="look around, subagent",
            subagent_type="general-purpose",
            run_in_background=False,
        ),
        say("Fin."),
    )
    server.play(then_nudge, say("looked around"), kind="subagent")
    session.headless()
    assert not any("[sidecar:scope]" in request.text for request in server.of("subagent"))
    after = next(request for request in server.of("main") if "looked around" in request.news)
    assert "[sidecar:scope] for the main agent" in after.news
    assert times_said(server, "[sidecar:scope] for the main agent") == 1


def test_a_nudge_during_a_long_bash_comes_with_its_result(
    server: MessagesServer, session: Session, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    server.play(use("Bash", command=f"until test -e {gate}; do sleep 0.05; done"), say("Fin."))
    runner = threading.Thread(target=session.headless)
    runner.start()
    server.wait_for_count(1)
    wait_until(lambda: len(SpoolReader(session.spool).read()) == 2, "the prompt's event")
    queue_of(session).enqueue(Nudge("mayor", "the gate opens"))
    gate.touch()
    runner.join(50)
    assert "[from mayor] the gate opens" in server.wait_for_count(2).news


def test_at_the_end_of_the_turn_it_is_told_once(server: MessagesServer, session: Session) -> None:
    def nudge_and_end(number: int) -> object:
        def step(request: Request) -> dict[str, object]:
            queue_of(session).enqueue(Nudge("sidecar:specs", f"[sidecar:specs] note {number}"))
            return say(f"end {number}")

        return step

    server.play(nudge_and_end(1), nudge_and_end(2), say("never asked for"))  # type: ignore[arg-type]
    session.headless()
    requests = server.of("main")
    assert len(requests) == 2
    assert "[sidecar:specs] note 1" in requests[1].news
    assert [claim.nudge.message for claim in queue_of(session).pending()] == ["[sidecar:specs] note 2"]


def test_in_a_pane_a_typed_prompt_carries_what_waits(server: MessagesServer, session: Session) -> None:
    session.start()
    queue_of(session).enqueue(Nudge("mayor", "before you begin"))
    server.play(say("Fin."))
    session.type("do the work")
    assert "[from mayor] before you begin" in server.wait_for_count(1).news
    wait_until(session.idle, "the end of the turn")


def test_an_idle_agent_is_woken_within_five_seconds(server: MessagesServer, session: Session) -> None:
    session.start()
    server.play(say("Fin."))
    session.type("do the work")
    server.wait_for_count(1)
    wait_until(session.idle, "the end of the turn")
    wait_until((session.spool / "idle").exists, "the watch beside the prompt")
    before = time.monotonic()
    queue_of(session).enqueue(Nudge("mayor", "there is news"))
    request = server.wait_for_count(2, timeout=15)
    assert "[from mayor] there is news" in request.news
    assert request.arrived - before < 5
    wait_until(session.idle, "the end of the turn")
    assert times_said(server, "there is news") == 1


def test_an_agent_that_was_never_asked_anything_gets_it_typed(
    server: MessagesServer, session: Session, tmux: Tmux
) -> None:
    session.start()
    wait_until(lambda: SpoolReader(session.spool).read(), "the session's first event")
    # Its hook is about to drain: what it takes now would be told with the first prompt.
    queue_of(session).enqueue(Nudge("mayor", "begin", deliver_after=time.time() + 1))
    poller, began = IdlePoller(tmux, SystemClock()), time.monotonic()
    wait_until(lambda: poller.tick(session.name, CLAUDE, session.queue) == 1, "the poller to type")
    assert "[from mayor] begin" in server.wait_for_count(1, timeout=15).news
    assert time.monotonic() - began < 8
    wait_until(session.idle, "the end of the turn")
    assert times_said(server, "[from mayor] begin") == 1


def test_a_client_that_the_agent_starts_below_itself_takes_nothing(
    server: MessagesServer, session: Session, claude: Path, work: Path
) -> None:
    nested = shlex.join([str(claude), "-p", "nested work", "--settings", str(session.settings), *PERMITTED])

    def then_nudge(request: Request) -> dict[str, object]:
        queue_of(session).enqueue(Nudge("mayor", "for the polecat"))
        return use("Bash", command=f"{nested} </dev/null")

    server.play(then_nudge, use("Read", file_path=str(work / "app.py")), say("nested end"), say("Fin."))
    session.headless()
    told = [request for request in server.of("main") if "[from mayor] for the polecat" in request.news]
    assert len(told) == 1
    assert "nested end" in told[0].news
    assert "nested work" not in told[0].text.split("nested end")[0].rpartition("do the work")[0]
    sessions = {event.payload["session_id"] for event in SpoolReader(session.spool).read()}
    assert len(sessions) == 1
