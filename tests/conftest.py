"""What every test stands on: an environment built from nothing, and a proof that nothing is left behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import waiting
from tests.leftovers import SESSION, end, left_processes, sweep_tmux_sockets, told

# A loaded machine draws examples slowly; that says nothing about what is tested.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

# Whoever starts the tests in the background (a shell's &, nohup) has these ignored, and every child would inherit it.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL),
                          (signal.SIGQUIT, signal.SIG_DFL)):  # fmt: skip
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


# Whoever ends a session early (a time limit, a CI job that is cancelled) gets its fixtures' ends like one who presses
# Ctrl-C. Whatever a worker that was killed has left is found by the controller, at the session's end.
signal.signal(signal.SIGTERM, _interrupt)

_BEGAN: pytest.StashKey[float] = pytest.StashKey()
_KEPT = {
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "CI",
    "PYTHONDONTWRITEBYTECODE",
}


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No inherited keys, no TMUX*, CLAUDE*, ANTHROPIC_* or GT_*: a test says itself what it needs.

    Some of what is tested in this very process changes its directory (a socket's path must be short): it is put back.
    """
    monkeypatch.chdir(Path.cwd())
    for name in list(os.environ):
        if name not in _KEPT and not name.startswith("PYTEST_"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _here(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where the facts show for which the test waits."""
    waiting.set_here(request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None)
    yield
    waiting.set_here(None)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # workers inherit it
        os.environ[SESSION] = f"{os.getpid()}-{time.time_ns()}"


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[_BEGAN] = time.time()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A session that leaves a process behind has failed, whatever its tests say; it is told, and ended."""
    if hasattr(session.config, "workerinput"):
        return  # the others still work
    factory = getattr(session.config, "_tmp_path_factory", None)
    left = left_processes(factory.getbasetemp(), os.environ[SESSION]) if factory else []
    if left:
        lines = [told(process) for process in left]
        session.config.get_terminal_writer().line("\nleft behind:\n  " + "\n  ".join(lines), red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        end(left)
    sweep_tmux_sockets(session.config.stash[_BEGAN])
