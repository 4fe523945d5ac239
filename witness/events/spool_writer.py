"""Writing into the event spool and waking its readers; no import beyond the interpreter's own core.

The hooks load this file by its path, once per tool call of the agent, so it stays free of everything that costs
milliseconds: no json, no re, no pathlib, no other module of ours.

A record is one line that begins and ends with a newline, ``\\n{"t":…,"p":…,"cut":0,"e":…}\\n``: a line that a full
disk tore spoils only itself. The payload is the client's own JSON, not parsed here.

Where somebody has looked at what the call did to the files, the record is of schema 2 and says so before the payload:
``…"cut":0,"v":2,"look":{…},"e":…``. ``"look":null`` says that the look takes longer than the agent may wait; what is
seen then follows in a record of its own, ``…"v":2,"of":"ID","look":{…},"e":null``.
"""

from __future__ import annotations

import _socket
import os
import time

CURRENT = "events.jsonl"
# The socket of the looker, which watches the agent's work tree.
LOOKER = "effects.look"
# The payload of one event; the client's own are far smaller unless a tool returned a whole file.
PAYLOAD_LIMIT = 1 << 20
ROTATE_AT = 16 << 20
# What a sidecar sends while it judges, and how long it is waited for then.
AT_WORK = b"+"
WORK_LIMIT = 1.0
# Rotated files that stay; older ones are removed, so that a night of large outputs cannot fill the disk.
KEPT = 8

# Neither through a link nor into a FIFO that nobody reads: the spool lies where the agent can put either.
_SAFE = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_WRITE = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _SAFE


def record_event(folder: str, payload: bytes, cut: bool = False, wait: float = 0.0) -> None:
    """Append one event with what the call did to the files, where somebody watches them.

    Args:
        folder: the spool; it must exist.
        payload: the client's JSON.
        cut: it is incomplete already.
        wait: seconds that the agent may wait for the look; 0 for events that are no completed call.

    Raises:
        OSError: it could not be written, or only in part.
    """
    cut, payload = cut or len(payload) > PAYLOAD_LIMIT, payload[:PAYLOAD_LIMIT]
    now = time.time_ns()
    look = ask_looker(folder, b"%d-%d %d" % (now, os.getpid(), cut), payload, wait)
    append_record(folder, payload, cut, look=look, now=now)


def tell_looker(folder: str, payload: bytes, cut: bool = False) -> None:
    """Tell the looker of an event that is not recorded; most of the time there is nobody."""
    ask_looker(folder, b"%d-%d %d" % (time.time_ns(), os.getpid(), cut), payload, 0)


def append_record(
    folder: str, payload: bytes, cut: bool = False, look: bytes = b"", of: bytes = b"", now: int = 0
) -> None:
    """Append one event with one write.

    Args:
        folder: the spool; it must exist.
        payload: the client's JSON; longer ones are cut at PAYLOAD_LIMIT and marked.
        cut: mark it as cut although it is short (the client did not finish it).
        look: what was seen of it as one line of JSON, empty where nobody looked.
        of: id of the earlier event that ``look`` belongs to; the payload is then left out.
        now: its time in nanoseconds, 0 for now.

    Raises:
        OSError: it could not be written, or only in part.
    """
    if len(payload) > PAYLOAD_LIMIT:
        payload, cut = payload[:PAYLOAD_LIMIT], True
    payload = payload.strip().replace(b"\n", b" ").replace(b"\r", b" ")
    seen = b',"v":2%b,"look":%b' % (b',"of":"%b"' % of if of else b"", look) if look else b""
    head = b'\n{"t":%d,"p":%d,"cut":%d%b' % (now or time.time_ns(), os.getpid(), cut, seen)
    record = b'%b,"e":%b}\n' % (head, payload or b"null")
    at = open_own(folder)
    try:
        file = os.open(CURRENT, _WRITE, 0o600, dir_fd=at)
        try:
            written = os.write(file, record)
            if os.fstat(file).st_size > ROTATE_AT:
                rotate(at, file)
        finally:
            os.close(file)
    finally:
        os.close(at)
    if written < len(record):
        raise OSError(28, "the disk is full: the event is incomplete")


def open_own(folder: str) -> int:
    """A descriptor of a folder that is ours, to go by instead of its path: what is put in its place later is not used.

    Raises:
        OSError: it is a link, no folder, or another user's.
    """
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if os.fstat(at).st_uid != os.geteuid():
        os.close(at)
        raise PermissionError(1, "the folder belongs to another user", folder)
    return at


