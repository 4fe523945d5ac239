"""A town of the real Gas Town: made with its own programs, offline, in a folder of its own, and ended without rest.

The programs (``gt``, ``bd``, ``dolt``, ``nq``) stand in one folder, which ``GASTOWN_BIN`` names. In the sessions runs
``tests/gastown/claude.py`` under the client's name. Whatever the programs leave running (the database, pollers, the
daemon, tmux) bears the town's ``HOME`` in its environment, and is ended by that.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil

from tests.waiting import until
from witness.config.town import Town
from witness.launch import town_witness
from witness.tmux import Tmux

PROGRAMS = ("gt", "bd", "dolt", "nq")
#: The name of the variable that says where the programs are. Tests run without it: it is read once, here.
GIVEN = os.environ.get("GASTOWN_BIN", "")
RIG, PREFIX = "shop", "sh"


def programs() -> Path | None:
    """The folder with the real programs; None when none was given, or one of them is missing there."""
    folder = Path(GIVEN).absolute() if GIVEN else None
    return folder if folder and all(os.access(folder / name, os.X_OK) for name in PROGRAMS) else None


@dataclass(frozen=True, slots=True)
class RealPolecat:
    """A polecat that the real ``gt sling`` has started.

    Args:
        name: its name, which Gas Town has chosen.
        session: its tmux session.
        bead: the bead on its hook.
        folder: where the agents of the town keep their sockets and notes.
        rig: its rig.
    """

    name: str
    session: str
    bead: str
    folder: Path
    rig: str = RIG

    @property
    def address(self) -> str:
        return f"{self.rig}/{self.name}"

    @property
    def born(self) -> dict[str, Any]:
        """What its agent was started with: pid, argv, environ."""
        found: dict[str, Any] = json.loads((self.folder / f"{self.session}.json").read_text())
        return found

    @property
    def pid(self) -> int:
        return int(self.born["pid"])

    def typed(self) -> str:
        """What was typed at its prompt so far."""
        path = self.folder / f"{self.session}.typed"
        return path.read_text() if path.exists() else ""

    def run(self, *argv: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        """Let the agent run a program, as its tools and hooks are run: a child of it, with its environment."""
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(str(self.folder / f"{self.session}.sock"))
            with link.makefile("rw") as stream:
                stream.write(json.dumps({"argv": argv, "stdin": stdin, "env": env}) + "\n")
                stream.flush()
                code, out, err = json.loads(stream.readline())
        return subprocess.CompletedProcess(list(argv), code, out, err)


class RealTown:
    """One real town with one rig.

    Args:
        real: the folder with the real programs.
        beads: whether it has beads, and a rig; without them it is made in a second.
        name: its folder's name, in the home folder.
        rig, prefix: its rig, and how the rig's beads and sessions begin.
    """

    def __init__(
        self, real: Path, *, beads: bool = True, name: str = "town", rig: str = RIG, prefix: str = PREFIX
    ) -> None:
        # Short: the names of sockets have 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="gtw-"))
        self.real, self.home, self.agents = real, self.folder / "home", self.folder / "agents"
        self.root, self.rig, self.prefix = self.home / name, rig, prefix
        for place in (self.home, self.agents, self.folder / "bin", self.folder / "tmux"):
            place.mkdir()
        self._port = _free_port() if beads else 0
        self._beads, self._wanted = 0, beads

    # -- making it, and ending it -----------------------------------------------------------------------------------

    def make(self) -> None:
        """Install the town and add the rig.

        Raises:
            AssertionError: one of the programs failed; with its words.
        """
        _script(self.folder / "bin" / "claude", f'{shlex.quote(str(Path(__file__).with_name("claude.py")))} '
                                                f'{shlex.quote(str(self.agents))}')  # fmt: skip
        for name, value in (("user.name", "t"), ("user.email", "t@town.example"), ("init.defaultBranch", "main"),
                            ("beads.role", "maintainer")):  # fmt: skip
            self._sh("git", "config", "--global", name, value, cwd=self.home)
        if not self._wanted:
            self._sh("gt", "install", str(self.root), "--no-beads", cwd=self.home)
            return
        source = self.folder / "source"
        (source / "src").mkdir(parents=True)
        (source / "src" / "orders.py").write_text("TOTAL = 0\n")
        self._sh("git", "init", "-q", cwd=source)
        self._sh("git", "add", "-A", cwd=source)
        self._sh("git", "commit", "-qm", "first", cwd=source)
        self._sh("git", "clone", "-q", "--bare", str(source), str(self.folder / "shop.git"), cwd=self.home)
        self._sh("gt", "install", str(self.root), cwd=self.home)
        self._sh("gt", "dolt", "start")
        self._sh("gt", "rig", "add", self.rig, f"file://{self.folder / 'shop.git'}", "--prefix", self.prefix)

    def end(self) -> None:
        """End all of it, and remove it."""
        with suppress(Exception):  # a town that was only half made
            town_witness.stop_witness(self.town)
        if self._wanted:
            self.run("gt", "dolt", "stop", check=False)
        left = self.processes()
        for process in left:
            with suppress(psutil.Error):
                process.terminate()
        for process in psutil.wait_procs(left, timeout=15)[1]:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(self.processes(), timeout=15)
        shutil.rmtree(self.folder, ignore_errors=True)

    def processes(self) -> list[psutil.Process]:
        """All that live by this town: what has its HOME."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.environ().get("HOME") == str(self.home) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    # -- using it ---------------------------------------------------------------------------------------------------

    @property
    def environment(self) -> dict[str, str]:
        """What a person's shell in this town has."""
        path = [self.folder / "bin", self.real, *os.environ["PATH"].split(os.pathsep)]
        more = {"GT_DOLT_PORT": str(self._port)} if self._port else {}
        kept = {name: os.environ[name] for name in ("TMPDIR", "PYTEST_OF_SESSION") if name in os.environ}
        return {
            "HOME": str(self.home), "PATH": os.pathsep.join(map(str, path)), "LANG": "C.UTF-8", "SHELL": "/bin/sh",
            "TERM": "xterm", "USER": "t", **kept, **more,
            "TMUX_TMPDIR": str(self.folder / "tmux"),
        }  # fmt: skip

    @cached_property
    def town(self) -> Town:
        return Town.at(self.root)

    @property
    def tmux(self) -> Tmux:
        return Tmux(self.town.socket, str(self.folder / "tmux"))

    def run(
        self, *argv: str, cwd: Path | None = None, check: bool = True, seconds: float = 150.0,
        env: Mapping[str, str] | None = None, stdin: str | None = None,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Run a program in the town as a person would.

        Args:
            argv: the program and its arguments.
            cwd: where; the town's root when None.
            check: its failure is an error, with what it said.
            seconds: how long it may take.
            env: in addition to ``environment``.
            stdin: what it reads; nothing when None.
        """
        # What a program leaves in the background keeps its pipes: its words are taken through files.
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            done = subprocess.run(
                argv, cwd=cwd or self.root, env={**self.environment, **(env or {})}, text=True, check=False,
                timeout=seconds, stdout=out, stderr=err, **({"stdin": subprocess.DEVNULL} if stdin is None else
                {"input": stdin}),
            )  # fmt: skip
            out.seek(0)
            err.seek(0)
            told = subprocess.CompletedProcess(list(argv), done.returncode, out.read(), err.read())
        assert not check or told.returncode == 0, (
            f"{argv}: {told.returncode}: {told.stdout[-2000:]}{told.stderr[-2000:]}"
        )
        return told

    def _sh(self, *argv: str, cwd: Path | None = None) -> None:
        self.run(*argv, cwd=cwd)

    def ours(self, *args: str, check: bool = True, **more: Any) -> subprocess.CompletedProcess[str]:
        """Run our own program under the name that shadows nothing."""
        return self.run(sys.executable, "-m", "witness.cli", *args, check=check, **more)

    def bead(self, title: str = "Fix the totals", description: str = "", name: str = "") -> str:
        """Make a bead in the rig, and return its id."""
        self._beads += 1
        name = name or f"{self.prefix}-t{self._beads}"
        more = ["--description", description] if description else []
        # By default bd names beads by the rig's folder, and gt finds them by the rig's prefix.
        self.run("bd", "create", title, "--id", name, *more, cwd=self.root / self.rig)
        return name

    def sling(self, *more: str, bead: str = "", to: str = "") -> RealPolecat:
        """``gt sling`` a bead, and wait until its agent is at its prompt.

        Args:
            more: further arguments, as ``--var sidecars=scope``.
            bead: which; a new one when empty.
            to: one polecat; the rig when empty.
        """
        bead = bead or self.bead()
        self.run("gt", "sling", bead, to or self.rig, "--no-boot", *more)
        return self.slung(bead)

    def slung(self, bead: str) -> RealPolecat:
        """The polecat that works on a bead, once its agent is at its prompt."""
        (name,) = [row["name"] for row in self.polecats() if row.get("issue") == bead]
        polecat = RealPolecat(name, f"{self.prefix}-{name}", bead, self.agents, self.rig)
        until((self.agents / f"{polecat.session}.json").exists, "the agent", 60, below=self.agents)
        return polecat

    def polecats(self) -> list[dict[str, Any]]:
        """What ``gt polecat list --json`` says of the rig."""
        rows: list[dict[str, Any]] = json.loads(self.run("gt", "polecat", "list", self.rig, "--json").stdout)
        return rows

    def heartbeat(self, session: str) -> str:
        """The state that a polecat's heartbeat has; empty without one."""
        path = self.root / ".runtime" / "heartbeats" / f"{session}.json"
        return str(json.loads(path.read_text()).get("state", "")) if path.exists() else ""

    def queued(self, session: str) -> list[dict[str, Any]]:
        """The nudges that wait for a session, in order."""
        folder = self.town.queue_dir(session)
        return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def _script(path: Path, command: str) -> None:
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {command} "$@"\n')
    path.chmod(0o755)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def real_town(**more: Any) -> Iterator[RealTown]:
    """For fixtures: a town that is made, given and ended."""
    found = programs()
    assert found
    town = RealTown(found, **more)
    try:
        town.make()
        yield town
    finally:
        town.end()
