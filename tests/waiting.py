"""Waiting for facts: what is waited for wakes the one who waits, and nobody looks again and again.

Everything that a test makes lies below its ``tmp_path``, the towns' journals and logs included, so that whatever it
waits for shows there as a file that changes, or as a process that ends.
"""

from __future__ import annotations

import itertools
import os
import select
import shlex
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TypeVar

from inotify_simple import INotify, flags

from witness.tmux import Tmux

T = TypeVar("T")

_NEWS = (
    flags.CREATE | flags.DELETE | flags.MODIFY | flags.ATTRIB | flags.CLOSE_WRITE | flags.MOVED_TO | flags.MOVED_FROM
)
_numbers = itertools.count()


class _Place:
    """The folder of the test that runs now; ``conftest.py`` sets it."""

    folder: Path | None = None


def here() -> Path:
    """The folder of the test that runs now.

    Raises:
        AssertionError: it has none: then it must say itself where its facts show.
    """
    assert _Place.folder, "the test has no tmp_path: say where its facts show"
    return _Place.folder


def set_here(folder: Path | None) -> None:
    """Tell whose test's folder is meant from now on."""
    _Place.folder = folder


class Changes:
    """What changes in a folder, all the way down; readable when something has. A context manager."""

    def __init__(self, folder: Path) -> None:
        self._inotify = INotify()
        self._folders: dict[int, str] = {}
        self._watch(str(folder))

    def __enter__(self) -> Changes:
        return self

    def __exit__(self, *_: object) -> None:
        self._inotify.close()

    def fileno(self) -> int:
        return int(self._inotify.fileno())

    def take(self) -> None:
        """Forget what was told, and watch the folders that are new."""
        for event in self._inotify.read(timeout=0):
            if event.mask & flags.ISDIR and event.mask & (flags.CREATE | flags.MOVED_TO):
                self._watch(os.path.join(self._folders[event.wd], event.name))

    def _watch(self, folder: str) -> None:
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            self._folders[self._inotify.add_watch(folder, _NEWS | flags.ONLYDIR)] = folder
            for entry in os.scandir(folder):
                if entry.is_dir(follow_symlinks=False):
                    self._watch(entry.path)


def until(
    fact: Callable[[], T],
    what: object = "",
    seconds: float = 30.0,
    *,
    below: Path | None = None,
    processes: Iterable[int] = (),
    every: float | None = None,
) -> T:
    """Wait until it is so: look once, and again after each change of a file or the end of a process.

    Args:
        fact: what is waited for.
        what: what is said when it does not come.
        seconds: how long it is waited for.
        below: the folder in which it shows; the test's own when None.
        processes: pids whose end is looked at, too.
        every: look each so many seconds as well: for what nobody tells of, as what the process table holds, what a
            foreign client shows, or what only a patrol finds.

    Returns:
        What ``fact`` returned.

    Raises:
        AssertionError: it did not come.
    """
    end = time.monotonic() + seconds
    with ExitStack() as stack:
        changes = None
        if every is None or below or _Place.folder:
            changes = stack.enter_context(Changes(below or here()))
        handles: list[int] = []
        for pid in processes:
            with suppress(ProcessLookupError):
                handles.append(os.pidfd_open(pid))
                stack.callback(os.close, handles[-1])
        while not (found := fact()):
            left = end - time.monotonic()
            assert left > 0, f"waited {seconds:g} s: {what}"
            watched = [*handles, *([changes.fileno()] if changes else [])]
            ready, _, _ = select.select(watched, [], [], left if every is None else min(left, every))
            handles = [each for each in handles if each not in ready]
            if changes:
                changes.take()
    return found


def until_shown(tmux: Tmux, session: str, fact: Callable[[], T], what: object = "", seconds: float = 30.0) -> T:
    """Wait until something shows on a session's screen: looked at after each piece of its output.

    Args:
        tmux: the tmux of the session.
        session: whose active pane it is.
        fact: what is waited for; it looks at the screen.
        what, seconds: as in ``until``.
    """
    output = here() / f".shown-{next(_numbers)}"
    output.touch()
    tmux.run("pipe-pane", "-t", f"={session}:", f"cat >> {shlex.quote(str(output))}")
    return until(fact, what, seconds)


def pass_time(seconds: float) -> None:
    """Let time pass, where a limit of time itself is what is tested."""
    time.sleep(seconds)