def ask_looker(folder: str, head: bytes, payload: bytes, wait: float) -> bytes:
    """What was seen of a call; tells the looker of it in any case.

    Args:
        folder: the spool, which becomes the working directory (a socket's path must be short).
        head: the event's id and whether it is cut.
        payload: the client's JSON.
        wait: seconds to wait for the answer; 0 only tells.

    Returns:
        One line of JSON; ``null`` when the look goes on; empty when nobody looks, or nothing can be said.
    """
    peer = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        os.chdir(folder)
        peer.settimeout(wait or 0.05)
        try:
            peer.connect(LOOKER)
        except OSError:  # nobody looks; most of the time there is no such socket
            return b""
        answer = b""
        try:
            peer.sendall(b"%b %d\n%b" % (head, len(payload), payload))
            while wait and not answer.endswith(b"\n"):
                data = peer.recv(65536)
                if not data:
                    return b""
                answer += data
            if wait:
                peer.send(b"k")  # without it what was seen would be recorded once more
        except OSError:
            return b"null" if wait else b""
        return answer.strip()
    finally:
        peer.close()


def rotate(at: int, file: int) -> None:
    """Put the present file of a spool aside, unless another hook has done so or is about it.

    Args:
        at: descriptor of the spool.
        file: descriptor of what was the present file when the caller opened it.
    """
    import fcntl

    try:
        # Between the look and the rename another hook could rename too, and we would put its fresh file aside.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.stat(CURRENT, dir_fd=at).st_ino != os.fstat(file).st_ino:
            return  # another hook was quicker
    except (BlockingIOError, FileNotFoundError):
        return  # it is just about it, or nobody has written since
    os.rename(CURRENT, f"events.{time.time_ns()}.jsonl", src_dir_fd=at, dst_dir_fd=at)
    rotated = sorted(name for name in os.listdir(at) if name.startswith("events.") and name != CURRENT)
    for name in rotated[:-KEPT]:
        os.unlink(name, dir_fd=at)


def wake(folder: str, wait: float) -> None:
    """Tell every listening sidecar that there is something to read, and await the verdict of those that are asked.

    Sockets named ``*.wake`` are connected to and left; those named ``*.ask`` answer one byte when they have judged all
    that stood in the spool. A socket whose owner is dead refuses at once and costs nothing. One that says that it is at
    work is alive and will answer: a busy machine or a slow disk may take longer than the wait, and a verdict that comes
    a step late is worth less than a fraction of a second.

    Args:
        folder: the spool, which becomes the working directory (a socket's path must be short).
        wait: seconds for all answers together; 0 waits for nobody.
    """
    os.chdir(folder)
    asked = []
    for name in os.listdir("."):
        if not name.endswith((".ask", ".wake")):
            continue
        peer = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        peer.settimeout(0)
        try:
            peer.connect(name)
        except OSError:  # nobody listens, or its backlog is full: then it is awake already
            peer.close()
            continue
        if name.endswith(".ask"):
            asked.append(peer)
        else:
            peer.close()
    begun = time.monotonic()
    for peer in asked:
        deadline = begun + wait
        while (remaining := deadline - time.monotonic()) > 0:
            peer.settimeout(remaining)
            try:
                if peer.recv(1) != AT_WORK:
                    break  # judged, or gone
            except OSError:
                break
            deadline = begun + max(wait, WORK_LIMIT) if wait else deadline
        peer.close()


def has_messages(queue: str) -> bool:
    """Whether the nudge queue holds anything at all to look at: waiting, or claimed by somebody who may be dead."""
    try:
        names = os.listdir(queue)
    except OSError:
        return False
    return any(name.endswith(".json") or ".claimed." in name for name in names)


# -- whose hook this is --------------------------------------------------------------------------------------------


def is_own_client(spool: str, client: int) -> bool:
    """Whether the polecat's own client runs this hook, rather than one that the agent has started below it.

    A nested client inherits the polecat's environment, and where the hooks are installed for the whole user it runs
    them too. The first client that calls owns the spool for as long as it lives.

    Args:
        spool: the spool.
        client: the hook's parent.
    """
    at = open_own(spool)
    try:
        try:
            file = os.open("client", os.O_RDONLY | _SAFE, dir_fd=at)
        except FileNotFoundError:
            pass
        else:
            owner = os.read(file, 100)
            os.close(file)
            number = owner.partition(b" ")[0]
            if number == b"%d" % client:
                return True
            if number.isdigit() and owner == _identity(int(number)):
                return False
        temporary = f"client.{os.getpid()}"
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | _SAFE, 0o600, dir_fd=at)
        os.write(file, _identity(client))
        os.close(file)
        os.rename(temporary, "client", src_dir_fd=at, dst_dir_fd=at)
        return True
    finally:
        os.close(at)


def _identity(pid: int) -> bytes:
    """A process, told apart from a later one of the same number where the kernel says when it began."""
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        if os.path.exists("/proc/self/stat"):
            return b"%d gone" % pid
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return b"%d gone" % pid
        except PermissionError:
            pass
        return b"%d" % pid
    fields = os.read(file, 4096).rpartition(b")")[2].split()
    os.close(file)
    return b"%d %b" % (pid, fields[19] if fields[0] not in b"ZX" else b"gone")


def begin_work(spool: str) -> None:
    """The agent is at work: a watch beside its prompt may end."""
    at = open_own(spool)
    try:
        os.unlink("idle", dir_fd=at)
    except FileNotFoundError:
        pass
    finally:
        os.close(at)
