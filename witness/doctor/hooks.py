"""The hooks in the settings files of the agent's client."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from witness.agents import hook_settings
from witness.agents.channels import recorded_state
from witness.agents.clients import Channel
from witness.config.town import Town
from witness.doctor.finding import Finding, fault, note, ok, warning
from witness.errors import WitnessError
from witness.journal import Journal


def settings_files(town: Town, environ: Mapping[str, str]) -> list[Path]:
    """The files in which hooks may stand: the user's, and those that Gas Town's polecats of a rig share."""
    home = Path(environ.get("HOME") or Path.home())
    config = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    accounts = [Path(folder).expanduser() for folder in _account_folders(town)] if town.gastown else []
    shared = [town.root / rig / "polecats" / ".claude" / "settings.json" for rig in town.rigs] if town.gastown else []
    return [*(folder / "settings.json" for folder in dict.fromkeys([config, *accounts])), *shared]


def _account_folders(town: Town) -> list[str]:
    """The client's configuration folders of Gas Town's accounts."""
    try:
        raw = json.loads((town.root / "mayor" / "accounts.json").read_text(encoding="utf-8"))
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
