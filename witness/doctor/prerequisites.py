"""The programs that we need: Python, tmux, the agent; and the key of the model judges."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Mapping

from witness.config.keys import find_key
from witness.config.settings import Settings, load_settings
from witness.config.town import Town
from witness.doctor.finding import Finding, fault, note, ok, warning
from witness.errors import DeclarationError, TmuxUnusableError, UsageError
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
        settings = load_settings(town.root)
    except DeclarationError:
        settings = Settings()  # the settings' own check names the fault
    try:
        key = find_key(settings, environ)
    except UsageError as error:
        yield warning("key", str(error), "gt key set")
        key = ""
    else:
        if key:
            yield ok("key", "there is a key: sidecars may ask their model")
        else:
            yield note(
                "key",
                f"no key, and {settings.key_env} is not set: sidecars that need a model stay silent, rules work",
                f"gt key set, or export {settings.key_env}=… before a polecat is spawned",
            )
    if endpoint := environ.get("ANTHROPIC_BASE_URL"):
        yield note("key", f"models are asked at {endpoint} (ANTHROPIC_BASE_URL)")
