"""The nudge queue's files: which wait, who claims one, where it goes. No import beyond the interpreter's own core.

The format and the rules are Gas Town's, so that either side may write and drain: ``<unix ns>-<8 hex>.json`` in the
session's folder, claimed by a rename to ``<file>.claimed.<8 hex>``. Our eight digits are the claim's own time in
seconds, so that a nudge that waited long does not look abandoned the moment it is claimed.

Each operation, a drain of many nudges too, opens the folder once and goes by its descriptor: what is put into the
folder's place meanwhile, a link too, is neither read nor written nor moved.

Beside the waiting files stand ``deliveries.jsonl`` (what became of each, one line a fact), ``dead-letter/`` (what was
never delivered, with its reason) and ``malformed/`` (files that are no nudge; never deleted).
"""

# pathlib and contextlib cost milliseconds at each tool call of each agent:
# ruff: noqa: PTH208, SIM105
from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes longer to import than all that a hook does
    from collections.abc import Callable, Iterable
    from typing import Any

SUFFIX = ".json"
CLAIM = ".claimed."
DEPTH = 50
# Gas Town's stale_claim_threshold: the process that claimed it that long ago is dead.
STALE = 300.0
# A modification time that is this near to the claim's needs no correction.
_FRESH = 10.0
NORMAL_TTL = 30 * 60.0
URGENT_TTL = 2 * 3600.0
LEDGER = "deliveries.jsonl"
LOCK = ".lock"
DEAD = "dead-letter"
DONE = "done"
MALFORMED = "malformed"
# The stage of a nudge of ours that waits: when it is gone and no line says where to, Gas Town's own drain has it.
QUEUED = "queued"
# Dropped nudges that the agent was not told of yet: one byte each.
DROPPED = ".dropped"
# What delivery may write around a message (sender, markers), in characters.
_FRAME = 64
# A nudge is a few lines of text; what is larger was not written by anybody of ours and is set aside unread.
FILE_LIMIT = 1 << 20
# Gas Town creates a nudge under its last name and then writes it. For so many seconds after the last write, what does
# not parse is one that is still being written.
UNFINISHED = 2.0
# How many files of malformed/ one sweep reads again.
_LOOKED_AT_AGAIN = 64
# How much of the ledger's end is looked through for one nudge.
LEDGER_TAIL = 16 << 20
# Characters of an instant as ``stamp`` writes it.
_STAMP = len("2026-01-01T00:00:00.000000Z")
# What stat calls a regular file; the module of that name is not loaded for two numbers.
_KIND, _REGULAR = 0o170000, 0o100000


def parse(text: bytes) -> Any:
    """JSON by the interpreter's own scanner: the json package costs ten milliseconds because it imports re."""
    decoded = text.decode("utf-8")
    try:
        from _json import make_scanner
    except ImportError:
        import json

        return json.loads(decoded)
    value, end = make_scanner(_SCANNER)(  # type: ignore[arg-type]
        decoded, len(decoded) - len(decoded.lstrip())
    )
    if decoded[end:].strip():
        raise ValueError("more than one JSON value")
    return value


class _SCANNER:
    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}  # noqa: RUF012 - the scanner's own cache


def quote(text: str) -> str:
    """``text`` as a JSON string in ASCII."""
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        import json

        return json.dumps(text)
    return str(encode_basestring_ascii(text))


def waiting(folder: str) -> list[str]:
    """Names of the files that wait, oldest first; empty when there is no queue."""
    return sorted(name for name in listed(folder) if name.endswith(SUFFIX))


def listed(folder: str) -> list[str]:
    """The names in a queue's folder; none when it is not there.

    Raises:
        OSError: it is a link, no folder, or another user's: nothing there is ours to move.
    """
    try:
        with Folder(folder) as at:
            return os.listdir(at)
    except FileNotFoundError:
        return []


def _opened(folder: str, at: int | None = None) -> int:
    """A descriptor of a folder that is ours; no link is followed."""
    inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    if os.fstat(inner).st_uid != os.geteuid():
        os.close(inner)
        raise PermissionError(1, "the folder belongs to another user", folder)
    return inner


class Folder:
    """A queue's folder for as long as ``with`` lasts: its descriptor.

    Raises:
        OSError: it is a link, no folder, another user's, or not there.
    """

    def __init__(self, path: str) -> None:
        self._path, self._at = path, -1

    def __enter__(self) -> int:
        self._at = _opened(self._path)
        return self._at

    def __exit__(self, *_: object) -> None:
        os.close(self._at)


