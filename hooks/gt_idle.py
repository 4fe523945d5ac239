"""Wait beside an agent that sits at its prompt, and wake it when something is there for it.

The client starts this in the background as a turn ends (an ``asyncRewake`` hook): as long as it waits nothing happens,
and when it ends with 2 the client begins a turn with what it wrote to stderr. Without the Witness it works too: the
queue's folder itself tells of new files (Linux), else it is looked at every few seconds.
"""

import _signal
import os
import time

import gt_deliver
import queue_files

# Between two looks at what no event tells of: the client's death, a nudge that was for later, a new turn.
TICK = 3.0
# A client that does not know background hooks would wait for this one before it takes a prompt. Older ones are left to
# the Witness, which types.
OLDEST = (2, 1, 120)
# The Stop hook of the same instant comes first, and with it what waits already.
GRACE = 1.0


def watch(spool, queue):
    """Returns the exit code: 2 when there is something to say, 0 when this watch is over."""
    fields = gt_deliver.parsed(read_some())
    # Without a prompt to sit at (claude -p) the client would wait for us at its end, and we for its end.
    if not queue or fields.get("agent_id") or os.environ.get("CLAUDE_CODE_ENTRYPOINT") != "cli":
        return 0
    if client_version(os.environ.get("AI_AGENT", "")) < OLDEST:
        return 0
    mine = f"{spool}/idle"
    client = os.getppid()
    with open(mine, "w", encoding="ascii", opener=gt_deliver.private) as file:
        file.write(str(os.getpid()))
    wait = notifier(queue)
    wait(GRACE)
    while os.getppid() == client and is_mine(mine):
        text = gt_deliver.take(queue, fields, event="Idle") if queue_files.waiting(queue) else ""
        if text:
            os.unlink(mine)
            return 2
        wait(TICK)
    return 0


def client_version(agent):
    """The client's version as it names itself to its hooks, ``claude-code_2-1-197_harness``; () when it does not."""
    parts = agent.split("_")
    if len(parts) < 2 or not all(number.isdigit() for number in parts[1].split("-")):
        return ()
    return tuple(int(number) for number in parts[1].split("-"))


def read_some():
    """The event's JSON; the client ends its input at once."""
    data = b""
    while len(data) < 1 << 20 and (part := os.read(0, 1 << 20)):
        data += part
    return data


def is_mine(path):
    """Whether no event has begun a new turn and no later watch has taken over."""
    try:
        with open(path, encoding="ascii", opener=gt_deliver.private) as file:
            return file.read(64) == str(os.getpid())
    except (OSError, ValueError):
        return False


def notifier(queue):
    """A function that waits until something moves in the queue's folder, or for so many seconds."""
    try:
        import fcntl

        _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGIO])
        folder = os.open(queue, os.O_RDONLY)
        # A writer may create the file first and write it then: only the last of these tells that it is whole.
        moves = fcntl.DN_RENAME | fcntl.DN_CREATE | fcntl.DN_MODIFY
        fcntl.fcntl(folder, fcntl.F_NOTIFY, moves | fcntl.DN_MULTISHOT)
    except (ImportError, AttributeError, OSError):
        return time.sleep
    return lambda seconds: _signal.sigtimedwait([_signal.SIGIO], seconds)
