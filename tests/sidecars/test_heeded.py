"""A remark is judged anew on the last state of what it was about."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sidecars.observer.context import Context
from sidecars.observer.heeded import HeededReview
from sidecars.observer.judge.rules import RulesJudge
from sidecars.observer.pipeline import DecisionPipeline
from sidecars.type_reader.sidecar_type import Rule
from witness.assignment import Assignment
from witness.clock import ManualClock
from witness.config.settings import Settings
from witness.journal import Decision, Journal
from witness.judging.observation import Observation

Make = Callable[..., DecisionPipeline]
EDITED = Rule("edited", writes=("private/",), say="{path} was changed.")
PRINTS = Rule("prints", writes=("*.py",), text=r"^\s*print\(.*", say="{path} prints.")
FORCED = Rule("forced", command=r"git push .*--force", say="It was forced.")
OPENED = Rule("opened", opens=("private/",), say="{path} was opened.")


def git(workdir: str, *words: str, date: float = 0.0) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": workdir, "GIT_CONFIG_NOSYSTEM": "1"}
    environment |= {f"GIT_{who}_{what}": "x@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    if date:
        environment |= {"GIT_AUTHOR_DATE": f"@{date:.0f} +0000", "GIT_COMMITTER_DATE": f"@{date:.0f} +0000"}
    subprocess.run(["git", "-C", workdir, *words], env=environment, check=True, capture_output=True)


class Scene:
    """One sidecar, one work tree, and what the agent does in it."""

    def __init__(self, make: Make, assignment: Assignment, journal: Journal, clock: ManualClock, *rules: Rule) -> None:
        self.observer = make(RulesJudge(rules, Context()))
        self.review = HeededReview(rules, assignment, journal)
        self.workdir, self.journal, self.clock = Path(assignment.workdir), journal, clock
        self._number = 0

    def write(self, path: str, text: str) -> None:
        file = self.workdir / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        self.act("Edit", written=(path,), text=text)

    def act(self, tool: str, **fields: object) -> list[Decision]:
        self.clock.advance(5)
        self._number += 1
        seen = Observation(f"e{self._number}", self.clock.wall(), tool=tool, **fields)  # type: ignore[arg-type]
        return self.observer.take([seen])

    def heeded(self) -> list[str]:
        self.review.review()
        return [each.heeded for each in self.journal.decisions.of("run-1") if each.outcome == "injected"]


@pytest.fixture
def scene(make_observer: Make, assignment: Assignment, journal: Journal, clock: ManualClock) -> Callable[..., Scene]:
    return lambda *rules: Scene(make_observer, assignment, journal, clock, *rules)


def test_text_that_is_still_there_was_not_heeded(scene: Callable[..., Scene]) -> None:
    here = scene(PRINTS)
    here.write("a.py", "x = 1\nprint(x)\n")
    assert here.heeded() == ["no"]
    here.write("a.py", "x = 1\nlog(x)\n")
    assert here.heeded() == ["yes"]


def test_a_file_that_is_gone_holds_nothing(scene: Callable[..., Scene]) -> None:
    here = scene(PRINTS)
    here.write("a.py", "print(1)\n")
    (here.workdir / "a.py").unlink()
    assert here.heeded() == ["yes"]


def test_of_two_files_both_must_be_mended(scene: Callable[..., Scene]) -> None:
    here = scene(PRINTS)
    for name in ("a.py", "b.py"):
        (here.workdir / name).write_text("print(1)\n")
    here.act("Edit", written=("a.py", "b.py"), text="print(1)\n")
    (here.workdir / "a.py").write_text("log(1)\n")
    assert here.heeded() == ["no"]
    (here.workdir / "b.py").write_text("log(1)\n")
    assert here.heeded() == ["yes"]


def test_a_change_stands_until_git_sees_none(scene: Callable[..., Scene], clock: ManualClock) -> None:
    here = scene(EDITED)
    private = here.workdir / "private"
    private.mkdir()
    (private / "a.py").write_text("before")
    git(str(here.workdir), "init", "-q")
    git(str(here.workdir), "add", ".")
    git(str(here.workdir), "commit", "-qm", "begin", date=clock.wall() - 100)
    here.write("private/a.py", "after")
    assert here.heeded() == ["no"]
    (private / "a.py").write_text("before")
    assert here.heeded() == ["yes"]
    (private / "a.py").write_text("after")
    git(str(here.workdir), "commit", "-qam", "mine", date=clock.wall() + 1)
    assert here.heeded() == ["no"]


def test_a_new_file_that_was_removed_was_heeded(scene: Callable[..., Scene]) -> None:
    here = scene(EDITED)
    git(str(here.workdir), "init", "-q")
    here.write("private/a.py", "new")
    assert here.heeded() == ["no"]
    (here.workdir / "private" / "a.py").unlink()
    assert here.heeded() == ["yes"]


def test_where_there_is_no_repository_nobody_knows(scene: Callable[..., Scene]) -> None:
    here = scene(EDITED)
    here.write("private/a.py", "new")
    assert here.heeded() == ["undecided"]


@pytest.mark.parametrize(
    ("rule", "tool", "fields"),
    [
        (FORCED, "Bash", {"command": "git push origin --force"}),
        (OPENED, "Read", {"opened": ("private/a.py",)}),
    ],
)
def test_an_action_is_heeded_when_the_next_ones_are_otherwise(
    scene: Callable[..., Scene], rule: Rule, tool: str, fields: dict[str, object]
) -> None:
    here = scene(rule)
    here.act(tool, **fields)
    assert here.heeded() == ["undecided"]
    for number in range(3):
        here.act("Bash", command=f"ls {number}")
    assert here.heeded() == ["yes"]
    here.act(tool, **fields)  # a duplicate is not said again, and yet it tells
    assert here.heeded() == ["no"]


def test_what_never_reached_the_agent_is_not_judged(scene: Callable[..., Scene], journal: Journal) -> None:
    here = scene(PRINTS)
    here.write("a.py", "print(1)\n")
    (said,) = journal.decisions.injected("run-1")
    journal.decisions.stage(said.id, "undelivered", "expired")
    assert here.heeded() == [""]


def test_a_rule_that_nobody_heeds_falls_silent_where_the_town_says_so(make_observer: Make, journal: Journal) -> None:
    for number in range(5):
        journal.decisions.add(
            Decision(
                f"d{number}", "old", "scope", 0.0, 0.0, "injected", rule="edited", heeded="no" if number else "yes"
            )
        )
    seen = [Observation("e1", tool="Edit", written=("private/a.py",))]
    judge = RulesJudge([EDITED], Context())
    (silent,) = make_observer(judge, settings=Settings(unheeded_limit=0.6)).take(seen)
    assert (silent.outcome, silent.gate) == ("refused", "unheeded")
    assert silent.reason == "unheeded: 4 of 5 remarks of rule edited were not heeded"
    for limit in (0.8, 1.0):
        seen = [replace(seen[0], id=f"e{limit}", written=(f"private/{limit}",))]
        (said,) = make_observer(judge, settings=Settings(unheeded_limit=limit)).take(seen)
        assert said.outcome == "injected"