def stamp_of(name: str) -> int:
    """The nanoseconds at the head of a waiting file's name; 0 where none of ours stand there."""
    head = name.partition("-")[0]
    return int(head) if head.isascii() and head.isdigit() and len(head) < 20 else 0


def read(folder: str, name: str) -> dict[str, Any] | None:
    """The nudge in a file; None when it is gone, still being written, or was set aside because it is none."""
    try:
        with Folder(folder) as at:
            return _read(at, folder, name)[0]
    except FileNotFoundError:
        return None


def _read(at: int, folder: str, name: str) -> tuple[dict[str, Any] | None, float]:
    """The same in an opened folder, and when the file was last written."""
    try:
        nudge, modified = _content(at, name)
    except FileNotFoundError:
        return None, 0.0
    if nudge is None and not 0 <= time.time() - modified < UNFINISHED:
        quarantine(folder, name)
    return nudge, modified


def _content(at: int, name: str) -> tuple[dict[str, Any] | None, float]:
    """The nudge in a file, None where there is none, and when the file was last written; 0 where it is none of ours.

    Raises:
        FileNotFoundError: it is gone.
    """
    try:
        file = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
    except FileNotFoundError:
        raise
    except OSError:
        return None, 0.0
    try:
        status = os.fstat(file)
        if status.st_mode & _KIND != _REGULAR or status.st_uid != os.geteuid():
            return None, 0.0
        # Room for what is there: a mebibyte for each would be asked of the kernel and given back.
        text = os.read(file, min(status.st_size, FILE_LIMIT))
    except OSError:
        return None, 0.0
    finally:
        os.close(file)
    try:
        nudge = parse(text)
    except (ValueError, StopIteration, RecursionError):
        nudge = None
    if isinstance(nudge, dict) and isinstance(nudge.get("message"), str) and nudge["message"].strip():
        return nudge, status.st_mtime
    return None, status.st_mtime


def restore(folder: str) -> None:
    """Let what was set aside and is a nudge all the same wait again: it was read while somebody still wrote it."""
    try:
        with Folder(folder) as at:
            if not _stands(at, MALFORMED):
                return
            aside = _subfolder(at, MALFORMED)
            try:
                for name in sorted(os.listdir(aside), reverse=True)[:_LOOKED_AT_AGAIN]:
                    try:
                        nudge, _ = _content(aside, name)
                        # By one rename: between two steps it would stand in both places, and be heard twice.
                        if nudge is None or not name.endswith(SUFFIX) or _stands(at, name):
                            continue
                        os.rename(name, name, src_dir_fd=aside, dst_dir_fd=at)
                    except OSError:  # somebody was quicker
                        continue
                    log(folder, "put-back", name, nudge, "set aside while it was being written; it waits again")
            finally:
                os.close(aside)
    except FileNotFoundError:
        return


def add(folder: str, name: str, write: Callable[[int], None]) -> None:
    """Make a new file; ``write`` is given its descriptor and closes it. When that fails nothing of it stays.

    Raises:
        OSError: it cannot be written.
    """
    with Folder(folder) as at:
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=at)
        try:
            write(file)
        except BaseException:
            os.unlink(name, dir_fd=at)
            raise


def rename(folder: str, name: str, target: str) -> None:
    """Give a file of the queue another name there."""
    with Folder(folder) as at:
        os.rename(name, target, src_dir_fd=at, dst_dir_fd=at)


def quarantine(folder: str, name: str) -> None:
    """Move a file that is no nudge out of the way; it is kept for people who want to know what it was."""
    _move(folder, name, MALFORMED)
    log(folder, "malformed", name, {}, "not a nudge; kept in malformed/")


def _move(folder: str, name: str, where: str) -> None:
    with Folder(folder) as at:
        inner = _subfolder(at, where)
        try:
            _move_into(at, name, inner)
        finally:
            os.close(inner)


def _move_into(at: int, name: str, inner: int) -> None:
    """Move a file under the name that it waited by; nothing when it is gone."""
    target = name.partition(CLAIM)[0]
    try:
        os.rename(name, target, src_dir_fd=at, dst_dir_fd=inner)
    except FileNotFoundError:
        pass
    except OSError:  # a folder of that name stands there
        os.rename(name, f"{target[:200]}.{time.time_ns()}", src_dir_fd=at, dst_dir_fd=inner)


def _subfolder(at: int, where: str) -> int:
    """A descriptor of a folder within another; what stands in its place and is none of ours is put aside."""
    while True:
        try:
            os.mkdir(where, 0o700, dir_fd=at)
        except FileExistsError:
            pass
        try:
            return _opened(where, at)
        except FileNotFoundError:
            continue
        except OSError:
            put_aside(where, at)


