"""Rules that look further than one action: how often, since what, after what, undone."""

from __future__ import annotations

import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from sidecars.observer.context import Context
from sidecars.observer.judge.rules import RulesJudge
from sidecars.observer.judge.verdict import quoted_from
from sidecars.type_reader.rule_reader import read_rules
from sidecars.type_reader.sidecar_type import Repeats, Rule
from sidecars.type_reader.type_loader import load_type
from witness.config.yaml_document import parse_yaml
from witness.errors import Problem
from witness.judging.observation import Observation

FAILED = Observation("f", tool="Bash", failed=True, command="npm test", output="Error: Cannot find module 'x'\n1.2 s")
WORKED = replace(FAILED, failed=False, output="ok")
WRITE = Observation("w", tool="Edit", written=("src/a.py",), text="b", replaced="a")
READ = Observation("r", tool="Read", opened=("src/a.py",))


def said(rule: Rule, *actions: Observation) -> list[int]:
    """At which of the actions, from 1 on, the rule holds."""
    judge = RulesJudge([rule], Context())
    found = []
    for number, action in enumerate(actions, 1):
        (verdict,) = judge.judge([replace(action, id=f"e{number}", time=1_000.0 + number)])
        if verdict.signal:
            assert quoted_from(verdict.evidence, [replace(action, id=f"e{number}")]), "a remark quotes what was seen"
            found.append(number)
    return found


FOUR = Rule("r", failed=True, repeats=Repeats(4, 3600.0, ("command", "failure")), say="x")


def test_it_holds_from_the_so_manieth_time_on() -> None:
    assert said(FOUR, *[FAILED] * 6) == [4, 5, 6]


def test_what_differs_from_run_to_run_is_no_difference() -> None:
    alike = [
        replace(FAILED, output=f"{stamp} Error: at 0x{place} in /tmp/pytest-{number}/a.py:{number}\nRan in {number} ms")
        for number, (stamp, place) in enumerate(
            [("12:00:01", "7ffe"), ("13:44:59", "8aa"), ("00:00:00", "1"), ("1:1:1", "f")], 7
        )
    ]
    assert said(FOUR, *alike[:3], alike[0]) == [4]
    ways = ["npm test 2>&1", "cd /repo && npm test | tail -50", "npm  test", "npm test 2>&1 | head -5"]
    assert said(FOUR, *[replace(FAILED, command=way) for way in ways]) == [4]


@pytest.mark.parametrize("failed_of_20", [(12, 9, 4, 1), (3, 4, 5, 6)])
def test_another_number_of_failures_is_another_failure(failed_of_20: tuple[int, ...]) -> None:
    assert said(FOUR, *[replace(FAILED, output=f"{number} failed") for number in failed_of_20]) == []


def test_a_success_begins_anew() -> None:
    assert said(FOUR, FAILED, FAILED, FAILED, WORKED, FAILED, FAILED, FAILED) == []
    assert said(FOUR, FAILED, FAILED, FAILED, replace(WORKED, command="ls"), FAILED) == [5]
    # Where the client does not tell how a command ended nothing is known to have worked.
    assert said(FOUR, FAILED, FAILED, FAILED, replace(WORKED, untold=True), FAILED) == [5]


def test_within_counts_from_the_first_of_them() -> None:
    rule = replace(FOUR, repeats=Repeats(3, 10.0, ("command",)))
    judge = RulesJudge([rule], Context())
    times = [0.0, 6.0, 12.0, 15.0]
    assert [judge.judge([replace(FAILED, time=1000 + at)])[0].signal for at in times] == [False, False, False, True]


def test_each_subagent_goes_in_its_own_circle() -> None:
    assert said(FOUR, *[replace(FAILED, subagent_id=str(number % 2)) for number in range(7)]) == [7]


def test_since_last_begins_anew_and_after_waits() -> None:
    written = Rule("", writes=("**",))
    three = Rule("r", tools=("Read",), repeats=Repeats(3, 60.0, ("call",)), since_last=written, say="x")
    assert said(three, READ, READ, WRITE, READ, READ, READ) == [6]
    commits = Rule("r", command="^git commit", after=Rule("", command="^npm test", failed=True), since_last=Rule("", command="^npm test", failed=False), say="x")  # noqa: E501 # fmt: skip
    commit = Observation("c", tool="Bash", command="git commit -m x")
    assert said(commits, commit, FAILED, commit, WORKED, commit) == [3]


