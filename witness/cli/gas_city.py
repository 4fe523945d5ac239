"""``gc-runtime-witness``: a runtime of Gas City whose sessions are polecats with sidecars.

Gas City starts, asks and ends its sessions through a program (its Runtime Provider Protocol, version 0): the operation
is the first argument, the session's name the second, values come on stdin and answers go to stdout. 0 is done, 1 a
failure with one line on stderr, 2 an operation that is not known here, which Gas City takes for nothing to do.

Each session is a polecat of a standalone town of ours: in its own tmux, below its reaper, with the sidecars that its
environment (``GC_WITNESS_SIDECARS``) or the town's settings name, supervised by the town's Witness. The town lies in
``GC_EXEC_STATE_DIR`` when Gas City gives one, else in ``$XDG_STATE_HOME/gt-witness/gas-city``. Beside it stands a file
for each session: its name, since a polecat's has fewer characters, and what Gas City has told us to keep with it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from witness.api import Witness
from witness.config.town import Town
from witness.errors import NotFoundError, WitnessError
from witness.files import read_json, replace_file
from witness.journal import Group, GroupState, MemberKind
from witness.process.table import is_alive

SIDECARS = "GC_WITNESS_SIDECARS"
_HOOK_SECONDS = 60.0
_LONGEST_NAME = 48
#: What only a shell can make of a command line.
_SHELL = re.compile(r"[|&;<>()$`\n*?~#\\]")


class _Session:
    """One session of Gas City's: its polecat, and what is kept with it."""

    def __init__(self, town: Town, name: str) -> None:
        plain = re.sub(r"[^A-Za-z0-9_-]", "-", name).lstrip("-")
        if plain != name or len(plain) > _LONGEST_NAME:
            plain = f"{plain[: _LONGEST_NAME - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        self.name, self.polecat = name, plain
        self._path = town.root / "sessions" / f"{plain}.json"

    def read(self) -> dict[str, Any]:
        try:
            found = read_json(self._path)
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def write(self, meta: dict[str, str]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self._path, json.dumps({"name": self.name, "meta": meta}), durable=False)

    @property
    def meta(self) -> dict[str, str]:
        found = self.read().get("meta")
        return found if isinstance(found, dict) else {}


