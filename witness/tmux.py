"""The only place that runs tmux.

Every call is an argument list on the town's own socket; answers are read by format strings, never from prose. An
answer that does not come is not an answer: ``TmuxTimeoutError`` means that nothing is known, and nobody may conclude
that a session is gone.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from witness.errors import TmuxError, TmuxTimeoutError, TmuxUnusableError

OLDEST = (3, 2)
_TIMEOUT = 10.0
# A listing takes milliseconds. A supervisor does not wait longer for one, and after one that did not come
# asks for nothing at all for a while.
_PATIENCE, _REST = 1.0, 5.0
# What the tmux server, and so every pane, starts from. The agent's real environment comes through a private file that
# the reaper reads: tmux would show it in its argument list, and a server keeps the environment of its first caller.
_SERVER_ENVIRONMENT = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TZ", "USER", "XDG_RUNTIME_DIR")
# tmux prints each of these where no server answers on the socket.
_NO_SERVER = ("no server running", "error connecting to", "server exited", "lost server")
_SEPARATOR = "\x1f"
_PANE_FORMAT = _SEPARATOR.join(
    "#{" + name + "}"
    for name in ("session_name", "pane_id", "pane_pid", "pane_dead", "pane_dead_status", "window_activity", "pid")
)


@dataclass(frozen=True, slots=True)
class Pane:
    """One pane as tmux sees it.

    Args:
        session: name of its session.
        id: tmux's own id, as ``%3``.
        pid: its first process.
        dead: the process has ended and the pane stands on (remain-on-exit).
        status: exit status of a dead pane; None while tmux has not collected it.
        activity: wall-clock second of its last output.
        server: pid of the tmux server.
    """

    session: str
    id: str
    pid: int
    dead: bool
    status: int | None
    activity: int
    server: int

    @property
    def age(self) -> int:
        """A rank within the server: the lower, the older. A session's oldest pane is the one that it was made with."""
        return int(self.id[1:])


def _literal(text: str) -> str:
    # tmux expands formats here: #S is a session's name, and #(…) a command. A run of # before [ it leaves alone.
    return re.sub(r"#+(?![#\[])", lambda run: run[0] * 2, text)


def _exact(session: str) -> str:
    # Without '=', tmux takes a name for a prefix, and gt-Toast would also mean gt-Toast2.
    return f"={session}"


def _target(place: str) -> str:
    # A session is a container: its active pane is whichever a person has opened or chosen there.
    return place if place.startswith("%") else f"{_exact(place)}:"