def test_an_edit_that_is_taken_back() -> None:
    rule = Rule("r", undoes=True, say="x")
    there, back = replace(WRITE, text="b", replaced="a"), replace(WRITE, text="a", replaced="b")
    assert said(rule, there, back, there, there) == [2, 3]
    assert said(rule, there, there, there) == []
    assert said(rule, there, replace(back, written=("src/other.py",))) == []
    # A file that is written whole is what it was before.
    one, two = (Observation("w", tool="Write", written=("a.py",), text=text) for text in ("one\n", "two\n"))
    assert said(rule, one, two, one, two) == [3, 4]


def test_the_range_of_a_reading_and_what_a_search_looks_for_tell_calls_apart() -> None:
    rule = Rule("r", repeats=Repeats(2, 60.0, ("call",)), say="x")
    assert said(
        rule, replace(READ, given="offset=1"), replace(READ, given="offset=2"), replace(READ, given="offset=1")
    ) == [3]


def test_what_a_remark_names() -> None:
    rule = replace(FOUR, say="{command}|{times}|{failure}")
    verdicts = RulesJudge([rule], Context()).judge([replace(FAILED, time=1_000.0 + each) for each in range(4)])
    assert verdicts[3].message == "npm test|4|Error: Cannot find module 'x'"


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("repeats: 4", "write it as {times: 4, within: 30m, same: [command, failure]}"),
        ("repeats: {times: 1}", "from 2 to 1000"),
        ("repeats: {times: 3, same: [mood]}", "one or more of tool, command, failure"),
        ("repeats: {times: 3, within: soon}", "10s, 1m30s or 250ms"),
        ("since_last: {writes: ['**']}\n  tools: [Read]", "write it as {of:"),
        ("since_last: {of: {defines: '@apis'}}\n  tools: [Read]", "of an earlier action only"),
        ("after: {}\n  tools: [Read]", "write it as conditions of an action"),
        ("after: {command: '('}\n  tools: [Read]", "not a regular expression"),
        ("after: {runs: [git push]}", "has no condition"),
        ("undoes: often", "must be true or false"),
    ],
)
def test_what_is_no_such_condition_is_told_by_its_line(rule: str, told: str) -> None:
    problems: list[Problem] = []
    document = parse_yaml(f"rules:\n- name: r\n  say: x\n  {rule}\n", "sidecar.yaml")
    read_rules(document, document.values["rules"], problems)
    assert any(told in str(each) for each in problems), problems


def test_many_thousand_actions_are_no_burden() -> None:
    """Bounded memory, and under a millisecond each: medians of our own process, no judgement of the machine."""
    judge = RulesJudge(load_type("loop").rules, Context())
    actions = [
        replace(
            (FAILED, READ, WRITE)[number % 3], id=f"e{number}", time=1_000.0 + number, given=f"offset={number}",
            output=f"Error: number {number}", text=f"t{number}", replaced=f"r{number}",
        )
        for number in range(2_000)
    ]  # fmt: skip
    judge.judge(actions)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    spent = []
    for turn in range(4):
        began = time.process_time()
        judge.judge([replace(each, given=f"{turn} {each.given}") for each in actions])
        spent.append((time.process_time() - began) / len(actions))
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 2 << 20
    print(f"{sorted(spent)[2] * 1000:.3f} ms an action")


def test_the_type_names_once_what_was_alike(tmp_path: Path) -> None:
    from sidecars.tuning.evaluate import Case, evaluate

    events = ({"tool": "Bash", "command": "git log main | grep nothing", "failed": True, "output": "exit 1"},) * 25
    (result,) = evaluate([Case("a circle", "loop", events, True)], load_type("loop")).results
    assert result.message.count("has failed") == 1
    assert "'git log main | grep nothing' has failed 4 times in the same way since " in result.message
