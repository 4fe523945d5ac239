"""What the agent's client runs at each event: record it, wake the sidecars, hand over what waits for the agent.

Run as ``python -S -I gt_hook.py EVENT`` with the client's JSON on stdin. Outside of a polecat it does nothing. It
prints one JSON object or nothing at all, and ends with 0 whatever happens to us: a fault of ours is a line in a log,
never a fault of the agent. (``gt_hook.py Idle`` waits beside an idle agent and ends with 2 to wake it; see gt_idle.py.)

Each millisecond here is paid at each tool call of each agent. So this file only reads and calls; the rest stands in
modules that the interpreter has compiled once.
"""

import _signal
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
# In a checkout hooks/ stands beside witness/; in a wheel it stands in witness/_data/.
for _WITNESS in (f"{_HERE}/../witness", f"{_HERE}/../.."):
    if os.path.exists(f"{_WITNESS}/events/spool_writer.py"):
        break
MODULES = [f"{_WITNESS}/events", f"{_WITNESS}/delivery"]
# Events after which the client takes additional context for the model. At Stop (AfterAgent with Gemini CLI) it is the
# reason to go on.
DELIVERING = (
    "PostToolUse",
    "PostToolUseFailure",
    "UserPromptSubmit",
    "SessionStart",
    "Stop",
    "AfterTool",
    "BeforeAgent",
    "AfterAgent",
)
# Only told to the looker: clients that do not say how long a call took have to say when it begins.
BEGINNING = ("PreToolUse", "BeforeTool")
# After these the agent may wait for a look at what the call did to the files.
COMPLETED = ("PostToolUse", "PostToolUseFailure", "AfterTool")
# Events beside which a watch of an idle agent may begin; every other one of the main agent ends it.
RESTING = ("SessionStart", "Stop", "AfterAgent")
# A client that does not end its input, a hung file system: the agent waits no longer than this for us.
_LIMIT = 3.0
_CHUNK = 1 << 20
# The client writes its JSON in one go: after so long a silence it has said all, if what it said is whole.
_PAUSE = 0.1


class _Late(Exception):
    pass


def _late(*_):
    raise _Late


def read_input(limit):
    """The client's JSON and whether its end is missing. What exceeds the limit is read and forgotten."""
    import select
    import time

    parts, size, more, pause = [], 0, 0, _LIMIT
    end = time.monotonic() + _LIMIT
    ready = select.poll()
    ready.register(0, select.POLLIN | select.POLLHUP | select.POLLERR)
    while (left := end - time.monotonic()) > 0:
        if not ready.poll(1000 * min(left, pause)):
            # A client that leaves its pipe open is not waited for when it has said all.
            if parts and is_whole(b"".join(parts)):
                break
            pause = _LIMIT
            continue
        try:
            data = os.read(0, _CHUNK)
        except BlockingIOError:  # another reader of the same pipe was quicker
            continue
        if not data:
            break
        if size < limit:
            parts.append(data)
            size += len(data)
        else:
            more = 1
        pause = _PAUSE
    else:
        more = 1
    payload = b"".join(parts)
    return payload[:limit], bool(more or size > limit)


def is_whole(payload):
    """Whether it is one JSON object from its beginning to its end."""
    if not payload.rstrip().endswith(b"}"):
        return False
    import queue_files

    try:
        return isinstance(queue_files.parse(payload), dict)
    except Exception:
        return False


def of_subagent(payload, parse):
    """Whether the event is of a subagent: what waits is meant for the main agent, which would never see it."""
    if b'"agent_id"' not in payload:
        return False
    try:
        return bool(parse(payload).get("agent_id"))
    except Exception:
        # Cut: the client writes the id before the tool's input and output.
        return b'"agent_id"' in payload.partition(b'"tool_input"')[0]


def note_fault(spool, event, error):
    """One line in the run's log of hooks."""
    try:
        import time

        text = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {event}: {type(error).__name__}: {error}\n"
        path = f"{os.path.dirname(spool.rstrip('/'))}/logs/hooks.log"
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        if os.path.exists(path) and os.path.getsize(path) > 1 << 20:
            os.replace(path, path + ".1")
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        os.write(file, text.encode("utf-8", "replace"))
        os.close(file)
    except Exception:
        pass


def handle(event, spool):
    """Record, wake, wait, drain."""
    sys.path[:0] = MODULES
    import spool_writer

    if not spool_writer.is_own_client(spool, os.getppid()):
        return
    _signal.signal(_signal.SIGALRM, _late)
    payload, cut = read_input(spool_writer.PAYLOAD_LIMIT)
    if event in BEGINNING:
        spool_writer.tell_looker(spool, payload, cut)
        return
    queue = os.environ.get("GT_WITNESS_QUEUE", "")
    delivers = bool(queue) and event in DELIVERING
    if delivers and b'"agent_id"' in payload:
        import queue_files

        delivers = not of_subagent(payload, queue_files.parse)
    try:
        _signal.setitimer(_signal.ITIMER_REAL, _LIMIT)
        look = wait_seconds() if event in COMPLETED else 0
        if os.path.exists(f"{spool}/mod.json"):
            sys.path.insert(0, _HERE)
            import gt_calls

            gt_calls.after_mod(spool, queue, payload, cut, look)
        else:
            spool_writer.record_event(spool, payload, cut, look)
    except OSError as error:
        # Nothing recorded, yet what waits can still be delivered.
        note_fault(spool, event, error)
    if delivers and event not in RESTING:
        spool_writer.begin_work(spool)
    spool_writer.wake(spool, wait_seconds() if delivers else 0)
    # From here on nothing waits, and a nudge must not be caught between being printed and being acknowledged.
    _signal.setitimer(_signal.ITIMER_REAL, 0)
    if delivers and spool_writer.has_messages(queue):
        sys.path.insert(0, _HERE)
        import gt_deliver

        gt_deliver.deliver(event, payload, queue, spool)


def wait_seconds():
    try:
        return min(max(int(os.environ.get("GT_WITNESS_HOOK_WAIT", "100")), 0), 2000) / 1000
    except ValueError:
        return 0.1


def followed_spool():
    """The spool of a polecat that Gas Town has started and we follow. It bears no variable of ours, so the Witness
    leaves a file under its session's name; without one this session is nobody's."""
    session = os.environ.get("GT_SESSION", "")
    town = os.environ.get("GT_TOWN_ROOT") or os.environ.get("GT_ROOT")
    if not session or not town or "/" in session:
        return ""
    try:
        file = os.open(f"{town}/.runtime/witness/followed/{session}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        spool, queue, wait = os.read(file, 16384).decode().split("\n")[:3]
    except (OSError, ValueError):
        return ""
    os.environ.update(GT_WITNESS_SPOOL=spool, GT_WITNESS_QUEUE=queue, GT_WITNESS_HOOK_WAIT=wait)
    return spool


def main():
    spool = os.environ.get("GT_WITNESS_SPOOL") or followed_spool()
    if not spool or len(sys.argv) != 2:
        return 0
    event = sys.argv[1]
    try:
        if event == "Idle":
            sys.path[:0] = [*MODULES, _HERE]
            import gt_idle
            import spool_writer

            if spool_writer.is_own_client(spool, os.getppid()):
                return gt_idle.watch(spool, os.environ.get("GT_WITNESS_QUEUE", ""))
            return 0
        handle(event, spool)
    except BaseException as error:
        if os.path.isdir(spool):  # else the run has ended, and its agent is about to
            note_fault(spool, event, error)
    return 0


if __name__ == "__main__":
    code = main()
    # Straight out: there is nothing to tear down, and the agent waits.
    os._exit(code)
