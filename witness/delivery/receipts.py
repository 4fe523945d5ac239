"""Receipts: what became of each nudge, folded into the journal.

Hooks write into the queue's ledger, never into the journal. Here the ledger is read on: drained nudges are looked for
in the session's transcript. One that is not found although the agent has answered since is handed over once more; if
that is lost too it goes to the dead-letter folder with its reason.

Gas Town's own drain writes no ledger, and deletes before it prints. So a nudge of ours leaves a line when it is queued;
when it is gone, and no line says where to, that drain has it, and its receipt is looked for like any other.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from witness.clock import Clock
from witness.delivery import message_format, queue_files
from witness.delivery.nudge_queue import Nudge, NudgeQueue
from witness.errors import QueueFullError
from witness.files import UnsafeFileError, parse_json, read_from, typed
from witness.journal import Journal, QueueState

# Clients write their transcript late; before this nothing is concluded from what it does not hold.
PATIENCE = 15.0
_GIVEN_ATTACHMENTS = ("hook_additional_context", "queued_command")
# What stands in a line that may be the model's answer, looked for before the line is parsed.
_ANSWER_SIGNS = (b'"assistant"', b'"gemini"', b'function_call"')
_KEPT = ("sender", "message", "priority", "kind", "thread_id", "run", "tries")
# Where no transcript is to be had, delivery is neither proven nor doubted for longer than this.
GIVE_UP = 600.0
# A disk that needs longer than this for a transcript's end hangs.
DISK_PATIENCE = 0.5
_LEDGER_MOST = 16 << 20
_LONGEST_NAME = 255


@dataclass
class Receipt:
    """A nudge whose arrival is not proven yet; ``drained`` is 0 for one that waits."""

    file: str
    drained: float
    message: str
    transcript: str
    nudge: dict[str, Any]
    #: When a nudge was queued that Gas Town's own drain may take; 0 for one that ours has handed over.
    queued: float = 0.0


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
        self._gone: Callable[[Receipt], bool] = lambda _: False
        # What is to be written into the journal, in one transaction.
        self._records: list[Callable[[], object]] = []

    def settle(self, last: bool) -> Settled:
        known = self._journal.queues.get(self._folder.name)
        state = known or QueueState()
        self._transcript = state.transcript
        self._queue.sweep()
        # Before the ledger is read: a drain of ours writes its line before the file goes.
        began, present = self._clock.wall(), self._present()
        ledger = self._folder / queue_files.LEDGER
        if known is None and not ledger.exists():
            return self._settled
        facts, offset = _read_lines(ledger, state.position)
        receipts = [Receipt(**receipt) for receipt in state.receipts]
        if facts or receipts or offset != state.position:
            self._gone = partial(_is_gone, present, began)
            self._read_on(facts, offset, receipts, last)
        if last:
            self._start_anew(ledger)
        return self._settled

    def _read_on(self, facts: list[dict[str, Any]], offset: int, receipts: list[Receipt], last: bool) -> None:
        # Files first, the journal then: a disk that hangs must not hold the journal that everybody writes to.
        for fact in facts:
            self._take_in(fact, receipts)
        still_open = [receipt for receipt in receipts if not self._resolve(receipt, last)]
        state = QueueState(offset, self._transcript, tuple(asdict(receipt) for receipt in still_open))
        with self._journal.transaction():
            for record in self._records:
                record()
            self._journal.queues.set(self._folder.name, state)
        self._settled.open = sum(receipt.drained > 0 for receipt in still_open)

    def _present(self) -> set[str]:
        """The nudges that wait or are being handed over, by whomever."""
        try:
            names = queue_files.listed(os.fspath(self._folder))
        except FileNotFoundError:
            return set()
        return {name.partition(queue_files.CLAIM)[0] for name in names}

    def _start_anew(self, ledger: Path) -> None:
        """All that the ledger says stands in the journal now; the session's next run begins with an empty one."""
        if ledger.exists():
            ledger.replace(ledger.with_suffix(".old"))
        self._journal.queues.drop(self._folder.name)

    def _was_delivered(self, nudge: Nudge) -> bool:
        return bool(self._transcript) and message_format.is_among(_tail(self._transcript), {"message": nudge.message})

    def _take_in(self, fact: dict[str, Any], receipts: list[Receipt]) -> None:
        file, stage, reason = fact["file"], fact["stage"], fact.get("reason", "")
        if stage in ("drained", "undelivered"):
            receipts[:] = [receipt for receipt in receipts if receipt.file != file or receipt.drained]
        if stage == queue_files.QUEUED:
            nudge = {key: fact[key] for key in _KEPT if key in fact}
            receipts.append(Receipt(file, 0.0, fact.get("message", ""), "", nudge, fact["t"] / 1e9))
        elif stage == "drained":
            self._settled.drained.append(file)
            self._transcript = fact.get("transcript") or self._transcript
            self._stage(fact, "drained")
            receipt = Receipt(
                file, fact["t"] / 1e9, fact.get("message", ""), fact.get("transcript", ""),
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
            note = partial(self._journal.note, self._clock.wall(), "nudge-malformed", queue=self._folder.name)
            self._records.append(partial(note, file=file, reason=reason))

    def _resolve(self, receipt: Receipt, last: bool) -> bool:
        """Whether the receipt is settled."""
        if not receipt.drained:
            if not self._gone(receipt):
                return False
            receipt.drained, receipt.transcript = self._clock.wall(), self._transcript
            self._settled.drained.append(receipt.file)
            self._stage(receipt.nudge, "drained", "taken by Gas Town's own drain")
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
            decision = decision_of(nudge.get("thread_id", ""))
            self._records.append(partial(self._journal.decisions.stage, decision, stage, reason))
        else:
            self._records.append(
                partial(
                    self._journal.note, self._clock.wall(), f"nudge-{stage}", run=nudge.get("run", ""),
                    queue=self._folder.name, sender=nudge.get("sender", ""),
                    message=nudge.get("message", "")[:200], reason=reason,
                )
            )  # fmt: skip


def _is_gone(present: set[str], began: float, receipt: Receipt) -> bool:
    """Whether a nudge that waited is in the queue no more; what came after the look at the folder is not known yet."""
    return receipt.file not in present and receipt.queued < began


def decision_of(thread_id: str) -> str:
    """The decision's id in a sidecar nudge's thread id (``<sidecar>:<id>`` or ``<sidecar>/<id>``)."""
    return re.split(r"[:/]", thread_id)[-1]


def _read_lines(ledger: Path, offset: int) -> tuple[list[dict[str, Any]], int]:
    """The facts of a ledger from a position on, and where the next reading begins."""
    below = ledger.parent.parent
    try:
        size = os.lstat(ledger).st_size
        if offset > size:
            offset = 0
        elif size - offset > _LEDGER_MOST:
            raise UnsafeFileError(ledger, f"{size - offset} bytes were added at once: put aside")
        data = read_from(ledger, offset, _LEDGER_MOST, below=below)
    except FileNotFoundError:
        return [], 0
    except UnsafeFileError:
        queue_files.put_aside(os.fspath(ledger))
        raise
    facts = []
    # A line without an end is still being written.
    whole, newline, _ = data.rpartition(b"\n")
    for line in whole.split(b"\n"):
        with suppress(ValueError):
            facts.append(_fact(line))
    return facts, offset + len(whole) + len(newline)


def _fact(line: bytes) -> dict[str, Any]:
    """A line of the ledger, with the keys that it may have and of the types that they have to be.

    Raises:
        ValueError: it is no fact.
    """
    raw = parse_json(line)
    fact: dict[str, Any] = {"t": typed(raw, "t", int), "stage": typed(raw, "stage", str)}
    fact["file"] = typed(raw, "file", str)
    if "/" in fact["file"] or fact["file"] in ("", ".", "..") or len(fact["file"]) > _LONGEST_NAME:
        raise ValueError("no name of a file of the queue")
    for key in (*_KEPT, "transcript", "reason"):
        if raw.get(key) is not None:
            fact[key] = typed(raw, key, int) if key == "tries" else typed(raw, key, str)
    return fact


def _look(receipt: Receipt) -> tuple[bool, bool]:
    """Whether the transcript holds the message as given to the model, and whether the model has answered since."""
    wanted = message_format.as_written(message_format.clean(receipt.message))
    answered = False
    for line in _tail(receipt.transcript) if receipt.transcript else ():
        if wanted in line and _gives_to_model(_parse(line), receipt):
            return True, True
        if not answered and any(sign in line for sign in _ANSWER_SIGNS):
            entry = _parse(line)
            answered = _is_answer(entry) and _time(entry) > receipt.drained + 1
    return False, answered


def _gives_to_model(entry: dict[str, Any], receipt: Receipt) -> bool:
    """Context added by a hook, or a user's message. What our hook printed is written down too; that proves nothing.

    Gas Town's drain prints plain text at a prompt, which the client gives to the model as it is.
    """
    attachment, role = _inner(entry, "attachment"), _inner(entry, "payload").get("role")
    kind = attachment.get("type")
    given = kind in _GIVEN_ATTACHMENTS or role in ("user", "developer") or entry.get("type") == "user"
    printed = kind == "hook_success" and attachment.get("hookEvent") in ("UserPromptSubmit", "SessionStart")
    given = given or bool(receipt.queued and printed)
    # The same words may have been said an hour ago.
    return given and (not _time(entry) or _time(entry) > (receipt.queued or receipt.drained) - 5)


def _is_answer(entry: dict[str, Any]) -> bool:
    payload = _inner(entry, "payload")
    if payload:  # Codex CLI
        return payload.get("role") == "assistant" or str(payload.get("type", "")).endswith("function_call")
    return entry.get("type") in ("assistant", "gemini")


def _inner(entry: dict[str, Any], key: str) -> dict[str, Any]:
    inner = entry.get(key)
    return inner if isinstance(inner, dict) else {}


# Transcripts of which a reading has not come back yet.
_hanging: dict[str, threading.Thread] = {}


def _tail(path: str) -> list[bytes]:
    """The end of a transcript; nothing where its disk does not answer in time, and until it has."""
    if (before := _hanging.get(path)) is not None:
        if before.is_alive():
            return []
        del _hanging[path]
    lines: list[bytes] = []
    reader = threading.Thread(target=lambda: lines.extend(message_format.tail(path)), name="transcript", daemon=True)
    reader.start()
    reader.join(DISK_PATIENCE)
    if reader.is_alive():
        _hanging[path] = reader
        return []
    return lines


def _parse(line: bytes) -> dict[str, Any]:
    try:
        entry = parse_json(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}


def _time(entry: dict[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(entry.get("timestamp", ""))).timestamp()
    except (ValueError, OverflowError):
        return 0.0
