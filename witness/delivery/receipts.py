"""Receipts: what became of each nudge, folded into the journal.

Hooks write into the queue's ledger, never into the journal. Here the ledger is read on: drained nudges are looked for
in the session's transcript. One that is not found although the agent has answered since is handed over once more; if
that is lost too it goes to the dead-letter folder with its reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from witness.clock import Clock
from witness.delivery import message_format, queue_files
from witness.delivery.nudge_queue import Nudge, NudgeQueue
from witness.errors import QueueFullError
from witness.journal import Journal, QueueState

# Clients write their transcript late; before this nothing is concluded from what it does not hold.
PATIENCE = 15.0
_GIVEN_ATTACHMENTS = ("hook_additional_context", "queued_command")
# What stands in a line that may be the model's answer, looked for before the line is parsed.
_ANSWER_SIGNS = (b'"assistant"', b'"gemini"', b'function_call"')
_KEPT = ("sender", "message", "priority", "kind", "thread_id", "run", "tries")
# Where no transcript is to be had, delivery is neither proven nor doubted for longer than this.
GIVE_UP = 600.0


@dataclass
class Receipt:
    """A drained nudge whose arrival is not proven yet."""

    file: str
    drained: float
    message: str
    transcript: str
    nudge: dict[str, Any]


@dataclass
class Settled:
    """What one call of ``settle_deliveries`` found.

    Args:
        drained, seen, again, undelivered: file names of the nudges.
        open: how many wait for their proof.
    """

    drained: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    undelivered: list[str] = field(default_factory=list)
    open: int = 0


def settle_deliveries(journal: Journal, queue: Path, clock: Clock, *, last: bool = False) -> Settled:
    """Read a queue's ledger on and look for receipts.

    Call it at each patrol, and once more with ``last`` when the agent has ended and the queue was closed.

    Args:
        journal: where the stages of decisions are recorded.
        queue: the session's queue folder.
        clock: the time.
        last: nothing more will come: what has no receipt stays ``drained``, with that as its reason.

    Raises:
        JournalError: the journal cannot be used; nothing is lost, the next call goes on from the same place.
    """
    return _Settlement(journal, queue, clock).settle(last)


class _Settlement:
    def __init__(self, journal: Journal, folder: Path, clock: Clock) -> None:
        self._journal, self._folder, self._clock = journal, folder, clock
        self._transcript = ""
        self._queue = NudgeQueue(folder, clock, self._was_delivered)
        self._settled = Settled()

    def settle(self, last: bool) -> Settled:
        known = self._journal.queues.get(self._folder.name)
        state = known or QueueState()
        self._transcript = state.transcript
        self._queue.sweep()
        ledger = self._folder / queue_files.LEDGER
        if known is None and not ledger.exists():
            return self._settled
        offset, size = state.position, ledger.stat().st_size if ledger.exists() else 0
        receipts = [Receipt(**receipt) for receipt in state.receipts]
        if size != offset or receipts:
            self._read_on(ledger, offset if offset <= size else 0, receipts, last)
        if last:
            self._start_anew(ledger)
        return self._settled

    def _read_on(self, ledger: Path, offset: int, receipts: list[Receipt], last: bool) -> None:
        lines, offset = _read_lines(ledger, offset)
        with self._journal.transaction():
            for fact in lines:
                self._take_in(fact, receipts)
            still_open = [receipt for receipt in receipts if not self._resolve(receipt, last)]
            state = QueueState(offset, self._transcript, tuple(asdict(receipt) for receipt in still_open))
            self._journal.queues.set(self._folder.name, state)
        self._settled.open = len(still_open)

    def _start_anew(self, ledger: Path) -> None:
        """All that the ledger says stands in the journal now; the session's next run begins with an empty one."""
        if ledger.exists():
            ledger.replace(ledger.with_suffix(".old"))
        self._journal.queues.drop(self._folder.name)

    def _was_delivered(self, nudge: Nudge) -> bool:
        return bool(self._transcript) and message_format.in_transcript(self._transcript, {"message": nudge.message})

    def _take_in(self, fact: dict[str, Any], receipts: list[Receipt]) -> None:
        file, stage, reason = str(fact["file"]), fact["stage"], str(fact.get("reason", ""))
        if stage == "drained":
            self._settled.drained.append(file)
            self._transcript = str(fact.get("transcript") or self._transcript)
            self._stage(fact, "drained")
            receipt = Receipt(
                file, fact["t"] / 1e9, str(fact.get("message", "")), str(fact.get("transcript", "")),
                {key: fact[key] for key in _KEPT if key in fact},
            )  # fmt: skip
            receipts.append(receipt)
        elif stage == "seen":
            receipts[:] = [receipt for receipt in receipts if receipt.file != file]
            self._seen(file, fact)
        elif stage == "undelivered":
            self._settled.undelivered.append(file)
            self._stage(fact, "undelivered", reason)
        elif stage == "malformed":
            self._journal.note(self._clock.wall(), "nudge-malformed", queue=self._folder.name, file=file, reason=reason)

    def _resolve(self, receipt: Receipt, last: bool) -> bool:
        """Whether the receipt is settled."""
        found, answered = _look(receipt)
        age = self._clock.wall() - receipt.drained
        if found:
            self._seen(receipt.file, receipt.nudge)
        elif last or age > GIVE_UP:
            self._stage(receipt.nudge, "drained", "no receipt: not found in the transcript")
        elif answered and age > PATIENCE:
            self._lost(receipt)
        else:
            return False
        return True

    def _seen(self, file: str, nudge: dict[str, Any]) -> None:
        self._settled.seen.append(file)
        self._stage(nudge, "seen")

    def _lost(self, receipt: Receipt) -> None:
        nudge = Nudge.from_fields(receipt.nudge)
        reason = "handed over twice, and neither time in the transcript"
        if nudge.tries == 0:
            again = Nudge(
                nudge.sender, nudge.message, nudge.priority, nudge.kind, nudge.thread_id, run=nudge.run, tries=1
            )
            try:
                self._settled.again.append(self._queue.enqueue(again))
            except (QueueFullError, OSError) as error:
                reason = f"handed over once, not in the transcript, and could not wait again: {error}"
            else:
                self._stage(receipt.nudge, "enqueued", "handed over once, not in the transcript: once more")
                return
        with suppress(OSError):
            self._queue.bury_unseen(nudge, receipt.file, reason)
        self._settled.undelivered.append(receipt.file)
        self._stage(receipt.nudge, "undelivered", reason)

    def _stage(self, nudge: dict[str, Any], stage: str, reason: str = "") -> None:
        if nudge.get("kind") == "sidecar":
            self._journal.decisions.stage(decision_of(str(nudge.get("thread_id", ""))), stage, reason)
        else:
            self._journal.note(
                self._clock.wall(), f"nudge-{stage}", run=str(nudge.get("run", "")), queue=self._folder.name,
                sender=nudge.get("sender", ""), message=str(nudge.get("message", ""))[:200], reason=reason,
            )  # fmt: skip


