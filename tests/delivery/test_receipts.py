"""Receipts: drained, seen in the transcript, once more, or the dead-letter folder with its reason."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.safety.poison import POISON
from witness.clock import ManualClock
from witness.delivery import message_format, queue_files, receipts
from witness.delivery.nudge_queue import Nudge, NudgeQueue
from witness.delivery.receipts import GIVE_UP, PATIENCE, settle_deliveries
from witness.journal import Decision, Journal

TEXT = '[sidecar:scope] "billing/é" is\nout of scope'


class Scene:
    """A queue, a journal with one injected decision, and the transcript of the session."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.journal = Journal(folder / "witness.db")
        self.queue = NudgeQueue(folder / "queue" / "gt-toast", self.clock)
        self.transcript = folder / "transcript.jsonl"
        self.transcript.write_text("")
        self.journal.decisions.add(
            Decision("d1", "r1", "scope", self.clock.date, self.clock.now, "injected", message=TEXT)
        )

    def enqueue(self) -> str:
        return self.queue.enqueue(Nudge("sidecar:scope", TEXT, kind="sidecar", thread_id="scope/d1", run="r1"))

    def drain(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(time, "time_ns", lambda: int(self.clock.date * 1e9))
        for claim in self.queue.claim():
            self.queue.acknowledge(claim, event="PostToolUse", transcript=str(self.transcript))

    def write(self, kind: str, **fields: Any) -> None:
        stamp = datetime.fromtimestamp(self.clock.date, UTC).isoformat().replace("+00:00", "Z")
        with self.transcript.open("a") as file:
            file.write(json.dumps({"type": kind, "timestamp": stamp, **fields}, ensure_ascii=False) + "\n")

    def settle(self, last: bool = False) -> Any:
        return settle_deliveries(self.journal, self.queue.folder, self.clock, last=last)

    @property
    def decision(self) -> tuple[str, str]:
        (decision,) = self.journal.decisions.of("r1")
        return decision.stage, decision.reason

    def dead(self) -> list[str]:
        folder = self.queue.folder / queue_files.DEAD
        return sorted(os.listdir(folder)) if folder.exists() else []


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    scene.journal.close()


def test_drained_then_seen(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    file = scene.enqueue()
    assert scene.settle().open == 0
    scene.drain(monkeypatch)
    settled = scene.settle()
    assert (settled.drained, settled.seen, settled.open) == ([file], [], 1)
    assert scene.decision == ("drained", "")
    scene.write("attachment", attachment={"type": "hook_additional_context", "content": [TEXT]})
    assert scene.settle().seen == [file]
    assert scene.decision == ("seen", "")
    assert scene.settle().seen == []


def test_what_a_hook_printed_is_no_receipt(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.enqueue()
    scene.drain(monkeypatch)
    scene.write("attachment", attachment={"type": "hook_success", "stdout": TEXT})
    scene.write("assistant", message={"content": [{"type": "text", "text": TEXT}]})
    assert scene.settle().seen == []


def test_the_same_words_of_an_hour_ago_are_no_receipt(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.write("attachment", attachment={"type": "hook_additional_context", "content": [TEXT]})
    scene.clock.advance(3600)
    scene.enqueue()
    scene.drain(monkeypatch)
    assert scene.settle().seen == []


@pytest.mark.parametrize("content", [TEXT, [{"type": "text", "text": f"Stop hook feedback:\n{TEXT}"}]])
def test_at_the_end_of_a_turn_it_is_a_users_message(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, content: Any
) -> None:
    scene.enqueue()
    scene.drain(monkeypatch)
    scene.write("user", message={"role": "user", "content": content})
    assert len(scene.settle().seen) == 1


def lose(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Any:
    scene.drain(monkeypatch)
    scene.clock.advance(3)
    scene.write("assistant", message={"content": []})
    scene.clock.advance(PATIENCE - 4)
    assert scene.settle().again == []
    scene.clock.advance(2)
    return scene.settle()


def test_a_lost_one_is_tried_once_more_and_then_is_a_dead_letter(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.enqueue()
    (again,) = lose(scene, monkeypatch).again
    assert scene.decision[0] == "enqueued"
    (waiting,) = scene.queue.pending()
    assert (waiting.file, waiting.nudge.message, waiting.nudge.tries, waiting.nudge.run) == (again, TEXT, 1, "r1")
    settled = lose(scene, monkeypatch)
    assert settled.undelivered == [again]
    assert scene.decision == ("undelivered", "handed over twice, and neither time in the transcript")
    assert scene.dead() == [again]
    assert scene.queue.pending() == []
    scene.settle()
    assert scene.decision[0] == "undelivered"


def test_nothing_is_concluded_before_the_agent_has_answered(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.write("assistant", message={"content": []})
    scene.enqueue()
    scene.drain(monkeypatch)
    scene.clock.advance(GIVE_UP - 1)
    assert scene.settle().open == 1


def test_without_a_transcript_it_stays_drained(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.transcript.unlink()
    scene.enqueue()
    scene.drain(monkeypatch)
    scene.settle()
    scene.clock.advance(GIVE_UP + 1)
    assert scene.settle().open == 0
    assert scene.decision == ("drained", "no receipt: not found in the transcript")


def test_what_expires_is_told_although_nobody_drains(scene: Scene) -> None:
    scene.enqueue()
    scene.clock.advance(queue_files.NORMAL_TTL + 1)
    scene.settle()
    assert scene.decision == ("undelivered", "expired before the agent took a step")


def test_a_claim_whose_carrier_died_after_handing_over_is_not_put_back(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.queue.enqueue(Nudge("mayor", "an earlier one"))
    scene.drain(monkeypatch)
    scene.settle()  # from now on the transcript is known
    scene.enqueue()
    scene.queue.claim()
    scene.write("attachment", attachment={"type": "hook_additional_context", "content": [TEXT]})
    scene.clock.advance(queue_files.STALE + 1)
    scene.settle()
    assert scene.decision[0] in ("drained", "seen")
    assert scene.queue.pending() == []


def test_the_next_run_of_a_session_begins_with_an_empty_ledger(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.enqueue()
    scene.drain(monkeypatch)
    scene.settle(last=True)
    assert not (scene.queue.folder / queue_files.LEDGER).exists()
    scene.queue.enqueue(Nudge("mayor", "hello"))
    scene.drain(monkeypatch)
    assert len(scene.settle().drained) == 1


def test_expired_withdrawn_and_left_over_ones_are_told_with_their_reason(scene: Scene) -> None:
    scene.enqueue()
    scene.clock.advance(queue_files.NORMAL_TTL + 1)
    scene.queue.claim()
    scene.settle()
    assert scene.decision == ("undelivered", "expired before the agent took a step")
    assert len(scene.dead()) == 1


def test_at_the_end_of_the_run_nothing_stays_open(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.enqueue()
    scene.drain(monkeypatch)
    scene.queue.enqueue(Nudge("mayor", "too late"))
    assert scene.queue.close("the run has ended") == 1
    assert scene.settle(last=True).open == 0
    assert scene.decision[0] == "drained"
    (note,) = [event for event in scene.journal.history() if event.kind == "nudge-undelivered"]
    assert (note.data["message"], note.data["reason"]) == ("too late", "the run has ended")


def test_a_killed_settlement_loses_and_doubles_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.enqueue()
    scene.drain(monkeypatch)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(scene.journal.queues, "set", killed)
        with pytest.raises(KeyboardInterrupt):
            scene.settle()
    assert scene.decision[0] == ""
    assert len(scene.settle().drained) == 1
    assert scene.settle().drained == []


def test_a_half_written_line_waits(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.enqueue()
    scene.drain(monkeypatch)
    ledger = scene.queue.folder / queue_files.LEDGER
    whole = ledger.read_bytes()
    ledger.write_bytes(whole[:-3])
    assert scene.settle().drained == []
    ledger.write_bytes(whole)
    assert len(scene.settle().drained) == 1


def test_one_for_an_earlier_run_is_not_for_this_one(scene: Scene) -> None:
    scene.enqueue()
    assert queue_files.claim_due(str(scene.queue.folder), scene.clock.date, run="r2") == []
    scene.settle()
    assert scene.decision == ("undelivered", "meant for the run r1, which has ended")


def test_the_queue_knows_what_was_said(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not scene.queue.knows("scope/d1")
    scene.enqueue()
    assert scene.queue.knows("scope/d1")
    claim = scene.queue.claim()[0]
    assert scene.queue.knows("scope/d1")
    scene.queue.acknowledge(claim)
    assert scene.queue.knows("scope/d1")
    assert not scene.queue.knows("scope/d")


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", ["folder", "link to a device", "FIFO", "1 GB sparse", "deep"])
def test_a_transcript_that_is_none_proves_nothing_and_holds_nobody_up(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    scene.enqueue()
    scene.drain(monkeypatch)
    scene.transcript.unlink()
    POISON[kind](scene.transcript)
    began = time.monotonic()
    assert not message_format.in_transcript(str(scene.transcript), {"message": TEXT})  # so do the hooks look
    assert (scene.settle().open, scene.settle().open) == (1, 1)
    assert time.monotonic() - began < 2
    scene.clock.advance(GIVE_UP + 1)
    scene.settle()
    assert scene.decision == ("drained", "no receipt: not found in the transcript")


@pytest.mark.parametrize("stage", ["handed over", "claimed by one who died"])
def test_a_transcript_on_a_disk_that_hangs_stops_neither_the_patrol_nor_the_journal(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    scene.enqueue()
    scene.drain(monkeypatch)
    if stage == "claimed by one who died":
        scene.settle()  # it is known now where the transcript is
        scene.enqueue()
        scene.queue.claim()
        scene.clock.advance(queue_files.STALE + 1)
    goes_on, wrote = threading.Event(), []

    def hangs(path: str) -> list[bytes]:
        other = Journal(scene.journal.path)
        other.note(scene.clock.wall(), "somebody else writes")
        other.close()
        wrote.append(path)
        assert goes_on.wait(60)
        return []

    monkeypatch.setattr(message_format, "tail", hangs)
    monkeypatch.setattr(receipts, "DISK_PATIENCE", 0.2)
    settling = threading.Thread(target=_settle_once, args=(scene,), daemon=True)
    try:
        settling.start()
        settling.join(20)
        assert not settling.is_alive(), "the patrol waits for the disk"
        assert wrote == [str(scene.transcript)]
    finally:
        goes_on.set()
        settling.join(20)
        for thread in threading.enumerate():
            if thread.name == "transcript":
                thread.join(20)


def _settle_once(scene: Scene) -> None:
    """In a thread of its own, with a connection of its own."""
    journal = Journal(scene.journal.path)
    settle_deliveries(journal, scene.queue.folder, scene.clock)
    journal.close()