def put_aside(path: str, at: int | None = None) -> None:
    """Give a thing that is in the way another name: a link is moved itself, what it leads to stays as it is."""
    try:
        os.rename(path, f"{path}.{time.time_ns()}.bad", src_dir_fd=at, dst_dir_fd=at)
    except FileNotFoundError:
        pass


def _file(at: int, name: str, flags: int) -> int:
    """Open one of the queue's own files, which is made when it is missing; what is no file of ours is put aside."""
    while True:
        try:
            file = os.open(name, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600, dir_fd=at)
        except OSError:
            try:
                if os.lstat(name, dir_fd=at).st_mode & _KIND == _REGULAR:
                    raise
            except FileNotFoundError:
                raise
        else:
            status = os.fstat(file)
            if status.st_mode & _KIND == _REGULAR and status.st_uid == os.geteuid() and status.st_nlink == 1:
                return file
            os.close(file)
        put_aside(name, at)


def _append(folder: str, name: str, data: bytes) -> None:
    """Add to one of the queue's own files, with one write."""
    with Folder(folder) as at:
        file = _file(at, name, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, data)
    finally:
        os.close(file)


def _stands(at: int, name: str) -> bool:
    """Whether something of that name stands there, a link too."""
    try:
        os.lstat(name, dir_fd=at)
    except FileNotFoundError:
        return False
    return True


def instant(text: object) -> float:
    """Seconds since the epoch of an RFC 3339 time; 0 for none (Go's zero time included) and for what is no time."""
    from _datetime import datetime, timezone  # type: ignore[import-not-found] # the datetime package itself is not needed

    if not isinstance(text, str) or text.startswith("0001-"):
        return 0.0
    if len(text) == _STAMP and text[-1] == "Z" and text[19] == ".":  # as we write it
        head, dot, rest = f"{text[:-1]}+00:00", "", ""
    else:
        head, dot, rest = text.replace("Z", "+00:00").partition(".")
    if dot:  # Go writes up to nine digits, more than datetime takes
        digits = len(rest) - len(rest.lstrip("0123456789"))
        head += "." + rest[:digits][:6].ljust(6, "0") + rest[digits:]
    try:
        moment = datetime.fromisoformat(head)
    except ValueError:
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return float(moment.timestamp())


def stamp(seconds: float) -> str:
    """RFC 3339 of an instant; Go's zero time for 0, as Gas Town writes it."""
    if not seconds:
        return "0001-01-01T00:00:00Z"
    whole = int(seconds)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{int((seconds - whole) * 1e6):06d}Z"


def take(folder: str, name: str, now: float) -> str:
    """Claim a waiting file.

    Returns:
        The claimed name; empty when somebody else was quicker.
    """
    try:
        with Folder(folder) as at:
            return _take(at, name, now, os.lstat(name, dir_fd=at).st_mtime)
    except FileNotFoundError:
        return ""


def _take(at: int, name: str, now: float, modified: float) -> str:
    """Claim a file that was last written at an instant; empty when somebody else was quicker."""
    claimed = f"{name}{CLAIM}{int(now):08x}"
    try:
        # Gas Town counts a claim's age from the file's modification time, so that must be the claim's time too.
        if abs(now - modified) > _FRESH:
            os.utime(name, (now, now), dir_fd=at, follow_symlinks=False)
        os.rename(name, claimed, src_dir_fd=at, dst_dir_fd=at)
    except FileNotFoundError:
        return ""
    return claimed


def claimed_at(folder: str, claimed: str) -> float:
    """When a claim was made: from its name, or, where another program claimed, from the file's time."""
    digits = claimed.rpartition(CLAIM)[2]
    try:
        with Folder(folder) as at:
            modified = os.lstat(claimed, dir_fd=at).st_mtime
    except FileNotFoundError:
        return 0.0
    try:
        named = float(int(digits, 16))
    except ValueError:
        return modified
    # Another program's digits are random; ours agree with the modification time that we have set.
    return named if abs(named - modified) < 2 * _FRESH else modified


def claims(folder: str) -> list[str]:
    """Names of the claimed files, oldest nudge first."""
    return sorted(name for name in listed(folder) if CLAIM in name)


def put_back(folder: str, claimed: str) -> bool:
    """Let a claimed nudge wait again; False when its claim is gone."""
    try:
        rename(folder, claimed, claimed.partition(CLAIM)[0])
    except FileNotFoundError:
        return False
    return True