class Tmux:
    """tmux on one socket.

    What reads or writes a screen takes a ``place``: a pane's id, as ``%3``, or a session, whose active pane is meant.

    Args:
        socket: name of the socket (``tmux -L``).
        directory: value of ``TMUX_TMPDIR``, empty for tmux's own default.
        waits: whether the caller can afford to wait for a server that hangs.
    """

    def __init__(self, socket: str, directory: str = "", *, waits: bool = True) -> None:
        self.socket, self.directory, self._waits = socket, directory, waits
        self._hangs_until = 0.0

    @property
    def place(self) -> tuple[str, str]:
        """What tells one server from another."""
        return self.socket, self.directory

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _SERVER_ENVIRONMENT if name in os.environ}
        kept.setdefault("PATH", os.defpath)
        if self.directory:
            kept["TMUX_TMPDIR"] = self.directory
        return kept

    def run(self, *arguments: str, given: bytes | None = None, timeout: float = _TIMEOUT) -> str:
        """Run one tmux command and return what it printed.

        Args:
            arguments: the command and its arguments.
            given: bytes for its standard input.
            timeout: seconds to wait for the answer.

        Raises:
            TmuxError: tmux said no.
            TmuxTimeoutError: it did not answer in time.
            TmuxUnusableError: there is no tmux.
        """
        if time.monotonic() < self._hangs_until:
            raise TmuxTimeoutError(arguments[0], "not asked: it did not answer a moment ago")
        try:
            # -u: a client without a locale (cron) would print '_' for every character outside ASCII.
            done = subprocess.run(
                ["tmux", "-u", "-L", self.socket, *arguments],
                input=given,
                stdin=subprocess.DEVNULL if given is None else None,
                capture_output=True,
                timeout=timeout,
                env=self._environment(),
                check=False,
                cwd="/",
            )
        except FileNotFoundError as error:
            raise TmuxUnusableError(_ADVICE.format("tmux is not installed")) from error
        except subprocess.TimeoutExpired as error:
            if not self._waits:
                self._hangs_until = time.monotonic() + _REST
            raise TmuxTimeoutError(arguments[0], f"no answer within {timeout:g} s") from error
        if done.returncode != 0:
            message = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
            raise TmuxError(arguments[0], message)
        return done.stdout.decode(errors="replace")

    # -- sessions -----------------------------------------------------------------------------------------------

    def new_session(
        self,
        session: str,
        workdir: str,
        argv: list[str],
        environment: Mapping[str, str],
        size: tuple[int, int],
        outer: Tmux | None = None,
    ) -> Pane:
        """Start a detached session whose first process is ``argv``, without a shell in between.

        The pane stays when its process ends (remain-on-exit), so that a start that fails can be read; see
        ``close_on_exit``.

        Args:
            session: its name.
            workdir: its working directory.
            argv: program and arguments.
            environment: variables of the session; they are visible to every user, so no secrets.
            size: columns and lines.
            outer: the tmux that holds the polecat that we run in. Our server may begin with this session, and as a
                child of ours it would end with that polecat; so the outer server starts it.
        """
        variables = [part for name, value in environment.items() for part in ("-e", f"{name}={value}")]
        arguments = (
            "new-session", "-d", "-P", "-F", _PANE_FORMAT, "-s", session, "-c", _literal(workdir),
            "-x", str(size[0]), "-y", str(size[1]), *variables, "--", *argv,
            ";", "set-option", "-t", _exact(session) + ":", "remain-on-exit", "on",
            ";", "set-option", "-t", _exact(session) + ":", "history-limit", "50000",
        )  # fmt: skip
        if outer is None or outer.place == self.place or not outer.panes():
            return _pane(self.run(*arguments).splitlines()[0])
        bare = ["env", "-i", *(f"{name}={value}" for name, value in self._environment().items())]
        return _pane(outer.run_shell([*bare, "tmux", "-u", "-L", self.socket, *arguments]).splitlines()[0])

    def run_shell(self, argv: list[str], timeout: float = _TIMEOUT) -> str:
        """Have the server itself run a program, wait for it, and return what it printed.

        Raises:
            TmuxError: it ended with another code than 0.
            TmuxTimeoutError: it has not ended in time.
        """
        import tempfile

        # What it prints to tmux, tmux may show in somebody's pane.
        with tempfile.NamedTemporaryFile(prefix="gt-witness-", mode="rb") as output:
            try:
                command = f"{shlex.join(argv)} >{shlex.quote(output.name)} 2>&1"
                self.run("run-shell", _literal(command), timeout=timeout)
            except TmuxTimeoutError:
                raise
            except TmuxError as error:
                message = output.read().decode(errors="replace").strip()
                raise TmuxError(argv[0], message.rpartition("\n")[2] or error.message) from error
            return output.read().decode(errors="replace")

    def close_on_exit(self, session: str) -> None:
        """From now on the session ends together with its first process."""
        self.run("set-option", "-t", _exact(session) + ":", "remain-on-exit", "off")

    def set_environment(self, session: str, name: str, value: str) -> None:
        """Set a variable of the session, for processes that are started in it later."""
        self.run("set-environment", "-t", _exact(session), name, value)

    def variable(self, session: str, name: str) -> str:
        """A variable of the session's environment; empty when it, or the session, is not there."""
        try:
            out = self.run("show-environment", "-t", _exact(session), name)
        except TmuxTimeoutError:
            raise
        except TmuxError:
            return ""
        return out.strip().partition("=")[2]

    def panes(self) -> list[Pane]:
        """Every pane on this socket; none when no server runs.

        Raises:
            TmuxTimeoutError: it could not be found out.
            TmuxError: tmux answered otherwise than expected.
        """
        try:
            out = self.run("list-panes", "-a", "-F", _PANE_FORMAT, timeout=_TIMEOUT if self._waits else _PATIENCE)
        except TmuxTimeoutError:
            raise
        except TmuxError as error:
            if any(text in error.message for text in _NO_SERVER):
                return []
            raise
        return [_pane(line) for line in out.splitlines() if line.count(_SEPARATOR) == _PANE_FORMAT.count(_SEPARATOR)]

    def client_terminals(self) -> list[str]:
        """The terminals that show something of this server; none when nobody is attached or no server runs."""
        try:
            return self.run("list-clients", "-F", "#{client_tty}").split()
        except TmuxError:
            return []

    def has_session(self, session: str) -> bool:
        """Whether a session of exactly that name stands.

        Raises:
            TmuxTimeoutError: it could not be found out.
        """
        return any(pane.session == session for pane in self.panes())

    def kill_session(self, session: str) -> None:
        """End the session; one that is gone already is fine."""
        try:
            self.run("kill-session", "-t", _exact(session))
        except TmuxTimeoutError:
            raise
        except TmuxError as error:
            if "can't find session" not in error.message and not any(text in error.message for text in _NO_SERVER):
                raise

    # -- reading and writing ----------------------------------------------------------------------------------------

    def capture(self, place: str, lines: int) -> str:
        """The last ``lines`` lines of a pane, history included, trailing blank ones dropped."""
        out = self.run("capture-pane", "-p", "-t", _target(place), "-S", f"-{lines}")
        # tmux gives so many lines of history and the whole screen besides.
        return "\n".join(out.rstrip().splitlines()[-lines:])

    def screen(self, place: str) -> str:
        """The visible screen of a pane with its styles, as escape sequences."""
        return self.run("capture-pane", "-p", "-e", "-t", _target(place))

    def screens(self, panes: Sequence[str]) -> dict[str, str]:
        """The visible screens of many panes by one call, as ``screen`` gives them; those that are gone are left out.

        Args:
            panes: their ids, as ``%3``.
        """
        return self._captured(panes, ("-e",))

    def last_lines(self, places: Sequence[str], lines: int) -> dict[str, str]:
        """The last lines of many places by one call, as ``capture`` gives them; those that are gone are left out."""
        shown = self._captured(places, ("-S", f"-{lines}"))
        return {place: "\n".join(text.rstrip().splitlines()[-lines:]) for place, text in shown.items()}

    def _captured(self, places: Sequence[str], options: Sequence[str]) -> dict[str, str]:
        if not places:
            return {}
        mark = f"(gt-witness {os.urandom(16).hex()})"
        arguments = [
            word
            for place in places
            for word in ("capture-pane", "-p", *options, "-t", _target(place), ";", "display-message", "-p", mark, ";")
        ]
        try:
            shown = self.run(*arguments[:-1]).split(f"{mark}\n")
        except TmuxTimeoutError:
            raise
        except TmuxError as error:  # one has gone in this moment, and with it the rest of the line
            if len(places) == 1 or any(text in error.message for text in _NO_SERVER):
                return {}
            half = len(places) // 2
            return {**self._captured(places[:half], options), **self._captured(places[half:], options)}
        return dict(zip(places, shown, strict=False))

    def attaching(
        self, session: str, environ: Mapping[str, str], *, read_only: bool = False
    ) -> tuple[list[str], dict[str, str]]:
        """The command that shows a session in the caller's terminal, and the environment for it.

        Args:
            session: which.
            environ: the caller's; inside of this very server its client switches to the session.
            read_only: keys do not reach the session.
        """
        within = environ.get("TMUX", "").split(",")[0]
        if within and os.path.realpath(within) == os.path.realpath(self._socket_path()):
            return ["tmux", "-S", within, "switch-client", *(["-r"] if read_only else []), "-t", _exact(session)], dict(
                environ
            )
        kept = {name: value for name, value in environ.items() if name not in ("TMUX", "TMUX_PANE", "TMUX_TMPDIR")}
        if self.directory:
            kept["TMUX_TMPDIR"] = self.directory
        flags = ["-r"] if read_only else []
        return ["tmux", "-L", self.socket, "attach-session", *flags, "-t", _exact(session)], kept

    def _socket_path(self) -> str:
        return f"{self.directory or '/tmp'}/tmux-{os.getuid()}/{self.socket}"  # noqa: S108 - tmux's own place

    def in_mode(self, place: str) -> bool:
        """Whether the pane is in copy mode or the like, where keys do not reach its program."""
        return self.run("display-message", "-p", "-t", _target(place), "#{pane_in_mode}").strip() not in ("", "0")

    def paste(self, place: str, text: str) -> None:
        """Put text into the pane's input as one bracketed paste, without submitting it."""
        buffer = f"gt-witness-{os.getpid()}"
        self.run("load-buffer", "-b", buffer, "-", given=text.encode())
        self.run("paste-buffer", "-d", "-p", "-b", buffer, "-t", _target(place))

    def press(self, place: str, *keys: str) -> None:
        """Press keys by name, as ``Enter``."""
        self.run("send-keys", "-t", _target(place), *keys)


