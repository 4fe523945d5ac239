"""What a guide or a linter's configuration says, in the many ways people write it, and what it does not say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from sidecars.observer.context import Context
from sidecars.observer.conventions.linters import read_configuration
from sidecars.observer.conventions.reader import read_guide
from sidecars.observer.judge.rules import RulesJudge
from sidecars.observer.observe.events import EventReader
from witness.events.effects import Effects

STATEMENTS = yaml.safe_load((Path(__file__).parent / "statements.yaml").read_text(encoding="utf-8"))["statements"]
ACTIONS = [
    (statement, action, expected)
    for statement in STATEMENTS
    for expected in ("speaks", "silent")
    for action in statement.get(expected, ())
]


def said_of(statement: dict[str, Any], action: dict[str, Any]) -> list[str]:
    """What the rules of a statement say of an action."""
    title = statement.get("file", "CONVENTIONS.md")
    read = read_configuration if "file" in statement else read_guide
    judge = RulesJudge(read(statement["says"], title), Context())
    effects = None
    if "run" in action:
        tool, given = "Bash", {"command": action["run"]}
        effects = Effects(changed=tuple(action.get("changed", ())))
    elif "edit" in action:
        old = "x = 1\n"
        tool, given = "Edit", {"file_path": action["edit"], "old_string": old, "new_string": old + action["text"]}
    else:
        tool, given = "Write", {"file_path": action["write"], "content": action["text"]}
    payload = {
        "hook_event_name": "PostToolUse",
        "tool_name": tool,
        "tool_input": given,
        "tool_response": action.get("output", ""),
        "cwd": "/work",
    }
    seen = EventReader("/work").read(payload, "e1", effects=effects)
    assert seen is not None
    return [verdict.message for verdict in judge.judge([seen]) if verdict.signal]


@pytest.mark.parametrize(
    ("statement", "action", "expected"),
    ACTIONS,
    ids=[f"{statement['says'][:40]}-{number}" for number, (statement, _, _) in enumerate(ACTIONS)],
)
def test_statement_is_understood(statement: dict[str, Any], action: dict[str, Any], expected: str) -> None:
    assert bool(said_of(statement, action)) == (expected == "speaks")


def test_remark_cites_line_and_words() -> None:
    guide = "# Python\n\nBe kind.\n\n- No bare `except:`; name the exception.\n"
    [rule] = read_guide(guide, "docs/CONVENTIONS.md")
    assert rule.source == "docs/CONVENTIONS.md:5"
    [said] = said_of({"says": guide}, {"edit": "shop/a.py", "text": "try:\n    go()\nexcept:\n    pass\n"})
    assert said == (
        "shop/a.py has an except that names no exception; CONVENTIONS.md:5 says: "
        "“No bare `except:`; name the exception.”"
    )


def test_guide_of_a_folder_holds_there() -> None:
    [rule] = read_guide("No default exports.\n", "web/AGENTS.md")
    judge = RulesJudge([rule], Context())
    for path, expected in (("web/a.ts", True), ("cli/a.ts", False)):
        payload = {
            "hook_event_name": "PostToolUse",
            "tool_name": "Write",
            "tool_input": {"file_path": path, "content": "export default 1;\n"},
        }
        seen = EventReader("/work").read(payload, "e1")
        assert seen is not None
        assert judge.judge([seen])[0].signal is expected


def test_braces_of_a_quotation_are_no_placeholders() -> None:
    said = said_of({"says": "Never write `print`, not even as {path}."}, {"edit": "shop/a.py", "text": "print(1)\n"})
    assert "(path)" in " ".join(said)