def drop(folder: str, name: str) -> bool:
    """Remove a file of the queue; False when somebody else did."""
    try:
        with Folder(folder) as at:
            os.unlink(name, dir_fd=at)
    except FileNotFoundError:
        return False
    except OSError:  # a folder
        _move(folder, name, MALFORMED)
    return True


def acknowledge(folder: str, taken: list[tuple[str, dict[str, Any]]], **more: str) -> None:
    """Claimed nudges have been handed over: note it, and out of the queue with them.

    Where it cannot be noted (a full disk) they leave the queue all the same: heard without a receipt is better than
    heard twice.

    Raises:
        OSError: it could not be noted.
    """
    try:
        log_all(folder, "drained", taken, **more)
    finally:
        finish_all(folder, [claimed for claimed, _ in taken])


def finish(folder: str, claimed: str) -> None:
    """A claimed nudge has been handed over: out of the queue with it."""
    finish_all(folder, [claimed])


def finish_all(folder: str, taken: list[str]) -> None:
    """Claimed nudges have been handed over: out of the queue with them.

    By a rename: to remove a file that was synced costs milliseconds on a busy disk, and the agent waits for us.
    ``clear_finished`` removes it later.
    """
    left = taken[::-1]
    try:
        with Folder(folder) as at:
            done = _subfolder(at, DONE)
            try:
                while left:
                    _move_into(at, left[-1], done)
                    left.pop()
            finally:
                os.close(done)
    except OSError:  # a full disk has no room for the folder
        for claimed in left:
            drop(folder, claimed)


def clear_finished(folder: str) -> None:
    """Remove what was handed over."""
    try:
        with Folder(folder) as at:
            if not _stands(at, DONE):
                return
            done = _subfolder(at, DONE)
    except FileNotFoundError:
        return
    try:
        for name in os.listdir(done):
            try:
                os.unlink(name, dir_fd=done)
            except OSError:  # somebody was quicker, or it is a folder: none of ours
                pass
    finally:
        os.close(done)


def dead_letter(folder: str, name: str, nudge: dict[str, Any], reason: str) -> bool:
    """Move a nudge that will not be delivered to the dead-letter folder, and say why; False when it was gone."""
    try:
        with Folder(folder) as at:
            if not _stands(at, name):
                return False
    except FileNotFoundError:
        return False
    _move(folder, name, DEAD)
    log(folder, "undelivered", name, nudge, reason)
    return True


def count_dropped(folder: str, number: int = 1) -> None:
    """Remember that so many nudges had to make room, for the next drain to say."""
    _append(folder, DROPPED, b"." * number)


def take_dropped(folder: str) -> int:
    """How many had to make room since this was last asked."""
    taken = f"{DROPPED}.{os.getpid()}"
    try:
        with Folder(folder) as at:
            os.rename(DROPPED, taken, src_dir_fd=at, dst_dir_fd=at)
            status = os.lstat(taken, dir_fd=at)
            if status.st_mode & _KIND != _REGULAR:
                return 0
            os.unlink(taken, dir_fd=at)
    except FileNotFoundError:
        return 0
    return min(status.st_size, 1_000_000)


def log(folder: str, stage: str, name: str, nudge: dict[str, Any], reason: str = "", **more: str) -> None:
    """Add one fact to the ledger."""
    log_all(folder, stage, [(name, nudge)], reason, **more)


def log_all(
    folder: str, stage: str, entries: Iterable[tuple[str, dict[str, Any]]], reason: str = "", **more: str
) -> None:
    """Add the same fact about several nudges to the ledger, with one write."""
    lines = "".join(f"\n{_line(stage, name, nudge, reason, more)}\n" for name, nudge in entries)
    _append(folder, LEDGER, lines.encode())


def _line(stage: str, name: str, nudge: dict[str, Any], reason: str, more: dict[str, str]) -> str:
    fields: dict[str, object] = {"t": time.time_ns(), "stage": stage, "file": name.partition(CLAIM)[0]}
    for key in ("sender", "kind", "thread_id", "message", "priority", "run", "tries"):
        if nudge.get(key):
            fields[key] = nudge[key]
    if reason:
        fields["reason"] = reason
    fields.update((key, value) for key, value in more.items() if value)
    pairs = (f"{quote(key)}:{value if type(value) is int else quote(str(value))}" for key, value in fields.items())
    return f"{{{','.join(pairs)}}}"


