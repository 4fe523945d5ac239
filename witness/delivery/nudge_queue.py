"""The nudge queue of one session, in Gas Town's format and by its rules, so that either side may write or drain it.

Writes are atomic (temporary name, fsync where the words stand nowhere else, rename); claims are renames; a claim that
was not acknowledged in five minutes is put back once. Nothing is ever dropped in silence: what is not delivered goes to
``dead-letter/`` with its reason and leaves a line in the ledger that the Witness folds into its journal.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from witness.clock import Clock
from witness.config.rigs import Operational
from witness.delivery import queue_files
from witness.errors import QueueFullError
from witness.files import make_folder

_TEXTS = ("kind", "thread_id", "severity", "run")
# A writer must get its turn even behind ten others that fsync.
_WRITER_WAIT = 5.0


@dataclass(frozen=True, slots=True)
class Nudge:
    """One message to an agent. Instants are wall-clock seconds, 0 for none.

    Args:
        sender: who says it, as ``sidecar:specs`` or ``mayor``.
        message: the text.
        priority: ``normal`` or ``urgent``.
        kind, thread_id: by which a stale one can be withdrawn.
        severity: Gas Town's own field, handed through.
        timestamp: when it was written; now when 0.
        expires_at: when it is of no more use; by Gas Town's limits (30 min, urgent 2 h) when 0.
        deliver_after: not before.
        run: the run that it is meant for; a later polecat of the same session does not get it. Empty: for any run.
        tries: how often it was handed to the agent without a sign in its transcript.
    """

    sender: str
    message: str
    priority: str = "normal"
    kind: str = ""
    thread_id: str = ""
    severity: str = ""
    timestamp: float = 0.0
    expires_at: float = 0.0
    deliver_after: float = 0.0
    run: str = ""
    tries: int = 0

    @property
    def urgent(self) -> bool:
        return self.priority == "urgent"

    def is_ours(self, run: str) -> bool:
        """Whether it was written for that run, or by a sidecar or the Witness; others write to the same session too."""
        return self.run == run or self.kind == "sidecar" or self.sender.startswith(("sidecar:", "gt-witness"))

    def to_fields(self) -> dict[str, Any]:
        """The keys and values of its file."""
        fields: dict[str, Any] = {"sender": self.sender, "message": self.message, "priority": self.priority}
        for name in ("kind", "thread_id", "severity", "run", "tries"):
            if getattr(self, name):
                fields[name] = getattr(self, name)
        for name in ("timestamp", "expires_at", "deliver_after"):
            fields[name] = queue_files.stamp(getattr(self, name))
        return fields

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Nudge:
        """Read a file's keys; unknown ones are ignored, wrong ones count as absent."""
        texts = {name: fields[name] for name in _TEXTS if isinstance(fields.get(name), str)}
        tries = fields.get("tries")
        return cls(
            sender=str(fields.get("sender") or "unknown"),
            message=str(fields.get("message", "")),
            priority="urgent" if fields.get("priority") == "urgent" else "normal",
            timestamp=queue_files.instant(fields.get("timestamp")),
            expires_at=queue_files.instant(fields.get("expires_at")),
            deliver_after=queue_files.instant(fields.get("deliver_after")),
            tries=tries if isinstance(tries, int) else 0,
            **texts,
        )


@dataclass(frozen=True, slots=True)
class Claim:
    """A nudge that is ours to deliver, until it is acknowledged or released.

    Args:
        file: its name in the queue, by which the journal knows it.
        claimed: the claimed file's name.
        nudge: what it says.
    """

    file: str
    claimed: str
    nudge: Nudge
    fields: dict[str, Any] = field(repr=False, compare=False, default_factory=dict)


