"""Nudges of ours that Gas Town's own drain takes: it deletes before it prints, and writes no ledger."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.gas_town import make_gas_town
from tests.delivery.test_receipts import TEXT, Scene
from witness.delivery import queue_files
from witness.delivery.nudge_queue import NudgeQueue
from witness.delivery.receipts import PATIENCE


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    town = make_gas_town(tmp_path / "gt")
    scene = Scene(tmp_path)
    scene.queue = NudgeQueue(town.queue_dir("gt-Toast"), scene.clock)
    yield scene
    scene.journal.close()


def _drained_there(scene: Scene) -> None:
    """As the real ``gt mail check --inject`` does it: claim, read, delete, and only then print."""
    folder = str(scene.queue.folder)
    for name in queue_files.waiting(folder):
        os.rename(f"{folder}/{name}", f"{folder}/{name}.claimed.0badcafe")
        os.unlink(f"{folder}/{name}.claimed.0badcafe")


def test_it_waits_is_taken_and_is_seen(scene: Scene) -> None:
    file = scene.enqueue()
    assert scene.settle().drained == []
    assert scene.decision[0] != "drained"
    scene.clock.advance(5)
    _drained_there(scene)
    settled = scene.settle()
    assert (settled.drained, settled.open) == ([file], 1)
    assert scene.decision == ("drained", "taken by Gas Town's own drain")
    assert scene.settle().drained == [], "told once"


def test_what_it_lost_is_handed_over_once_more(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.enqueue()
    scene.drain(monkeypatch)  # ours, by which the transcript is known
    scene.write("attachment", attachment={"type": "hook_additional_context", "content": [TEXT]})
    assert len(scene.settle().seen) == 1
    scene.clock.advance(3600)
    scene.enqueue()
    scene.settle()
    scene.clock.advance(5)
    _drained_there(scene)  # and then it was killed: nothing was printed
    scene.settle()
    scene.clock.advance(PATIENCE + 5)
    scene.write("assistant", message={"content": [{"type": "text", "text": "done"}]})
    (again,) = scene.settle().again
    assert [claim.file for claim in scene.queue.pending()] == [again]


def test_what_it_printed_is_a_receipt_and_does_not_come_twice(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.enqueue()
    scene.drain(monkeypatch)
    scene.write("attachment", attachment={"type": "hook_additional_context", "content": [TEXT]})
    scene.settle()
    scene.clock.advance(3600)
    file = scene.enqueue()
    scene.settle()
    scene.clock.advance(5)
    _drained_there(scene)
    said = f"<system-reminder>\nQUEUED NUDGE (1 message(s)):\n\n  [from sidecar:scope] {TEXT}\n</system-reminder>"
    scene.write("attachment", attachment={"type": "hook_success", "hookEvent": "UserPromptSubmit", "stdout": said,
                                          "content": said})  # fmt: skip
    scene.settle()
    scene.clock.advance(PATIENCE + 5)
    scene.write("assistant", message={"content": [{"type": "text", "text": "done"}]})
    settled = scene.settle()
    assert (settled.again, scene.decision[0]) == ([], "seen")
    assert file


def test_ours_is_never_taken_for_theirs(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(20):
        scene.enqueue()
        scene.clock.advance(1)
        scene.drain(monkeypatch)
        assert len(scene.settle().drained) == 1
        assert scene.decision == ("drained", "")


def test_what_is_withdrawn_or_buried_is_told_as_that(scene: Scene) -> None:
    scene.enqueue()
    scene.settle()
    scene.clock.advance(5)
    scene.queue.withdraw("sidecar")
    settled = scene.settle()
    assert (settled.drained, len(settled.undelivered)) == ([], 1)
