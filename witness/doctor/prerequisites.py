"""What we need of others: Python, tmux, the agent, the key of the model judges, the hooks in the client's settings."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from witness.agents import hook_settings
from witness.agents.channels import recorded_state
from witness.agents.clients import Channel, claude_home
from witness.config.keys import find_key
from witness.config.settings import Settings
from witness.config.town import Town
from witness.doctor.finding import Finding, fault, note, ok, warning
from witness.errors import DeclarationError, TmuxUnusableError, UsageError, WitnessError
from witness.files import read_json
from witness.journal import Journal
from witness.tmux import check_tmux
from witness.trust.settings import trusted_settings

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
        settings = trusted_settings(town.root)
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


# The hooks in the settings files of the agent's client.


def settings_files(town: Town, environ: Mapping[str, str]) -> list[Path]:
    """The files in which hooks may stand: the user's, and those that Gas Town's polecats of a rig share."""
    accounts = [Path(folder).expanduser() for folder in _account_folders(town)] if town.gastown else []
    shared = [town.root / rig / "polecats" / ".claude" / "settings.json" for rig in town.rigs] if town.gastown else []
    return [*(folder / "settings.json" for folder in dict.fromkeys([claude_home(environ), *accounts])), *shared]


def _account_folders(town: Town) -> list[str]:
    """The client's configuration folders of Gas Town's accounts."""
    try:
        raw = read_json(town.root / "mayor" / "accounts.json", owners=())
        accounts = [account for account in raw["accounts"].values() if isinstance(account, dict)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    return [str(account["config_dir"]) for account in accounts if account.get("config_dir")]


def check_hooks(town: Town, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Ours are whole and of this installation; polecats that we spawn bring their own and need none of these."""
    installed = False
    for path in settings_files(town, environ):
        try:
            found = hook_settings.status(path)
        except (WitnessError, OSError) as error:
            yield fault("hooks", str(error), "correct the file; the client reads it too")
            continue
        if found.disabled:
            yield warning("hooks", f"{path} switches all hooks off", "take disableAllHooks out of it")
        if not found.installed:
            continue
        installed = True
        command = f"gt hooks install --settings {path}"
        if found.outdated or found.missing:
            names = ", ".join((*found.outdated, *found.missing))
            yield fault("hooks", f"{path}: missing, or of another installation: {names}", command, _installer(path))
        else:
            yield ok("hooks", f"{path} has our hooks")
    if not installed and town.gastown:
        yield note(
            "hooks",
            "no hooks of ours in the client's settings: polecats of 'gt polecat spawn' bring their own, those of 'gt "
            "sling' are observed through their pane only",
            "gt hooks install",
        )
    elif not installed:
        yield ok("hooks", "polecats bring their hooks along when they are spawned")


def check_channels(town: Town, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Every living polecat's channel has given its sign of life: what was configured is not yet known to work."""
    if not town.journal_path.exists():
        return
    with Journal(town.journal_path) as journal:
        groups = journal.groups.living()
    for group in groups:
        state = recorded_state(
            group.run_state.channel,
            group.run_state.channel_reason,
            town.run_dir(group.id.run) / "spool",
            time.time() - group.created,
        )
        if state.channel is Channel.PANE and state.reason:
            yield warning(
                "channel",
                f"{group.id.address} is observed through its pane only, and told something only while idle: "
                f"{state.reason}",
                f"gt peek {group.id.polecat}, then correct what it shows or the settings file named, and spawn it anew",
            )
        elif state.seen:
            yield ok("channel", f"{group.id.address} uses {state.channel}" + f" ({state.reason})" * bool(state.reason))


def _installer(path: Path) -> Callable[[], str]:
    def install() -> str:
        hook_settings.install(path)
        return f"installed our hooks in {path}"

    return install
