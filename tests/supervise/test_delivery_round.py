"""The Witness and nudges: typed into an idle prompt where no hook delivers, closed with the run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.scripts import with_our_packages
from tests.waiting import until
from witness.clock import SystemClock
from witness.delivery import queue_files
from witness.delivery.nudge_queue import Nudge, NudgeQueue
from witness.testing import make_town, supervised

PROGRAM = Path(__file__).parents[1] / "programs" / "prompting.py"


@pytest.mark.real
def test_a_client_without_hooks_gets_what_waits_at_its_idle_prompt_and_the_rest_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    log.write_text("")
    monkeypatch.setenv("PROMPT_LOG", str(log))
    client = tmp_path / "claude"
    client.write_text(f"{with_our_packages()}import runpy\nrunpy.run_path({str(PROGRAM)!r})\n")
    client.chmod(0o755)
    town = make_town(tmp_path / "a town")
    with supervised(town) as witness:
        spawned = witness.spawn("toast", workdir=town.root / "repo", agent=str(client))
        queue = NudgeQueue(town.queue_dir(spawned.session), SystemClock())
        before = time.monotonic()
        queue.enqueue(Nudge("mayor", "there is news", run=spawned.group.run))
        until(lambda: "there is news" in log.read_text(), "the Witness to type it")
        assert time.monotonic() - before < 10
        assert log.read_text().splitlines() == ["paste", "took '[from mayor] there is news'"]

        def seen() -> bool:
            witness.patrol()
            return "nudge-seen" in [event.kind for event in witness.journal.history(spawned.group.run)]

        until(seen, "the receipt", every=0.1)
        queue.enqueue(Nudge("mayor", "for later", run=spawned.group.run, deliver_after=time.time() + 3600))
        witness.nuke(["toast"])
        (note,) = [event for event in witness.journal.history(spawned.group.run) if event.kind == "nudge-undelivered"]
        assert note.data["message"] == "for later"
        assert note.data["reason"] == f"the run {spawned.group.run} has ended"
        assert len(list((queue.folder / queue_files.DEAD).iterdir())) == 1
        assert queue_files.waiting(str(queue.folder)) == []


def test_what_comes_for_a_run_that_is_over_is_buried_at_the_next_look(tmp_path: Path) -> None:
    """Written at the moment of the end, or left by a Witness that was killed between the end and the closing."""
    town = make_town(tmp_path / "town")
    with supervised(town) as witness:
        spawned = witness.spawn("toast", workdir=town.root / "repo", agent="sleep 60", witness=False)
        witness.spawn("other", workdir=town.root / "repo", agent="sleep 60", witness=False)
        witness.nuke(["toast"])
        run, queue = spawned.group.run, NudgeQueue(town.queue_dir(spawned.session), SystemClock())
        theirs = NudgeQueue(town.queue_dir("mayor"), SystemClock())
        queue.enqueue(Nudge("human", "too late", run=run))
        theirs.enqueue(Nudge("human", "not ours to judge"))
        for _ in range(2):
            witness.patrol()
        assert queue_files.waiting(str(queue.folder)) == []
        assert len(list((queue.folder / queue_files.DEAD).iterdir())) == 1
        told = [each.data["message"] for each in witness.journal.history(run) if each.kind == "nudge-undelivered"]
        assert told == ["too late"]
        assert len(queue_files.waiting(str(theirs.folder))) == 1