class NudgeQueue:
    """The queue of one session.

    Args:
        folder: ``town.queue_dir(session)``; made when it is missing.
        clock: where the time comes from.
        delivered: tells of a nudge whose carrier died whether the agent has it all the same; None: nobody knows.
        depth: how many may wait; None for what the town has set, else Gas Town's default.
    """

    def __init__(
        self,
        folder: Path | str,
        clock: Clock,
        delivered: Callable[[Nudge], bool] | None = None,
        depth: int | None = None,
    ) -> None:
        self.folder = Path(folder)
        self._path = os.fspath(folder)
        self._clock = clock
        self._delivered = delivered
        self._depth = depth

    def enqueue(self, nudge: Nudge, *, durable: bool = True) -> str:
        """Let a nudge wait for the agent's next step.

        An urgent one always gets in: at the depth limit the oldest normal one makes room, and goes to the dead-letter
        folder; where all are urgent the oldest of them does.

        Args:
            nudge: it.
            durable: it outlives a loss of power. That costs a disk's flush (4 to 80 ms), for which an agent waits;
                a sidecar's stands in the journal, and its agent would not have outlived that either.

        Returns:
            Its file name.

        Raises:
            QueueFullError: the queue is at its depth limit and the nudge is not urgent.
            OSError: it could not be written.
        """
        now = self._clock.wall()
        self._make_folder()
        ttl = queue_files.URGENT_TTL if nudge.urgent else queue_files.NORMAL_TTL
        nudge = replace(
            nudge,
            timestamp=nudge.timestamp or now,
            expires_at=nudge.expires_at or max(now, nudge.deliver_after) + ttl,
        )
        temporary = self._write(nudge, durable)
        try:
            # Without the lock the order of two at the same instant is open, nothing worse: never lose a nudge for it.
            with queue_files.Locked(self._path, _WRITER_WAIT):
                names = queue_files.waiting(self._path)
                if len(names) >= self._limit() and not (nudge.urgent and self._make_room(names)):
                    raise QueueFullError(
                        f"{len(names)} nudges wait for this agent already: the new one was not queued; "
                        "an urgent one would be (--priority urgent)"
                    )
                name = f"{self._next_stamp(names, now):019d}-{os.urandom(4).hex()}{queue_files.SUFFIX}"
                queue_files.rename(self._path, temporary, name)
                # Within the lock, so that no drain of ours is told before. A full disk takes this line, not the nudge.
                if self._is_gas_towns():
                    with suppress(OSError):
                        queue_files.log(self._path, queue_files.QUEUED, name, nudge.to_fields())
        except BaseException:
            queue_files.drop(self._path, temporary)
            raise
        return name

    def _is_gas_towns(self) -> bool:
        """Whether there is a drain that is not ours: <town>/.runtime/nudge_queue/<session> of a Gas Town."""
        return (self.folder.parent.parent.parent / "mayor").is_dir()

    def _make_folder(self) -> None:
        # <town>/.runtime/nudge_queue/<session>: Gas Town makes the upper ones by its own umask.
        runtime = self.folder.absolute().parent.parent
        if not runtime.is_dir():
            make_folder(runtime, below=runtime.parent)
        make_folder(self.folder.absolute(), below=runtime, close=True)

    def _limit(self) -> int:
        if self._depth is not None:
            return self._depth
        runtime = self.folder.parent.parent  # <town>/.runtime/nudge_queue/<session>
        return Operational(runtime.parent).count("nudge", "max_queue_depth", queue_files.DEPTH)

    def _write(self, nudge: Nudge, durable: bool = True) -> str:
        """Write it under a name that nobody drains, and return that."""

        def write(file: int) -> None:
            with os.fdopen(file, "w", encoding="utf-8", errors="replace") as text:
                json.dump(nudge.to_fields(), text, indent=2, ensure_ascii=False)
                text.flush()
                if durable:
                    os.fsync(text.fileno())

        temporary = f".{os.getpid()}-{os.urandom(4).hex()}.new"
        queue_files.add(self._path, temporary, write)
        return temporary

    def _next_stamp(self, names: list[str], now: float) -> int:
        # The clock may have been set back; the order of the names is the order of delivery all the same.
        newest = max([*names[-1:], *queue_files.claims(self._path)[-1:]], default="")
        return max(int(now * 1e9), queue_files.stamp_of(newest) + 1)

    def _make_room(self, names: list[str]) -> bool:
        waiting = [(name, fields) for name in names if (fields := queue_files.read(self._path, name))]
        normal = [entry for entry in waiting if entry[1].get("priority") != "urgent"]
        for name, fields in (normal or waiting)[:1]:
            queue_files.dead_letter(self._path, name, fields, "made room for an urgent one")
            queue_files.count_dropped(self._path)
        return True

    def claim(self, room: int = 1 << 30, run: str = "") -> list[Claim]:
        """Take what may be delivered now, oldest first; each must be acknowledged or released.

        Args:
            room: how many characters there are for all.
            run: the run that drains; what names another one goes to the dead-letter folder.
        """
        now = self._clock.wall()
        if not self.folder.is_dir():
            return []
        with queue_files.Locked(self._path) as lock:
            if not lock.held:
                return []
            queue_files.recover(self._path, now, self._was_delivered)
            taken = queue_files.claim_due(self._path, now, room, run)
        return [_claim(name, fields) for name, fields in taken]

    def deliver(
        self, hand_over: Callable[[list[Claim]], None], room: int = 1 << 30, run: str = "", **more: str
    ) -> list[Claim]:
        """Claim what is due, hand it over and acknowledge it, while nobody else drains: so the order stays the queue's.

        Args:
            hand_over: gives the nudges to the agent; when it raises, they wait again and the error goes on.
            room, run: as for ``claim``.
            more: facts for the ledger.

        Returns:
            What was handed over; empty when nothing was due or another one drains just now.
        """
        if not self.folder.is_dir():
            return []
        with queue_files.Locked(self._path) as lock:
            if not lock.held:
                return []
            now = self._clock.wall()
            queue_files.recover(self._path, now, self._was_delivered)
            taken = [_claim(name, fields) for name, fields in queue_files.claim_due(self._path, now, room, run)]
            if not taken:
                return []
            try:
                hand_over(taken)
            except BaseException:
                for claim in taken:
                    self.release(claim)
                raise
            self.acknowledge_all(taken, **more)
        return taken

    def _was_delivered(self, fields: dict[str, Any]) -> bool:
        return self._delivered is not None and self._delivered(Nudge.from_fields(fields))

    def acknowledge(self, claim: Claim, **more: str) -> None:
        """The agent has it: note that and forget the nudge.

        Args:
            claim: what was delivered.
            more: facts for the ledger (event, session, transcript).
        """
        self.acknowledge_all([claim], **more)

    def acknowledge_all(self, taken: list[Claim], **more: str) -> None:
        """The same for several that went out together."""
        queue_files.acknowledge(self._path, [(claim.claimed, claim.fields) for claim in taken], **more)

    def note_seen(self, taken: list[Claim]) -> None:
        """Somebody has seen them arrive (on the screen): that is their receipt."""
        queue_files.log_all(self._path, "seen", [(claim.file, claim.fields) for claim in taken])

    def release(self, claim: Claim) -> None:
        """It was not delivered after all: let it wait again in its old place."""
        queue_files.put_back(self._path, claim.claimed)

    def dead_letter(self, claim: Claim, reason: str) -> None:
        """It will not be delivered: to the dead-letter folder with it."""
        queue_files.dead_letter(self._path, claim.claimed, claim.fields, reason)

    def sweep(self) -> None:
        """Bury what has expired, put back what dead carriers hold, remove what was handed over; nothing is taken."""
        queue_files.clear_finished(self._path)
        queue_files.restore(self._path)
        if not queue_files.waiting(self._path) and not queue_files.claims(self._path):
            return
        with queue_files.Locked(self._path) as lock:
            if lock.held:
                now = self._clock.wall()
                queue_files.recover(self._path, now, self._was_delivered)
                queue_files.expire(self._path, now)

    def withdraw(self, kind: str, thread_id: str = "") -> int:
        """Take back what waits and has that kind and thread (every thread when empty).

        Returns:
            How many were withdrawn; those already claimed are on their way.
        """
        count = 0
        for name in queue_files.waiting(self._path):
            fields = queue_files.read(self._path, name)
            if fields and fields.get("kind") == kind and thread_id in ("", fields.get("thread_id")):
                count += queue_files.dead_letter(self._path, name, fields, "withdrawn by its sender")
        return count

    def pending(self) -> list[Claim]:
        """What waits, oldest first; nothing is claimed (``claimed`` is empty)."""
        found = ((name, queue_files.read(self._path, name)) for name in queue_files.waiting(self._path))
        return [Claim(name, "", Nudge.from_fields(fields), fields) for name, fields in found if fields]

    def knows(self, thread_id: str) -> bool:
        """Whether a nudge of that thread waits, is on its way, or has been dealt with."""
        names = [*queue_files.waiting(self._path), *queue_files.claims(self._path)]
        if any((queue_files.read(self._path, name) or {}).get("thread_id") == thread_id for name in names):
            return True
        return queue_files.ledger_holds(self._path, f'"thread_id":{queue_files.quote(thread_id)}')

    def was_drained(self, file: str) -> bool:
        """Whether the nudge in that file has been handed over."""
        return queue_files.in_ledger(self._path, file, "drained")

    def bury_unseen(self, nudge: Nudge, file: str, reason: str) -> None:
        """Put a nudge that was handed over and never arrived into the dead-letter folder."""
        fields = nudge.to_fields()
        queue_files.rename(self._path, self._write(nudge), file)
        queue_files.dead_letter(self._path, file, fields, reason)

    def close(self, reason: str, which: Callable[[Nudge], bool] | None = None) -> int:
        """Its agent has ended: what waits or was claimed goes to the dead-letter folder.

        Args:
            reason: for people who look there.
            which: whether a nudge is among them; None for all.

        Returns:
            How many.
        """
        count = 0
        for name in (*queue_files.waiting(self._path), *queue_files.claims(self._path)):
            fields = queue_files.read(self._path, name)
            if not fields or (which and not which(Nudge.from_fields(fields))):
                continue
            if queue_files.in_ledger(self._path, name, "drained"):
                queue_files.drop(self._path, name)
            else:
                count += queue_files.dead_letter(self._path, name, fields, reason)
        queue_files.clear_finished(self._path)
        return count


def _claim(name: str, fields: dict[str, Any]) -> Claim:
    return Claim(name.partition(queue_files.CLAIM)[0], name, Nudge.from_fields(fields), fields)
