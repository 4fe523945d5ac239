"""One channel for each call, where a mod answers and this hook stands behind it (see gt_mod.py)."""

import os

import gt_deliver
import offers
import queue_files
import spool_writer

# Held while an event is recorded, by the mod's server and by a hook that runs in its place.
LOCK = "mod.lock"
# How much of the spool's end is searched for an event of a moment ago.
_RECENT = 4 << 20


def mark(fields):
    """What names a call or a turn's end, the same for every channel that may carry it; empty when nothing does."""
    tool = fields.get("tool_use_id")
    if tool:
        return str(tool)
    prompt, event = fields.get("prompt_id"), fields.get("hook_event_name")
    return f"{event}:{prompt}:{int(bool(fields.get('stop_hook_active')))}" if prompt and event else ""


def is_recorded(spool, fields):
    """Whether that event stands in the spool's end already."""
    wanted = str(fields.get("tool_use_id") or fields.get("prompt_id") or "").encode()
    if not wanted:
        return False
    try:
        file = os.open(f"{spool}/{spool_writer.CURRENT}", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    with os.fdopen(file, "rb") as lines:
        lines.seek(max(0, os.fstat(file).st_size - _RECENT))
        for line in lines:
            event = line.partition(b',"e":')[2]
            if wanted in event and same(gt_deliver.parsed(event.rstrip()[:-1]), fields):
                return True
    return False


def same(one, other):
    """Whether two events are the same happening, told by two channels."""
    name = "hook_event_name"
    return bool(mark(one)) and mark(one) == mark(other) and one.get(name) == other.get(name)


def after_mod(spool, queue, payload, cut, look):
    """This hook runs because the mod had no answer to this very call. What its server has recorded is not recorded
    again, and what it has offered waits again: nobody has heard it."""
    fields = gt_deliver.parsed(payload)
    with queue_files.Locked(spool, name=LOCK):
        if not is_recorded(spool, fields):
            spool_writer.record_event(spool, payload, cut, look)
    call = mark(fields)
    if call and queue and os.path.isdir(queue):
        with queue_files.Locked(queue):
            offers.take_back(queue, call, "the client did not wait for the answer")
