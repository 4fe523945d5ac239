from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sidecars.observer.context import Context
from sidecars.observer.judge.rules import RulesJudge
from sidecars.observer.observe.events import OUTPUT_LIMIT, TEXT_LIMIT, EventReader
from sidecars.type_reader.sidecar_type import Rule
from tests.sidecars.conftest import tool_event
from witness.events.effects import Effects
from witness.judging.observation import Observation


@pytest.fixture
def reader(tmp_path: Path) -> EventReader:
    return EventReader(str(tmp_path))


def read(reader: EventReader, event: dict[str, Any]) -> Observation:
    seen = reader.read(event, "e1", 5.0)
    assert seen is not None
    return seen


def test_an_edit_writes_its_file_and_only_its_new_text(reader: EventReader, tmp_path: Path) -> None:
    seen = read(
        reader, tool_event("Edit", file_path=str(tmp_path / "src/a.py"), old_string="old", new_string="x\n\ny\n")
    )
    assert (seen.written, seen.opened) == (("src/a.py",), ())
    assert (seen.text, seen.lines_written) == ("x\n\ny", 2)
    assert "old" not in seen.rendered()


@pytest.mark.parametrize(
    ("tool", "given", "written"),
    [
        ("Write", {"file_path": "a", "content": "t"}, ("a",)),
        ("NotebookEdit", {"notebook_path": "n.ipynb", "new_source": "t"}, ("n.ipynb",)),
        ("MultiEdit", {"file_path": "a", "edits": [{"old_string": "o", "new_string": "t"}]}, ("a",)),
        ("write_file", {"file_path": "a", "content": "t"}, ("a",)),
        ("mcp__files__write_file", {"path": "a", "content": "t"}, ("a",)),
        ("replace", {"absolute_path": "a", "new_string": "t"}, ("a",)),
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: a\n+t\n-o\n*** End Patch"}, ("a",)),
        ("apply_patch", {"input": "*** Add File: a\n+t\n*** Delete File: b\n"}, ("a", "b")),
    ],
)
def test_every_writing_tool(reader: EventReader, tool: str, given: dict[str, Any], written: tuple[str, ...]) -> None:
    seen = read(reader, tool_event(tool, **given))
    assert (seen.written, seen.text) == (written, "t")


def test_what_stood_there_before_is_not_new(reader: EventReader) -> None:
    edit = tool_event("Edit", file_path="a", old_string="one\n  two\nthree", new_string="zero\none\ntwo\nthree\nthree")
    assert read(reader, edit).text == "zero\nthree"
    write = tool_event("Write", {"type": "update", "originalFile": "one\ntwo\n"}, file_path="a", content="two\nnew\n")
    assert read(reader, write).text == "new"
    several = tool_event("MultiEdit", file_path="a", edits=[{"old_string": "x", "new_string": "x\ny"}, None, 3])
    assert read(reader, several).text == "y"


def test_a_here_document_is_new_text(reader: EventReader) -> None:
    seen = read(reader, tool_event("Bash", command="cat > a.py <<'EOF'\nprint(1)\nprint(2)\nEOF\nls"))
    assert (seen.written, seen.text, seen.lines_written) == (("a.py",), "print(1)\nprint(2)\n", 2)


def test_reading_opens(reader: EventReader) -> None:
    assert read(reader, tool_event("Read", file_path="a/b.py")).opened == ("a/b.py",)


@pytest.mark.parametrize("command", ["cat a > b", ["bash", "-lc", "cat a > b"]])
def test_a_shell_command_names_files(reader: EventReader, command: Any) -> None:
    seen = read(reader, tool_event("Bash", command=command))
    assert (seen.opened, seen.written, seen.tool) == (("a",), ("b",), "Bash")


def test_paths_are_read_from_where_the_tool_ran(reader: EventReader, tmp_path: Path) -> None:
    event = tool_event("Bash", command="cat ../x") | {"cwd": str(tmp_path / "sub" / "deep")}
    assert read(reader, event).opened == ("sub/x",)


def test_files_outside_keep_their_whole_path(reader: EventReader) -> None:
    assert read(reader, tool_event("Read", file_path="/etc/hosts")).opened == ("/etc/hosts",)


def test_a_link_is_seen_under_both_names(reader: EventReader, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "link").symlink_to("private")
    assert read(reader, tool_event("Read", file_path="link/x")).opened == ("link/x", "private/x")


def test_a_workdir_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "door").symlink_to("real")
    reader = EventReader(str(tmp_path / "door"))
    event = tool_event("Read", file_path=str(tmp_path / "real" / "x")) | {"cwd": str(tmp_path / "real")}
    assert read(reader, event).opened == ("x",)


def test_a_failed_call_and_a_subagents(reader: EventReader) -> None:
    event = tool_event("Bash", command="false") | {
        "hook_event_name": "PostToolUseFailure",
        "error": "exit 1",
        "agent_id": "7",
    }
    seen = read(reader, event)
    assert seen.failed
    assert seen.subagent == "subagent"
    assert "exit 1" in seen.output


