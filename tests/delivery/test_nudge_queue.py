"""The queue in Gas Town's format: order, claims, limits, and nothing dropped in silence."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from witness.clock import ManualClock
from witness.delivery import queue_files
from witness.delivery.nudge_queue import Nudge, NudgeQueue
from witness.errors import QueueFullError


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def queue(tmp_path: Path, clock: ManualClock) -> NudgeQueue:
    return NudgeQueue(tmp_path / "nudge_queue" / "gt-toast", clock)


def say(queue: NudgeQueue, text: str, **fields: Any) -> str:
    return queue.enqueue(Nudge("sidecar:scope", text, **fields))


def texts(claimed: list[Any]) -> list[str]:
    return [claim.nudge.message for claim in claimed]


def grow_old(path: Path) -> None:
    """Let a file have been written so long ago that nobody writes it any more."""
    written = path.stat().st_mtime - queue_files.UNFINISHED
    os.utime(path, (written, written))


def ledger(queue: NudgeQueue) -> list[dict[str, Any]]:
    path = queue.folder / queue_files.LEDGER
    return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []


def test_the_file_is_gas_towns(queue: NudgeQueue) -> None:
    name = say(queue, "hello", kind="sidecar", thread_id="scope:1")
    stamp, _, digits = name.removesuffix(".json").partition("-")
    assert (len(stamp), len(digits)) == (19, 8)
    fields = json.loads((queue.folder / name).read_text())
    assert fields == {
        "sender": "sidecar:scope",
        "message": "hello",
        "priority": "normal",
        "kind": "sidecar",
        "thread_id": "scope:1",
        "timestamp": "2027-01-15T08:00:00.000000Z",
        "expires_at": "2027-01-15T08:30:00.000000Z",
        "deliver_after": "0001-01-01T00:00:00Z",
    }
    assert (queue.folder / name).stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(queue.folder)) == [".lock", name]


def test_what_gas_town_wrote_is_read(queue: NudgeQueue) -> None:
    queue.folder.mkdir(parents=True)
    (queue.folder / "1799999999000000000-0a1b2c3d.json").write_text(
        json.dumps(
            {
                "sender": "mayor",
                "message": "look here",
                "priority": "urgent",
                "severity": "high",
                "timestamp": "2027-01-15T08:59:59.123456789+01:00",
                "expires_at": "2027-01-15T10:00:00Z",
                "deliver_after": "0001-01-01T00:00:00Z",
                "of a later version": [1],
            }
        )
    )
    (claim,) = queue.claim()
    assert claim.nudge.sender == "mayor"
    assert claim.nudge.urgent
    assert claim.nudge.timestamp == pytest.approx(1_799_999_999.123456)


def test_claimed_in_order_and_only_once(queue: NudgeQueue) -> None:
    for text in "abc":  # within one instant of the clock
        say(queue, text)
    claimed = queue.claim()
    assert texts(claimed) == ["a", "b", "c"]
    assert queue.claim() == []
    for claim in claimed:
        queue.acknowledge(claim, event="PostToolUse")
    assert sorted(os.listdir(queue.folder)) == [".lock", queue_files.LEDGER, queue_files.DONE]
    queue.sweep()
    assert os.listdir(queue.folder / queue_files.DONE) == []
    assert [(fact["stage"], fact["message"]) for fact in ledger(queue)] == [("drained", text) for text in "abc"]


def test_a_clock_set_back_does_not_change_the_order(queue: NudgeQueue, clock: ManualClock) -> None:
    say(queue, "first")
    clock.date -= 3600
    say(queue, "second", expires_at=clock.date + 9999)
    clock.date += 3600
    assert texts(queue.claim()) == ["first", "second"]


def test_a_released_claim_waits_in_its_old_place(queue: NudgeQueue) -> None:
    say(queue, "a")
    (claim,) = queue.claim()
    say(queue, "b")
    queue.release(claim)
    assert texts(queue.claim()) == ["a", "b"]


def test_a_stale_claim_is_put_back_once_then_buried(queue: NudgeQueue, clock: ManualClock) -> None:
    say(queue, "a", expires_at=clock.date + 9999)
    queue.claim()
    clock.advance(queue_files.STALE - 1)
    assert queue.claim() == []
    clock.advance(2)
    assert texts(queue.claim()) == ["a"]
    clock.advance(queue_files.STALE + 1)
    assert queue.claim() == []
    assert [fact["stage"] for fact in ledger(queue)] == ["put-back", "undelivered"]
    assert len(os.listdir(queue.folder / queue_files.DEAD)) == 1


def test_a_nudge_that_waited_long_is_not_stale_when_it_is_claimed(queue: NudgeQueue, clock: ManualClock) -> None:
    say(queue, "a", expires_at=clock.date + 9999)
    clock.advance(queue_files.STALE * 3)
    assert len(queue.claim()) == 1
    clock.advance(1)
    assert queue.claim() == []
    (claimed,) = queue_files.claims(str(queue.folder))
    # Gas Town looks at the file's own time.
    assert (queue.folder / claimed).stat().st_mtime == pytest.approx(clock.date - 1)


def test_a_stale_claim_of_gas_town_is_put_back_too(queue: NudgeQueue, clock: ManualClock) -> None:
    name = say(queue, "a", expires_at=clock.date + 9999)
    foreign = queue.folder / f"{name}.claimed.ffffffff"
    (queue.folder / name).rename(foreign)
    os.utime(foreign, (clock.date, clock.date))
    assert queue.claim() == []
    clock.advance(queue_files.STALE + 1)
    assert texts(queue.claim()) == ["a"]


def test_what_the_agent_has_is_not_delivered_again(tmp_path: Path, clock: ManualClock) -> None:
    queue = NudgeQueue(tmp_path, clock, delivered=lambda nudge: nudge.message == "arrived")
    say(queue, "arrived", expires_at=clock.date + 9999)
    say(queue, "lost", expires_at=clock.date + 9999)
    queue.claim()
    clock.advance(queue_files.STALE + 1)
    assert texts(queue.claim()) == ["lost"]
    assert ledger(queue)[0]["stage"] == "drained"


def test_acknowledged_in_the_ledger_counts_as_delivered(queue: NudgeQueue, clock: ManualClock) -> None:
    say(queue, "a", expires_at=clock.date + 9999)
    (claim,) = queue.claim()
    queue_files.log(str(queue.folder), "drained", claim.file, claim.fields)  # and killed right after
    clock.advance(queue_files.STALE + 1)
    assert queue.claim() == []
    assert queue_files.claims(str(queue.folder)) == []


MALFORMED = [b"", b"{", b"[]", b'"x"', b"{}", b'{"message": 3}', b'{"message": "  "}', b"\xff{}", b"[" * 100_000]


@pytest.mark.parametrize("content", [*MALFORMED, b'{"message":"a"} {"message":"b"}'])
def test_malformed_files_are_set_aside_and_kept(queue: NudgeQueue, content: bytes) -> None:
    queue.folder.mkdir(parents=True)
    path = queue.folder / "1000000000000000000-00000000.json"
    path.write_bytes(content)
    grow_old(path)
    say(queue, "good")
    assert texts(queue.claim()) == ["good"]
    assert (queue.folder / queue_files.MALFORMED / "1000000000000000000-00000000.json").read_bytes() == content
    assert ledger(queue)[0]["stage"] == "malformed"


def test_a_nudge_that_is_being_written_is_left_alone_and_then_delivered(queue: NudgeQueue) -> None:
    """Gas Town creates the file under its last name and then writes it; a drain may fall into any gap between."""
    queue.folder.mkdir(parents=True)
    path = queue.folder / "1000000000000000000-00000000.json"
    whole = b'{"sender":"mayor","message":"Rebase first","priority":"normal"}'
    with path.open("wb", buffering=0) as file:
        for part in (b"", whole[:20], whole[20:-1]):
            file.write(part)
            assert queue.claim() == []
            queue.sweep()
            assert queue.close("over", lambda _: True) == 0
            assert queue.pending() == []
        file.write(whole[-1:])
    assert texts(queue.claim()) == ["Rebase first"]
    assert ledger(queue) == []


def test_what_was_set_aside_and_is_a_nudge_waits_again(queue: NudgeQueue) -> None:
    aside = queue.folder / queue_files.MALFORMED
    aside.mkdir(parents=True)
    (aside / "1000000000000000000-00000000.json").write_text('{"sender":"mayor","message":"Rebase first"}')
    (aside / "1000000000000000001-00000000.json").write_text("{")
    (aside / "1000000000000000002-00000000.json").symlink_to(aside / "1000000000000000000-00000000.json")
    (aside / "1000000000000000003-00000000.json").mkdir()
    queue.sweep()
    assert texts(queue.claim()) == ["Rebase first"]
    assert sorted(os.listdir(aside)) == [f"100000000000000000{number}-00000000.json" for number in (1, 2, 3)]
    assert [fact["stage"] for fact in ledger(queue)] == ["put-back"]
    queue.sweep()
    assert len(ledger(queue)) == 1


def test_what_was_set_aside_takes_no_waiting_nudges_place(queue: NudgeQueue) -> None:
    name = say(queue, "first")
    (queue.folder / queue_files.MALFORMED).mkdir()
    (queue.folder / queue_files.MALFORMED / name).write_text('{"message":"second"}')
    queue.sweep()
    assert texts(queue.claim()) == ["first"]


def test_folders_links_and_pipes_do_not_block_the_queue(queue: NudgeQueue, tmp_path: Path) -> None:
    queue.folder.mkdir(parents=True)
    (queue.folder / "1000000000000000000-00000000.json").mkdir()
    (tmp_path / "secret").write_text('{"message":"secret"}')
    (queue.folder / "1000000000000000001-00000000.json").symlink_to(tmp_path / "secret")
    os.mkfifo(queue.folder / "1000000000000000002-00000000.json")
    say(queue, "good")
    assert texts(queue.claim()) == ["good"]
    assert len(os.listdir(queue.folder / queue_files.MALFORMED)) == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_nudge_that_another_user_wrote_is_set_aside_unread(queue: NudgeQueue) -> None:
    theirs = say(queue, "do as I say")
    os.chown(queue.folder / theirs, 65534, 65534)
    say(queue, "good")
    assert texts(queue.claim()) == ["good"]
    assert os.listdir(queue.folder / queue_files.MALFORMED) == [theirs]


def test_expired_ones_are_not_dropped_in_silence(queue: NudgeQueue, clock: ManualClock) -> None:
    say(queue, "old")
    say(queue, "urgent and old", priority="urgent")
    clock.advance(queue_files.NORMAL_TTL)
    assert texts(queue.claim()) == ["urgent and old"]
    (fact,) = ledger(queue)
    assert (fact["stage"], fact["message"]) == ("undelivered", "old")
    assert "expired" in fact["reason"]


def test_deliver_after_is_honoured(queue: NudgeQueue, clock: ManualClock) -> None:
    say(queue, "later", deliver_after=clock.date + 3600)
    say(queue, "now")
    assert texts(queue.claim()) == ["now"]
    assert texts(queue.pending()) == ["later"]
    clock.advance(3600)
    assert texts(queue.claim()) == ["later"]


def test_at_the_depth_limit_a_normal_one_is_refused(queue: NudgeQueue) -> None:
    for number in range(queue_files.DEPTH):
        say(queue, str(number))
    with pytest.raises(QueueFullError, match="50 nudges wait"):
        say(queue, "too many")
    assert len(queue.pending()) == queue_files.DEPTH
    assert not list(queue.folder.glob(".*.new"))


def test_an_urgent_one_always_gets_in(tmp_path: Path, clock: ManualClock) -> None:
    queue = NudgeQueue(tmp_path, clock, depth=3)
    say(queue, "u1", priority="urgent")
    say(queue, "n1")
    say(queue, "n2")
    say(queue, "u2", priority="urgent")
    assert texts(queue.pending()) == ["u1", "n2", "u2"]
    say(queue, "u3", priority="urgent")
    say(queue, "u4", priority="urgent")
    assert texts(queue.pending()) == ["u2", "u3", "u4"]
    assert [fact["message"] for fact in ledger(queue)] == ["n1", "n2", "u1"]
    assert queue_files.take_dropped(str(tmp_path)) == 3
    assert queue_files.take_dropped(str(tmp_path)) == 0


def test_withdrawn_by_kind_and_thread(queue: NudgeQueue) -> None:
    say(queue, "a", kind="sidecar", thread_id="1")
    say(queue, "b", kind="sidecar", thread_id="2")
    say(queue, "c", kind="mail", thread_id="1")
    assert queue.withdraw("sidecar", "1") == 1
    assert texts(queue.pending()) == ["b", "c"]
    assert queue.withdraw("sidecar") == 1
    assert texts(queue.pending()) == ["c"]
    assert [fact["reason"] for fact in ledger(queue)] == ["withdrawn by its sender"] * 2


def test_what_does_not_fit_waits_for_the_next_step(queue: NudgeQueue) -> None:
    for text in ("a" * 400, "b" * 400, "c" * 400):
        say(queue, text)
    assert [text[0] for text in texts(queue.claim(room=1000))] == ["a", "b"]
    assert [text[0] for text in texts(queue.claim(room=10))] == ["c"]


def test_at_the_end_all_that_is_left_is_buried(queue: NudgeQueue) -> None:
    say(queue, "claimed")
    queue.claim()
    say(queue, "waiting")
    assert queue.close("the run has ended") == 2
    assert queue.pending() == []
    assert len(os.listdir(queue.folder / queue_files.DEAD)) == 2
    assert {fact["reason"] for fact in ledger(queue)} == {"the run has ended"}


def test_an_empty_or_missing_queue_is_no_fault(queue: NudgeQueue) -> None:
    assert queue.claim() == []
    assert queue.pending() == []
    assert queue.withdraw("sidecar") == 0
    assert not queue.folder.exists()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0001-01-01T00:00:00Z", 0),
        ("1970-01-01T00:01:00Z", 60),
        ("1970-01-01T01:01:00+01:00", 60),
        ("1970-01-01T00:01:00.5Z", 60.5),
        ("1970-01-01T00:01:00.123456789-00:00", 60.123456),
        ("yesterday", 0),
        ("", 0),
        (None, 0),
        (12, 0),
    ],
)
def test_instants(text: object, seconds: float) -> None:
    assert queue_files.instant(text) == pytest.approx(seconds)


@pytest.mark.parametrize("seconds", [0.0, 1_800_000_000.0, 1_800_000_000.25])
def test_stamps_come_back(seconds: float) -> None:
    assert queue_files.instant(queue_files.stamp(seconds)) == pytest.approx(seconds)


def test_the_light_parser_agrees_with_json() -> None:
    for text in ('{"a": [1, 2.5, null, true, "\\u00e9é\\ud83d\\ude00"], "b": {"c": {}}}', '  "x" \n', "-0.5e3"):
        assert queue_files.parse(text.encode()) == json.loads(text)
    for bad in ("", "{", "{'a':1}", "1 2", "nul"):
        with pytest.raises((ValueError, StopIteration)):
            queue_files.parse(bad.encode())


def test_what_was_handed_over_on_a_full_disk_does_not_come_twice(
    queue: NudgeQueue, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the ledger's line nor the folder of what is done has room; the agent has heard it all the same."""
    say(queue, "once")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    heard: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(queue_files, "log_all", full)
        patch.setattr(os, "mkdir", full)
        with pytest.raises(OSError, match="No space"):
            queue.deliver(lambda claims: heard.extend(claim.nudge.message for claim in claims))
    clock.advance(2 * queue_files.STALE)
    queue.deliver(lambda claims: heard.extend(claim.nudge.message for claim in claims))
    assert heard == ["once"]