def decision_of(thread_id: str) -> str:
    """The decision's id in a sidecar nudge's thread id (``<sidecar>:<id>`` or ``<sidecar>/<id>``)."""
    return re.split(r"[:/]", thread_id)[-1]


def _read_lines(ledger: Path, offset: int) -> tuple[list[dict[str, Any]], int]:
    facts: list[dict[str, Any]] = []
    if not ledger.exists():
        return facts, 0
    with ledger.open("rb") as file:
        file.seek(offset)
        for line in file:
            if not line.endswith(b"\n"):
                break  # still being written
            offset += len(line)
            with suppress(ValueError):
                fact = json.loads(line)
                if isinstance(fact, dict) and {"t", "stage", "file"} <= fact.keys():
                    facts.append(fact)
    return facts, offset


def _look(receipt: Receipt) -> tuple[bool, bool]:
    """Whether the transcript holds the message as given to the model, and whether the model has answered since."""
    wanted = message_format.as_written(message_format.clean(receipt.message))
    answered = False
    for line in _tail(Path(receipt.transcript)) if receipt.transcript else ():
        if wanted in line and _gives_to_model(_parse(line), receipt):
            return True, True
        if not answered and any(sign in line for sign in _ANSWER_SIGNS):
            entry = _parse(line)
            answered = _is_answer(entry) and _time(entry) > receipt.drained + 1
    return False, answered


def _gives_to_model(entry: dict[str, Any], receipt: Receipt) -> bool:
    """Context added by a hook, or a user's message. What a hook printed is written down too; that proves nothing."""
    kind, role = _inner(entry, "attachment").get("type"), _inner(entry, "payload").get("role")
    given = kind in _GIVEN_ATTACHMENTS or role in ("user", "developer") or entry.get("type") == "user"
    # The same words may have been said an hour ago.
    return given and (not _time(entry) or _time(entry) > receipt.drained - 5)


def _is_answer(entry: dict[str, Any]) -> bool:
    payload = _inner(entry, "payload")
    if payload:  # Codex CLI
        return payload.get("role") == "assistant" or str(payload.get("type", "")).endswith("function_call")
    return entry.get("type") in ("assistant", "gemini")


def _inner(entry: dict[str, Any], key: str) -> dict[str, Any]:
    inner = entry.get(key)
    return inner if isinstance(inner, dict) else {}


def _tail(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - message_format.TRANSCRIPT_TAIL))
            yield from file
    except OSError:
        return


def _parse(line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}


def _time(entry: dict[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(entry.get("timestamp", ""))).timestamp()
    except ValueError:
        return 0.0