@pytest.mark.parametrize("name", ["PreToolUse", "Stop", "SessionStart", "Notification", None, 7])
def test_only_completed_calls_count(reader: EventReader, name: Any) -> None:
    assert reader.read(tool_event("Bash", command="cat a") | {"hook_event_name": name}) is None


@pytest.mark.parametrize(
    "given", [None, 3, [1], {"file_path": 7}, {"file_path": None}, {"edits": "x"}, {"edits": [1, None]}]
)
def test_foreign_shapes_are_passed_over(reader: EventReader, given: Any) -> None:
    event = {"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_input": given, "tool_response": given}
    assert read(reader, event).written == ()


def test_own_words_and_reminders_are_not_seen(reader: EventReader) -> None:
    response = {
        "stdout": "one\n[sidecar:scope] a was changed.\n<system-reminder>Two\nlines</system-reminder>two\n"
        "<system-reminder>cut off"
    }
    seen = read(reader, tool_event("Bash", response, command="x"))
    assert seen.output.split() == ["one", "two"]


def test_escapes_and_binary_are_made_plain(reader: EventReader) -> None:
    seen = read(reader, tool_event("Bash", "\x1b[31mred\x1b[0m \x00\x07\udcff\x1b]0;title\x07end", command="x"))
    assert seen.output.startswith("red ")
    assert seen.output.endswith("end")
    assert "\x1b" not in seen.output
    assert "\x00" not in seen.output


def test_the_file_as_it_was_is_no_action(reader: EventReader) -> None:
    seen = read(reader, tool_event("Edit", {"originalFile": "SECRET", "filePath": "a"}, file_path="a", new_string="t"))
    assert "SECRET" not in seen.rendered()
    edit = tool_event("Edit", {"newString": "old\nnew"}, file_path="a", old_string="old", new_string="old\nnew")
    assert read(reader, edit).rendered() == "Edit\nwrote: a\nnew text:\nnew"


def test_a_huge_answer_stays_small(reader: EventReader) -> None:
    huge = "x" * 50_000_000
    seen = read(reader, tool_event("Write", {"stdout": huge, "more": [huge] * 3}, file_path="a", content=huge))
    assert len(seen.output) <= OUTPUT_LIMIT + 100
    assert len(seen.text) <= TEXT_LIMIT + 100
    assert seen.cut


def test_deep_answers_end(reader: EventReader) -> None:
    deep: Any = "bottom"
    for _ in range(5_000):
        deep = {"x": [deep]}
    assert read(reader, tool_event("Bash", deep, command="x")).output == "bottom"


def test_a_path_that_no_system_takes(reader: EventReader) -> None:
    assert read(reader, tool_event("Read", file_path="a\0b")).opened == ("a\0b",)


