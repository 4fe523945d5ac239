"""What an agent does: a dialog on the screen, what its client reported, its screen; else unknown."""

from __future__ import annotations

from typing import Any

import pytest

from witness.agents.screen import Prompt, PromptState, WaitsFor
from witness.state.activity import LastEvents, ReportedEvent, Screen, action_text, activity_of

BASH = {"tool_name": "Bash", "tool_input": {"command": "make test"}}


def events(*named: tuple[str, dict[str, Any]]) -> LastEvents:
    found = [ReportedEvent(name, 100.0 + number, payload) for number, (name, payload) in enumerate(named)]
    return LastEvents(found[-1] if found else None, tuple(each for each in found if each.name == "PostToolUse"))


def screen(state: PromptState, trouble: WaitsFor | None = None) -> Screen:
    complaint = Prompt(PromptState.UNKNOWN, waits_for=trouble, question="why") if trouble else None
    asks = (WaitsFor.QUESTION, "Which one?") if state is PromptState.DIALOG else (None, "")
    return Screen(Prompt(state, "", *asks), complaint, 200.0)


UNSEEN = screen(PromptState.UNKNOWN)


@pytest.mark.parametrize(
    ("reported", "seen", "kind", "reason"),
    [
        (events(), UNSEEN, "unknown", ""),
        (events(), None, "unknown", ""),
        (events(("SessionStart", {})), UNSEEN, "unknown", ""),
        (events(("UserPromptSubmit", {})), UNSEEN, "working", ""),
        (events(("PostToolUse", BASH)), None, "working", ""),
        (events(("PostToolUse", BASH), ("Stop", {})), None, "idle", ""),
        (events(("Stop", {}), ("PreCompact", {})), UNSEEN, "working", ""),
        (events(), screen(PromptState.BUSY), "working", ""),
        (events(), screen(PromptState.IDLE), "idle", ""),
        (events(("UserPromptSubmit", {})), screen(PromptState.IDLE), "idle", ""),
        (events(("Stop", {})), screen(PromptState.BUSY), "working", ""),
        (events(), screen(PromptState.DIALOG), "waiting", "question"),
        (events(("PostToolUse", BASH)), screen(PromptState.DIALOG), "waiting", "question"),
        (events(("PermissionRequest", BASH)), None, "waiting", "permission"),
        (events(("PermissionRequest", BASH)), screen(PromptState.DIALOG), "waiting", "permission"),
        (events(("PermissionRequest", BASH)), screen(PromptState.BUSY), "working", ""),
        (events(("Notification", {"notification_type": "permission_prompt"})), UNSEEN, "waiting", "permission"),
        (events(("Notification", {"notification_type": "idle_prompt"})), screen(PromptState.IDLE), "idle", ""),
        (events(("StopFailure", {"error": "rate_limit"})), UNSEEN, "waiting", "limit"),
        (events(), screen(PromptState.IDLE, WaitsFor.LOGIN), "waiting", "login"),
        (events(("PostToolUse", BASH)), screen(PromptState.BUSY, WaitsFor.NETWORK), "working", ""),
        (events(*[("PostToolUse", BASH)] * 6), UNSEEN, "stuck", ""),
        (events(*[("PostToolUse", BASH)] * 5), UNSEEN, "working", ""),
    ],
)
def test_what_an_agent_does(reported: LastEvents, seen: Screen | None, kind: str, reason: str) -> None:
    found = activity_of(reported, seen)
    assert (found.kind, found.waiting.reason if found.waiting else "") == (kind, reason)


def test_what_is_waited_for_has_its_words_and_its_time() -> None:
    asked = {"tool_name": "AskUserQuestion", "tool_input": {"questions": [{"question": "Which database?"}]}}
    found = activity_of(events(("PermissionRequest", asked)), None).waiting
    assert found
    assert (found.reason, found.question, found.since) == ("question", "Which database?", "1970-01-01T00:01:40.000Z")


def test_an_action_is_one_bounded_line_without_control_characters() -> None:
    text = action_text({"tool_name": "Bash\x1b[31m", "tool_input": {"command": "a\nb\x07 " + "x" * 9000}})
    assert text.startswith("Bash [31m a b x")
    assert len(text) == 160
    assert action_text({"tool_name": "Edit", "tool_input": {"file_path": "a/b.py", "new_string": "y"}}) == "Edit a/b.py"
    assert action_text({}) == "a tool"