def _pane(line: str) -> Pane:
    session, pane_id, pid, dead, status, activity, server = line.split(_SEPARATOR)
    return Pane(
        session=session,
        id=pane_id,
        pid=int(pid or 0),
        dead=dead == "1",
        status=int(status) if status else None,
        activity=int(activity or 0),
        server=int(server or 0),
    )


_ADVICE = (
    "{}: gt-witness needs tmux 3.2 or newer; install it with your package manager "
    "(apt-get install tmux, brew install tmux)"
)


def check_tmux() -> str:
    """The version of the tmux on PATH.

    Raises:
        TmuxUnusableError: there is none, or it is older than 3.2.
    """
    try:
        done = subprocess.run(["tmux", "-V"], capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    except (FileNotFoundError, PermissionError) as error:
        raise TmuxUnusableError(_ADVICE.format("tmux is not installed")) from error
    except subprocess.TimeoutExpired as error:
        raise TmuxUnusableError(_ADVICE.format(f"tmux -V gave no answer within {_TIMEOUT:g} s")) from error
    found = re.search(r"(\d+)\.(\d+)", done.stdout)
    # A development build names itself "master" and is newer than any number.
    if "master" not in done.stdout and (not found or (int(found[1]), int(found[2])) < OLDEST):
        raise TmuxUnusableError(_ADVICE.format(f"this is {done.stdout.strip() or 'no tmux'}"))
    return done.stdout.strip()