def test_the_home_folder(reader: EventReader, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = read(reader, tool_event("Read", file_path="~/.netrc"))
    assert seen.opened[0] == os.path.expanduser("~/.netrc")


def test_a_typed_prompt_is_kept_apart(reader: EventReader) -> None:
    seen = read(reader, {"hook_event_name": "UserPromptSubmit", "prompt": "do it\n[sidecar:x] no"})
    assert seen.prompt.strip() == "do it"


def test_a_failed_command_names_nothing(reader: EventReader) -> None:
    """How far it came is not known: neither what it would have changed nor what it would have read."""
    payload = {
        "hook_event_name": "PostToolUseFailure",
        "tool_name": "Bash",
        "tool_input": {"command": "cat a.txt > b.txt && sed -i s/a/b/ missing.txt"},
        "error": "Exit code 2",
    }
    seen = reader.read(payload)
    assert seen is not None
    assert (seen.opened, seen.written, seen.text) == ((), (), "")
    done = reader.read({**payload, "hook_event_name": "PostToolUse", "error": ""})
    assert done is not None
    assert done.written == ("b.txt", "missing.txt")


def test_the_folder_of_a_command_is_the_one_before_it(reader: EventReader) -> None:
    seen = reader.read(
        {
            "hook_event_name": "PostToolUse",
            "tool_name": "Bash",
            "cwd": "",
            "tool_input": {"command": "cd tests && touch orders/a.py && cd .. && cat $where/x --exclude=y b.py"},
        }
    )
    assert seen is not None
    assert (seen.opened, seen.written) == (("b.py",), ("tests/orders/a.py",))


PATCH = (
    "*** Begin Patch\n*** Add File: new.py\n+t\n*** Update File: a.py\n*** Move to: b.py\n@@\n-o\n+t\n*** End Patch\n"
)
DONE = "Success. Updated the following files:\nA new.py\nM b.py\n"


def test_a_patch_is_an_edit_wherever_the_client_puts_it(reader: EventReader, tmp_path: Path) -> None:
    for event in (
        tool_event("apply_patch", "Exit code: 0\nOutput:\n" + DONE, command=PATCH),
        tool_event("apply_patch", DONE, patchText=PATCH),
        tool_event("Bash", {"stdout": DONE, "stderr": ""}, command=f"apply_patch <<'EOF'\n{PATCH}EOF"),
        tool_event("shell", DONE, command=["apply_patch", PATCH]),
    ):
        seen = read(reader, event)
        assert (seen.tool, seen.written, seen.text) == ("Edit", ("new.py", "a.py", "b.py"), "t\nt")
    below = tool_event("Bash", DONE, command=f"cd sub && apply_patch <<'EOF'\n{PATCH}EOF")
    # Codex tells the folder before, Claude Code the one after.
    for where in ({"turn_id": "t"}, {"turn_id": "t", "cwd": str(tmp_path)}, {"cwd": str(tmp_path / "sub")}):
        assert read(reader, below | where).written == ("sub/new.py", "sub/a.py", "sub/b.py")


@pytest.mark.parametrize(
    "event",
    [
        tool_event("apply_patch", "Exit code: 1\nOutput:\nFailed to find expected lines", command=PATCH),
        tool_event("Bash", "Failed to find expected lines", command=f"apply_patch <<'EOF'\n{PATCH}EOF"),
        tool_event("Edit", file_path="a", new_string="t") | {"hook_event_name": "PostToolUseFailure", "error": "no"},
        tool_event("replace", {"error": {"message": "no"}, "llmContent": "no"}, file_path="a", new_string="t"),
        tool_event("invalid", "no") | {"tool_input": {"tool": "edit", "error": "not given"}},
        tool_event("Bash", {"backgroundTaskId": "b1"}, command="echo x > a"),
    ],
)
def test_what_failed_or_has_only_begun_is_not_told_as_done(reader: EventReader, event: dict[str, Any]) -> None:
    seen = read(reader, event)
    assert (seen.written, seen.failed) == ((), "backgroundTaskId" not in str(event))


def test_where_the_client_itself_says_where_a_call_began_files_are_named_from_there(tmp_path: Path) -> None:
    """A mod knows; what the command's text says of ``cd`` does not matter then."""
    event = tool_event("Bash", command='cat place && cd "$(cat place)"') | {"cwd": str(tmp_path / "sub")}
    assert read(EventReader(str(tmp_path)), event).opened != ("other/deep/place",)
    event |= {"cwd_before": str(tmp_path / "other" / "deep")}
    assert read(EventReader(str(tmp_path)), event).opened == ("other/deep/place",)


@pytest.mark.parametrize(
    ("command", "status", "opened"),
    [
        ("diff a.py b.py", 1, ("a.py", "b.py")),
        ("grep -q x a.py", 1, ("a.py",)),
        ("diff a.py b.py", 2, ()),
        ("cat a.py", 1, ()),
        ("diff a.py b.py && diff c.py d.py", 1, ()),
    ],
)
def test_a_status_that_is_an_answer_is_no_failure(
    reader: EventReader, command: str, status: int, opened: tuple[str, ...]
) -> None:
    payload = {"hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "tool_input": {"command": command}}
    seen = reader.read(payload, effects=Effects(exit=status))
    assert seen is not None
    assert seen.opened == opened


def codex(command: str, response: str) -> dict[str, Any]:
    return {"hook_event_name": "PostToolUse", "turn_id": "t", "tool_name": "Bash", "tool_input": {"command": command},
            "tool_response": response}  # fmt: skip


def test_of_a_command_whose_status_is_not_told_it_is_said_that_this_is_not_known(reader: EventReader) -> None:
    """Codex CLI tells no exit status: neither 'it failed' nor 'it did not' is known."""
    seen = reader.read(codex("cat a.py", "x = 1\n"))
    assert seen is not None
    assert (seen.failed, seen.untold, seen.opened) == (False, True, ("a.py",))
    assert seen.rendered().startswith("Bash (the client does not tell whether it failed)")
    for failed in (True, False):
        (verdict,) = RulesJudge([Rule("r", failed=failed, opens=("*.py",), say="{path}")], Context()).judge([seen])
        assert not verdict.signal


@pytest.mark.parametrize(
    ("command", "response"),
    [
        ("sed -i s/a/b/ a.py", "sed: can't read a.py: No such file or directory\n"),
        ("cd nowhere && echo x > a.py", "bash: line 1: cd: nowhere: No such file or directory\n"),
        ("formatter --write a.py; echo x > a.py", "bash: formatter: command not found\n"),
        ("cat a.py", "cat: a.py: Permission denied\n"),
    ],
)
def test_where_it_complains_nothing_of_its_text_is_told(reader: EventReader, command: str, response: str) -> None:
    seen = reader.read(codex(command, response))
    assert seen is not None
    assert (seen.paths, seen.untold) == ((), True)
    seen = reader.read(codex(command, response), effects=Effects(changed=("a.py",)))
    assert seen is not None
    assert seen.written == ("a.py",), "what was seen is told all the same"
