"""Hand over what waits in the nudge queue, in the form the client passes on to the model."""

import os
import time

import message_format
import queue_files

# The client passes 10,000 characters on to the model and turns more into a file with a preview.
ROOM = 9_400
# Only a reason to go on reaches the model here.
STOPPING = ("Stop", "AfterAgent")


def deliver(event, payload, queue, spool, give=None, call="", still=None):
    """Hand over what is due, as ``take`` does; at the end of a turn once for each."""
    fields = parsed(payload)
    if event in STOPPING and not may_continue(fields, spool):
        return
    if take(queue, fields, event, give, call, still) and event in STOPPING:
        remember_turn(fields, spool)


def take(queue, fields, event, give=None, call="", still=None, words=message_format.compose):
    """Claim what is due, hand it over, then acknowledge it: in this order, so that a carrier that is killed half-way
    leaves a claim behind that somebody puts back; and under one lock, so that parallel ones keep the order.

    Args:
        queue: the queue's folder.
        fields: the event's own, for the ledger.
        event: its name.
        give: ``give(event, text)`` hands over and raises when it cannot; None prints what a client expects of a hook.
        call: the mark under which the ledger says beforehand what is offered, for a carrier that cannot know whether
            its answer is used; empty for none.
        still: asked under the lock whether anybody waits for it yet; None: yes.
        words: makes the text of the nudges and the number of dropped ones.

    Returns:
        Whether there was anything.
    """
    now = time.time()
    give = give or hand_over
    transcript = str(fields.get("transcript_path") or "")
    session, tool = str(fields.get("session_id") or ""), call or str(fields.get("tool_use_id") or "")
    facts = {"event": event, "session": session, "transcript": transcript, "tool_use_id": tool}
    with queue_files.Locked(queue) as lock:
        if not lock.held or (still and not still()):
            return False
        queue_files.recover(queue, now, lambda nudge: message_format.in_transcript(transcript, nudge))
        taken = queue_files.claim_due(queue, now, ROOM, own_run())
        if not taken:
            return False
        dropped = queue_files.take_dropped(queue)
        try:
            text = words([nudge for _, nudge in taken], dropped)
            if call:
                queue_files.log_all(queue, "offered", taken, **facts)
            give(event, text)
        except BaseException:
            for claimed, _ in taken:
                queue_files.put_back(queue, claimed)
            if dropped:
                queue_files.count_dropped(queue, dropped)
            raise
        queue_files.acknowledge(queue, taken, **facts)
    return True


def hand_over(event, text):
    """An idle client is woken by stderr and the exit code; any other reads one JSON object."""
    if event == "Idle":
        print_whole(text, 2)
    else:
        print_whole(output(event, text), 1)


def own_run():
    """The run that this polecat is; what was meant for an earlier one of its name is not for it."""
    return os.environ.get("GT_WITNESS_GROUP", "").rpartition("/")[2]


def parsed(payload):
    """The client's JSON; nothing of it when it is cut or no object."""
    try:
        fields = queue_files.parse(payload)
    except Exception:
        return {}
    return fields if isinstance(fields, dict) else {}


def output(event, text):
    """The one JSON object."""
    if event in STOPPING:
        return f'{{"decision":"block","reason":{queue_files.quote(text)}}}'
    name, quoted = queue_files.quote(event), queue_files.quote(text)
    return f'{{"hookSpecificOutput":{{"hookEventName":{name},"additionalContext":{quoted}}}}}'


def print_whole(text, file):
    """All of it, past any buffer."""
    data = text.encode() + b"\n"
    while data:
        data = data[os.write(file, data) :]


# -- once per turn -----------------------------------------------------------------------------------------------------


def may_continue(fields, spool):
    """Whether a Stop may be turned into going on: once per user's turn, and never while it is one already."""
    if not fields or fields.get("stop_hook_active"):
        return False
    try:
        with open(f"{spool}/stopped", encoding="utf-8", opener=private) as file:
            return file.read(4096) != turn(fields)
    except (OSError, ValueError):
        return True


def remember_turn(fields, spool):
    with open(f"{spool}/stopped", "w", encoding="utf-8", opener=private) as file:
        file.write(turn(fields))


def turn(fields):
    """What names the user's turn; without a prompt id each Stop that is not a continuation counts as one."""
    prompt = fields.get("prompt_id") or fields.get("turn_id")
    return f"{fields.get('session_id')} {prompt}" if prompt else f"{time.time_ns()}"


def private(path, flags):
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
