"""Becoming the real ``gt``: the next one on PATH.

Gas Town calls ``gt`` in every hook of every agent, and each millisecond here is paid each time. So this module imports
nothing that the interpreter has not loaded already.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` is made of, without its enums
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

NAME = "gt"
# What a start script of ours holds: pip's and pipx's name the module, a person's wrapper names the program.
_OURS = (b"witness.cli", b"gt-witness")
# A start script has some hundred bytes; Gas Town's program has many megabytes and need not be read.
_SCRIPT_BYTES = 8192
# Parts of the path that Graphite's packages are installed under; the longer names stand in its start scripts too.
_GRAPHITE = frozenset(["graphite", "graphite-cli", "@withgraphite"])
_GRAPHITE_SCRIPT = (b"graphite-cli", b"withgraphite")


def find_real_gt(environ: Mapping[str, str] | None = None, *, any_other: bool = False) -> str:
    """The first ``gt`` on PATH that is not this program, under whatever name or link it was started.

    Args:
        environ: where PATH is read; the process's own environment when None.
        any_other: Graphite's program of that name counts too. It knows nothing of polecats, so it stands in for Gas
            Town's nowhere; what is no command of ours may still be meant for it.

    Returns:
        Its path; empty when there is none.
    """
    path = (os.environ if environ is None else environ).get("PATH", os.defpath)
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder or ".", NAME)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK) and not _is_ours(candidate):
            if any_other or not is_graphite(candidate):
                return candidate
    return ""


def is_graphite(candidate: str) -> bool:
    """Whether a ``gt`` is Graphite's: by where it is installed, or by what its start script names."""
    if not _GRAPHITE.isdisjoint(os.path.realpath(candidate).lower().split(os.sep)):
        return True
    head = _head(candidate)
    return head.startswith(b"#!") and any(name in head for name in _GRAPHITE_SCRIPT)


def _is_ours(candidate: str) -> bool:
    try:
        if sys.argv and os.path.samefile(candidate, sys.argv[0]):
            return True
    except OSError:
        pass  # started by `python -m`: there is no start script to compare with
    head = _head(candidate)
    # A wrapper that leads back to us would hand over in a circle for ever.
    return head.startswith(b"#!") and any(mark in head for mark in _OURS)


def _head(candidate: str) -> bytes:
    try:
        with open(candidate, "rb") as file:
            return file.read(_SCRIPT_BYTES)
    except OSError:
        return b""


def hand_over(real: str, args: Sequence[str]) -> NoReturn:
    """Become the real ``gt``: same process, arguments, environment, streams; so its exit and its signals are its own.

    Ends the process with 1 and one line when it cannot be started.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores these, and what is ignored stays so in the next program
        if hasattr(_signal, name):
            _signal.signal(getattr(_signal, name), _signal.SIG_DFL)
    try:
        os.execve(real, [NAME, *args], given_environment())  # noqa: S606 - no shell is wanted
    except OSError as error:
        sys.stderr.write(f"gt: {real} cannot be started: {error.strerror}\n")
        sys.exit(1)


def given_environment() -> dict[str, str]:
    """Our environment without what Python itself put there: under the C locale it sets LC_CTYPE."""
    environment = dict(os.environ)
    if "LC_CTYPE" in environment:
        try:
            with open("/proc/self/environ", "rb") as file:
                given = file.read().split(b"\0")
        except OSError:
            return environment
        if not any(entry.startswith(b"LC_CTYPE=") for entry in given):
            del environment["LC_CTYPE"]
    return environment
