"""Screens as clients paint them, in the tests' own words."""

from __future__ import annotations

import pytest

from sidecars.observer.observe.pane import changed_share, new_lines, squeeze
from sidecars.observer.observe.screen import completed_actions, content_lines, is_structured

RULE = "─" * 60
BOX = f"{RULE}\n❯ \n{RULE}\n  ⏵⏵ accept edits on (shift+tab to cycle)"
BUSY = f"{BOX} · esc to interrupt"
EDIT = (
    "● Update(src/sum.py)\n  ⎿  Added 1 line, removed 1 line\n"
    "      1   def add(a, b):\n      2 -     return a - b\n      2 +     return a + b\n"
)
TEST = "● Bash(pytest -q)\n  ⎿  3 passed\n"
LONG = "".join(
    f"● Bash(step {n} of the long work)\n  ⎿  step {n} is done and printed a line of its own\n\n" for n in range(12)
)


def screen(*parts: str, box: str = BOX) -> str:
    return "\n".join(["❯ make the sum right", "", *parts, "", box])


def share(before: str, after: str) -> float:
    return changed_share(squeeze(content_lines(before)), squeeze(content_lines(after)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("✢ Pondering…", "✽ Pondering… (12s · ↓ 340 tokens)"),
        ("· Élaborating… (3s)", "✻ Élaborating… (1m 4s · ↑ 2.1k tokens · thinking)"),
        ("✻ Baked for 9s", "✻ Baked for 1m 2s"),
        ("⠋ Working...", "⠙ Working..."),
        ("● Bash(make)\n  ⎿  Running… (5s)", "  Bash(make)\n  ⎿  Running… (6s)"),
        ("● Bash(make)", "○ Bash(make)"),
        ("done at 12:00:01", "done at 12:00:09"),
        ("\x1b[31mred\x1b[0m words here", "red words here"),
        ("a café", "a cafe\u0301"),
        ("text (ctrl+o to expand)", "text"),
        ("", "  ⎿  Tip: Use /btw to ask a quick side question"),
        ("[sidecar:scope] src/x was changed.\n  and more of it", "[sidecar:specs] other words"),
        ("● ok\n∴ Thinking…\n  first a plan\n", "● ok\n∴ Thinking…\n  then quite another plan\n  of two lines\n"),
    ],
)
def test_what_ticks_and_blinks_is_no_change(before: str, after: str) -> None:
    assert share(screen(LONG, before, box=BUSY), screen(LONG, after)) == 0.0


@pytest.mark.parametrize("typed", ["", "half a sentence", "a\nb"])
def test_the_input_box_is_the_users(typed: str) -> None:
    box = f"{RULE}\n❯ {typed}\n{RULE}\n  ? for shortcuts"
    assert share(screen(LONG), screen(LONG, box=box)) == 0.0


def test_a_dialog_is_no_action() -> None:
    dialog = f"{RULE}\n Bash command\n   rm -rf build\n Do you want to proceed?\n ❯ 1. Yes\n   2. No"
    lines = content_lines(screen(EDIT, "● Bash(rm -rf build)\n  ⎿  Waiting…", box=dialog))
    assert [action.tool for action in completed_actions(lines)] == ["Update"]
    assert not any("proceed" in line for line in lines)


def test_resizing_is_no_change() -> None:
    words = "the agent wrote a long line that does not fit into a narrow pane 漢字も幅が広い"
    wide = screen(LONG, f"● Bash(x)\n  ⎿  {words}")
    narrow = screen(LONG, "● Bash(x)\n  ⎿  " + "\n     ".join([words[:30], words[30:]]))
    assert share(wide, narrow) == 0.0


def test_scrolling_alone_is_no_change() -> None:
    lines = screen(LONG).splitlines()
    assert share("\n".join(lines), "\n".join(lines[12:])) == 0.0


def test_repainted_frames_count_once() -> None:
    assert share(screen(LONG), screen(LONG, LONG, LONG)) < 0.1


def test_new_work_is_a_change() -> None:
    assert share(screen(LONG), screen(LONG, EDIT, TEST)) > 0.1
    assert share("", screen(TEST)) > 0.5


def test_completed_actions_with_their_new_text() -> None:
    actions = completed_actions(content_lines(screen("● I'll fix it now.", EDIT, TEST, "● All done (really).")))
    assert [(action.tool, action.argument) for action in actions] == [("Update", "src/sum.py"), ("Bash", "pytest -q")]
    assert actions[0].added.strip() == "return a + b"
    assert actions[1].result == "3 passed"


def test_what_the_client_says_between_actions_is_no_result() -> None:
    told = screen(TEST.rstrip(), "  Read 1 file", "  Searched for 1 pattern, read 1 file", "", EDIT)
    assert [action.result for action in completed_actions(content_lines(told))[:1]] == ["3 passed"]


def test_a_wrapped_command_is_one_command() -> None:
    text = "● Bash(pytest -q tests/a\n      tests/b)\n  ⎿  ok\n"
    assert completed_actions(content_lines(screen(text)))[0].argument == "pytest -q tests/a tests/b"


@pytest.mark.parametrize(
    "running", ["● Bash(make)\n  ⎿  Running… (5s)", "● Bash(make)\n", "  Reading 1 file…\n  ⎿  a.py"]
)
def test_what_runs_still_is_not_completed(running: str) -> None:
    assert completed_actions(content_lines(screen(running, box=BUSY))) == []


def test_prose_about_a_call_is_no_call() -> None:
    text = "● I would call add(1, 2) now.\n\n  Then Update the file.\n"
    assert completed_actions(content_lines(screen(text))) == []


def test_a_shell_has_no_structure() -> None:
    lines = content_lines("$ make\ncc -o a a.c\n$ ")
    assert not is_structured(lines)
    assert lines == ["$ make", "cc -o a a.c", "$"]


def test_new_lines_only() -> None:
    assert new_lines(["a", "b", "c"], ["b", "c", "d", "", "e"]) == ["d", "e"]


def test_an_empty_or_binary_screen() -> None:
    assert content_lines("") == []
    assert completed_actions(content_lines("\x00\x1b[2J\xff" * 100)) == []