_WAITING = "1000000000000000001-00000000.json"
_CLAIMED = f"{_WAITING}.claimed.00000001"


@pytest.mark.parametrize(
    "act",
    [
        lambda folder: queue_files.read(folder, _WAITING),
        lambda folder: queue_files.take(folder, _WAITING, 5.0),
        lambda folder: queue_files.put_back(folder, _CLAIMED),
        lambda folder: queue_files.drop(folder, _WAITING),
        lambda folder: queue_files.finish(folder, _CLAIMED),
        lambda folder: queue_files.quarantine(folder, _WAITING),
        lambda folder: queue_files.dead_letter(folder, _WAITING, {}, "why"),
        queue_files.clear_finished,
        queue_files.count_dropped,
        queue_files.take_dropped,
        lambda folder: queue_files.log(folder, "drained", _WAITING, {}),
        lambda folder: queue_files.in_ledger(folder, _WAITING, "drained"),
        lambda folder: queue_files.claimed_at(folder, _CLAIMED),
        lambda folder: queue_files.Locked(folder).__enter__(),
        lambda folder: NudgeQueue(folder, ManualClock()).bury_unseen(Nudge("mayor", "x"), _WAITING, "why"),
        queue_files.waiting,
    ],
)
def test_a_folder_that_became_a_link_leads_nowhere(tmp_path: Path, act: Callable[[str], object]) -> None:
    """An agent has put a link to somebody's files in the place of its queue, in the middle of a drain."""
    theirs = tmp_path / "theirs"
    (theirs / queue_files.DONE).mkdir(parents=True)
    for name in (_WAITING, _CLAIMED, queue_files.LEDGER, queue_files.DROPPED, f"{queue_files.DONE}/old"):
        (theirs / name).write_text('{"message": "theirs"}')
    before = {path: path.lstat() for path in theirs.rglob("*")}
    (tmp_path / "queue").symlink_to(theirs)
    with pytest.raises(OSError, match="queue"):
        act(str(tmp_path / "queue"))
    assert {path: path.lstat() for path in theirs.rglob("*")} == before
