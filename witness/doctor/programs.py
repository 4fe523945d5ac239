"""The programs that we need: Python, tmux, the agent; and the key of the model judges."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Mapping

from witness.config.settings import Settings, load_settings
from witness.config.town import Town
from witness.doctor.finding import Finding, fault, note, ok, warning
from witness.errors import DeclarationError, TmuxUnusableError
from witness.tmux import check_tmux

DEFAULT_AGENT = "claude"


def check_python() -> Iterator[Finding]:
    """The interpreter and what its kernel offers."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield ok("python", f"Python {version}, SQLite {sqlite3.sqlite_version}, {sys.executable}")
    if sys.platform == "linux" and not hasattr(os, "pidfd_open"):
        yield warning(
            "python", "this Python knows no pidfd: ends are noticed by looking, not at once", "use another build"
        )


def check_tmux_program() -> Iterator[Finding]:
    """tmux, 3.2 or newer."""
    try:
        yield ok("tmux", f"{check_tmux()}, {shutil.which('tmux')}")
    except TmuxUnusableError as error:
        yield fault("tmux", str(error), "install tmux 3.2 or newer with the system's package manager")


def check_agent(environ: Mapping[str, str]) -> Iterator[Finding]:
    """The default agent."""
    found = shutil.which(DEFAULT_AGENT, path=environ.get("PATH"))
    if found:
        yield ok("agent", f"{DEFAULT_AGENT} is {found}")
    else:
        yield note("agent", f"no {DEFAULT_AGENT} on PATH", "install Claude Code, or name an agent with --agent")


def check_key(town: Town, environ: Mapping[str, str]) -> Iterator[Finding]:
    """The key of sidecars that ask a model; its value is shown to nobody."""
    try:
        name = load_settings(town.root).key_env
    except DeclarationError:
        name = Settings().key_env  # the settings' own check names the fault
    if environ.get(name):
        yield ok("key", f"{name} is set: sidecars may ask their model")
    else:
        yield note(
            "key",
            f"{name} is not set: sidecars that need a model stay silent, those with rules work",
            f"export {name}=… before the Witness is started",
        )
    if endpoint := environ.get("ANTHROPIC_BASE_URL"):
        yield note("key", f"models are asked at {endpoint} (ANTHROPIC_BASE_URL)")
