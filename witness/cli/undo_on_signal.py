"""A command that is told to end while it is at work undoes what it has begun."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

# What `timeout`, a shutdown and a closed terminal send; Ctrl-C is an exception of Python's own.
_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def _leave(number: int, _: FrameType | None) -> NoReturn:
    # The clean-up takes a moment, and is not to be cut off by the same signal coming twice.
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


@contextmanager
def undone_when_told_to_end() -> Iterator[None]:
    """Turn TERM and HUP into an exception here, so that what was started half-way is ended as after Ctrl-C."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # nohup
            signal.signal(number, _leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
