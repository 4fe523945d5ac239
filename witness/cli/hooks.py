"""``gt hooks``: the hooks in the agent's client."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from witness.agents import hook_settings
from witness.agents.clients import CLIENTS, Channel, Client, client_named
from witness.cli.context import print_json
from witness.config.resources import hooks_dir
from witness.errors import UsageError

_HOOKED = tuple(client.name for client in CLIENTS if client.channel is not Channel.PANE)


def _choices(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option(
        "--settings",
        type=click.Path(path_type=Path),
        help="The settings file (default: the client's own in your home directory).",
    )(command)
    return click.option(
        "--client", "name", type=click.Choice(_HOOKED), default="claude", show_default=True, help="Whose hooks."
    )(command)


def _path(name: str, settings: Path | None) -> tuple[Client, Path]:
    client = client_named(name)
    assert client is not None  # noqa: S101 - click has checked it
    if settings is not None and settings.is_dir():
        raise UsageError(f"{settings} is a folder: name the settings file in it")
    return client, settings or Path.home() / client.settings


@click.group()
def hooks() -> None:
    """The hooks in the agent's client: what it has done is recorded, what waits for it is handed over.

    A polecat of Claude Code gets them with its own settings at spawn; nothing needs to be installed for it. They do
    nothing in sessions that are not polecats.
    """


@hooks.command(epilog="Examples:\n\n  gt hooks install\n\n  gt hooks install --client codex")
@_choices
def install(name: str, settings: Path | None) -> None:
    """Put our hooks into a settings file; every other key and hook in it stays as it is."""
    client, path = _path(name, settings)
    changed = hook_settings.install(path, client.name)
    click.echo(f"{client.title}: {'installed in' if changed else 'already in'} {path}")
    if client.name == "codex" and changed:
        click.echo("Codex runs new hooks once you have trusted them: open /hooks in it", err=True)


@hooks.command(epilog="Example:\n\n  gt hooks uninstall --settings .claude/settings.json")
@_choices
def uninstall(name: str, settings: Path | None) -> None:
    """Take our hooks out of a settings file again, and nothing else."""
    client, path = _path(name, settings)
    changed = hook_settings.uninstall(path, client.name)
    click.echo(f"{client.title}: {'removed from' if changed else 'nothing of ours in'} {path}")


@hooks.command(epilog="Example:\n\n  gt hooks status --json")
@_choices
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(name: str, settings: Path | None, as_json: bool) -> None:
    """What of ours stands in a settings file."""
    client, path = _path(name, settings)
    found = hook_settings.status(path, client.name)
    if as_json:
        print_json(
            {
                "client": client.name,
                "path": str(path),
                "complete": found.complete,
                "installed": list(found.installed),
                "missing": list(found.missing),
                "outdated": list(found.outdated),
                "disabled": found.disabled,
            }
        )
        return
    if found.complete:
        click.echo(f"{client.title}: all hooks are in {path}")
        return
    if not found.installed:
        click.echo(f"{client.title}: no hooks of ours in {path}: gt hooks install --client {client.name}")
    elif found.missing or found.outdated:
        wrong = ", ".join((*found.missing, *found.outdated))
        click.echo(f"{client.title}: missing or of another installation in {path}: {wrong}: gt hooks install")
    if found.disabled:
        click.echo(f"{client.title}: {path} switches all hooks off")


@hooks.command(epilog="Example:\n\n  gt hooks plugin")
def plugin() -> None:
    """How our plugin comes into Claude Code, for sessions that you start yourself (gt follow)."""
    click.echo(f"claude plugin marketplace add {shlex.quote(str(hooks_dir()))}")
    click.echo("claude plugin install gt-witness@gt-witness")
