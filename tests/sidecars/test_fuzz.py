"""Whatever comes from outside, nobody falls over it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sidecars.observer.judge.signal_tool import find_reports
from sidecars.observer.judge.verdict import Verdict, quoted_from
from sidecars.observer.observe.events import EventReader
from sidecars.observer.observe.pane import changed_share, squeeze
from sidecars.observer.observe.screen import completed_actions, content_lines

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(
    ["file_path", "command", "content", "edits", "input", "old_string", "new_string", "path", "patch"]
)
TOOLS = st.sampled_from(["Edit", "Bash", "Write", "apply_patch", "Read", "shell", "x"])
_PARTS = ["● Bash(x", ")", "  ⎿  ", "❯ ", "─" * 20, "\n", "✻ Baking… (3s)", "\x1b[31m", "[sidecar:x] y", "漢", "1 +z"]
PAINT = st.lists(st.sampled_from(_PARTS)).map("".join)


@settings(max_examples=40)
@given(st.dictionaries(st.text(), JSON), TOOLS, st.dictionaries(KEYS, JSON), JSON)
def test_any_payload(more: dict[str, object], tool: str, given_: dict[str, object], response: object) -> None:
    payload = {
        **more,
        "hook_event_name": "PostToolUse",
        "tool_name": tool,
        "tool_input": given_,
        "tool_response": response,
    }
    seen = EventReader("/w").read(payload)
    assert seen is not None
    seen.rendered().encode("utf-8", "replace")


@given(PAINT | st.text(), PAINT | st.text())
def test_any_screen(before: str, after: str) -> None:
    completed_actions(content_lines(after))
    assert 0 <= changed_share(squeeze(content_lines(before)), squeeze(content_lines(after))) <= 1
    assert changed_share(squeeze(content_lines(after)), squeeze(content_lines(after))) == 0


@given(
    st.text() | st.lists(st.sampled_from(['{"signal"', ": true", "}", "{", "```json", "\n", "[", "null"])).map("".join)
)
def test_any_answer_of_a_judge(text: str) -> None:
    try:
        verdicts = find_reports(text)
    except ValueError:
        return
    assert verdicts
    assert all(isinstance(each, Verdict) for each in verdicts)


@given(st.text())
def test_any_quote(evidence: str) -> None:
    assert quoted_from(evidence, []) is None