def in_ledger(folder: str, name: str, stage: str) -> bool:
    """Whether the ledger says that of a file (only asked about claims whose owner died)."""
    return ledger_holds(folder, f'"stage":{quote(stage)},"file":{quote(name.partition(CLAIM)[0])}')


def ledger_holds(folder: str, text: str) -> bool:
    """Whether a line of the ledger has that text in it."""
    wanted = text.encode()
    try:
        with Folder(folder) as at:
            if not _stands(at, LEDGER):
                return False
            file = _file(at, LEDGER, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        place, before = max(0, os.fstat(file).st_size - LEDGER_TAIL), b""
        while part := os.pread(file, 1 << 20, place):
            if wanted in before + part:
                return True
            place, before = place + len(part), part[-len(wanted) :]
    finally:
        os.close(file)
    return False


class Locked:
    """The queue's lock for as long as ``with`` lasts; ``held`` is False when it could not be had in time.

    A dead holder's lock is free at once (it is the kernel's), and a hung one is not waited for beyond ``wait`` seconds.
    """

    def __init__(self, folder: str, wait: float = 0.2, name: str = LOCK) -> None:
        self._folder, self._name, self._wait, self._file = folder, name, wait, -1
        self.held = False

    def __enter__(self) -> Locked:
        import fcntl

        with Folder(self._folder) as at:
            self._file = _file(at, self._name, os.O_RDWR)
        deadline = time.monotonic() + self._wait
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.held = True
                return self
            except OSError:
                if time.monotonic() >= deadline:
                    return self
                time.sleep(0.002)

    def __exit__(self, *_: object) -> None:
        os.close(self._file)


def recover(folder: str, now: float, delivered: Callable[[dict[str, Any]], bool] | None = None) -> None:
    """Deal with claims whose owner must be dead: delivered ones are cleared away, others wait again, once.

    Args:
        folder: the queue.
        now: wall clock.
        delivered: ``delivered(nudge) -> bool``, whether the agent has it although nobody said so; None: unknown.
    """
    for claimed in claims(folder):
        if now - claimed_at(folder, claimed) < STALE:
            continue
        nudge = read(folder, claimed)
        if nudge is None:
            continue
        if in_ledger(folder, claimed, "drained"):
            finish(folder, claimed)
        elif delivered is not None and delivered(nudge):
            log(folder, "drained", claimed, nudge, "found in the transcript after its carrier died")
            finish(folder, claimed)
        elif in_ledger(folder, claimed, "put-back"):
            dead_letter(folder, claimed, nudge, "two carriers died with it")
        elif put_back(folder, claimed):
            log(folder, "put-back", claimed, nudge, "its carrier died")


def expire(folder: str, now: float) -> None:
    """Bury what has expired, although nobody drains; its sender is told at once instead of at some later drain."""
    for name in waiting(folder):
        nudge = read(folder, name)
        if nudge is not None:
            _bury_expired(folder, name, nudge, now)


def _bury_expired(folder: str, name: str, nudge: dict[str, Any], now: float) -> bool:
    expires = instant(nudge.get("expires_at"))
    if not expires or expires > now:
        return False
    dead_letter(folder, name, nudge, "expired before the agent took a step")
    return True


def claim_due(folder: str, now: float, room: int = 1 << 30, run: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Claim what may be delivered now, oldest first.

    Args:
        folder: the queue.
        now: wall clock.
        room: how many characters there are; the first nudge is taken however long it is, later ones must fit.
        run: the run that drains; a nudge that names another one was meant for an earlier polecat of this session.

    Returns:
        Pairs of claimed name and nudge. Expired ones go to the dead-letter folder, those of later stay.
    """
    taken: list[tuple[str, dict[str, Any]]] = []
    try:
        with Folder(folder) as at:
            for name in sorted(name for name in os.listdir(at) if name.endswith(SUFFIX)):
                nudge, modified = _read(at, folder, name)
                if nudge is None:
                    continue
                if _bury_expired(folder, name, nudge, now):
                    continue
                if run and nudge.get("run", run) != run:
                    dead_letter(folder, name, nudge, f"meant for the run {nudge['run']}, which has ended")
                    continue
                if instant(nudge.get("deliver_after")) > now:
                    continue
                text = nudge["message"]
                # The client counts UTF-16 units.
                size = len(text) + (0 if text.isascii() else sum(char > "\uffff" for char in text)) + _FRAME
                if taken and size > room:
                    break
                claimed = _take(at, name, now, modified)
                if claimed:
                    taken.append((claimed, nudge))
                    room -= size
    except FileNotFoundError:
        pass  # no queue, or none any more
    return taken