class Runtime:
    """The operations, each a method of its name; what it returns is printed.

    Args:
        town: where the sessions are.
    """

    def __init__(self, town: Town) -> None:
        self._town = town

    def protocol(self) -> str:
        """The handshake."""
        return json.dumps({"version": 0, "capabilities": []})

    def pack(self) -> str:
        """The folder of the pack that declares this program; no operation of Gas City's, but for people."""
        from witness.config.resources import molecules_dir

        return str(molecules_dir() / "gas-city")

    def start(self, name: str) -> str:
        """Start a session from the configuration on stdin.

        Raises:
            WitnessError: it runs already, or cannot be started.
        """
        text = sys.stdin.read()
        try:
            config = json.loads(text) if text.strip() else {}
        except ValueError as error:
            raise WitnessError(f"the configuration on stdin is no JSON: {error}") from error
        session = _Session(self._town, name)
        if self._group(session) is not None:
            raise WitnessError(f"session {name!r} runs already")
        given = {str(key): str(value) for key, value in dict(config.get("env") or {}).items()}
        os.environ.update(given)
        workdir = Path(config.get("work_dir") or Path.cwd())
        _run_hooks(config.get("pre_start"), None)
        session.write({})
        with Witness(self._town) as witness:
            witness.spawn(
                session.polecat,
                workdir=workdir,
                agent=_agent(str(config.get("command") or "")),
                sidecars=os.environ.get(SIDECARS) or None,
                task=str(config.get("nudge") or ""),
            )
        script = config.get("session_setup_script")
        _run_hooks([*(config.get("session_setup") or []), *([shlex.quote(str(script))] if script else [])], workdir)
        return ""

    def stop(self, name: str) -> str:
        """End it with all its sidecars and descendants; one that does not run is ended."""
        session = _Session(self._town, name)
        if self._group(session, starting=True) is not None:
            with Witness(self._town) as witness:
                (ended,) = witness.nuke([session.polecat])
            if ended.result is not None and ended.result.survivors:
                raise WitnessError(f"session {name!r}: still alive: {ended.result.survivors}")
        return ""

    def is_running(self, name: str) -> str:
        """Whether its agent lives."""
        return _truth(self._group(_Session(self._town, name)) is not None)

    def process_alive(self, name: str) -> str:
        """Whether one of the processes that stdin names, one a line, is in its tree."""
        wanted = {line.strip() for line in sys.stdin.read().splitlines() if line.strip()}
        session = _Session(self._town, name)
        if self._group(session) is None:
            return _truth(False)
        with Witness(self._town) as witness:
            found = {process.name for process in witness.processes(session.polecat)}
        return _truth(not wanted or bool(wanted & found))

    def nudge(self, name: str) -> str:
        """Tell it what stands on stdin; one that does not run hears nothing, which is no failure."""
        text, session = sys.stdin.read(), _Session(self._town, name)
        if text.strip() and self._group(session) is not None:
            with Witness(self._town) as witness:
                witness.nudge(session.polecat, text)
        return ""

    def interrupt(self, name: str) -> str:
        """Press Ctrl-C in it, if it runs."""
        if group := self._group(_Session(self._town, name)):
            from witness.tmux import Tmux

            Tmux(*self._town.tmux_place).press(group.pane, "C-c")
        return ""

    def peek(self, name: str, lines: str = "100") -> str:
        """Its last lines."""
        session = _Session(self._town, name)
        if self._group(session) is None:
            return ""
        with Witness(self._town) as witness:
            return witness.peek(session.polecat, lines=max(1, int(lines)))

    def attach(self, name: str) -> str:
        """Show it in this terminal."""
        from witness.tmux import Tmux

        group = self._group(_Session(self._town, name))
        if group is None:
            raise WitnessError(f"session {name!r} does not run")
        argv, environment = Tmux(*self._town.tmux_place).attaching(group.session, os.environ, read_only=False)
        os.execvpe(argv[0], argv, environment)  # noqa: S606 - no shell wanted

    def set_meta(self, name: str, key: str) -> str:
        """Keep what stands on stdin under a key."""
        session = _Session(self._town, name)
        session.write({**session.meta, key: sys.stdin.read()})
        return ""

    def get_meta(self, name: str, key: str) -> str:
        """What is kept under a key; nothing when none is."""
        return _Session(self._town, name).meta.get(key, "")

    def remove_meta(self, name: str, key: str) -> str:
        """Forget a key."""
        session = _Session(self._town, name)
        session.write({each: value for each, value in session.meta.items() if each != key})
        return ""

    def list_running(self, prefix: str = "") -> str:
        """The sessions that run and whose name begins so, one a line."""
        names = []
        for path in sorted((self._town.root / "sessions").glob("*.json")):
            try:
                name = str(read_json(path)["name"])
            except (OSError, ValueError, KeyError, TypeError):
                continue
            if name.startswith(prefix) and self._group(_Session(self._town, name)) is not None:
                names.append(name)
        return "\n".join(names)

    def _group(self, session: _Session, *, starting: bool = False) -> Group | None:
        """Its polecat, when that lives and so does its agent."""
        if not self._town.journal_path.exists():
            return None
        with Witness(self._town) as witness:
            try:
                group = witness.find(session.polecat)
            except NotFoundError:
                return None
            agents = [m.process for m in witness.journal.members.of(group.id.run) if m.kind is MemberKind.AGENT]
        lives = any(agent is not None and is_alive(agent) for agent in agents)
        return group if starting or (lives and group.state is not GroupState.NUKED) else None


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _agent(command: str) -> str | list[str]:
    """The agent's words; a shell's work is left to a shell."""
    return ["sh", "-c", command] if _SHELL.search(command) else command


def _run_hooks(commands: object, workdir: Path | None) -> None:
    """What Gas City's user wants to be run before or after a start; its failure is told and stops nothing."""
    for command in commands if isinstance(commands, list) else ():
        try:
            done = subprocess.run(
                ["sh", "-c", str(command)], cwd=workdir, stdout=sys.stderr, timeout=_HOOK_SECONDS, check=False
            )
            fault = f"exit code {done.returncode}" if done.returncode else ""
        except (OSError, subprocess.TimeoutExpired) as error:
            fault = str(error)
        if fault:
            sys.stderr.write(f"gc-runtime-witness: {command}: {fault}\n")


def state_town() -> Town:
    """The town that holds the sessions; made when it is missing."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    given = os.environ.get("GC_EXEC_STATE_DIR")
    root = Path(given) / "witness" if given else Path(state) / "gt-witness" / "gas-city"
    return Town.init(root)


def main() -> None:
    """Run one operation and exit: 0 done, 1 it failed, 2 there is no such operation."""
    operation, *arguments = sys.argv[1:] or [""]
    method: Callable[..., str] | None = None
    if re.fullmatch(r"[a-z]+(-[a-z]+)*", operation):
        method = getattr(Runtime, operation.replace("-", "_"), None)
    if method is None:
        sys.stderr.write(f"gc-runtime-witness: no operation named {operation!r}\n")
        sys.exit(2)
    try:
        printed = method(Runtime(state_town()), *arguments)
    except (WitnessError, OSError, ValueError, TypeError) as error:
        sys.stderr.write(f"gc-runtime-witness: {operation}: {' '.join(str(error).split())}\n")
        sys.exit(1)
    if printed:
        sys.stdout.write(f"{printed}\n")
