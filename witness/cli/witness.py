"""``gt witness``: run, start, stop, status, patrol, install."""

from __future__ import annotations

import sys

import click

from witness.api import Witness
from witness.cli.context import ask_for_force, print_json
from witness.config.keys import exported_only
from witness.config.town import Town
from witness.errors import UsageError
from witness.trust.settings import trusted_settings


@click.group()
def witness() -> None:
    """The supervisor of this town."""


@witness.command()
def run() -> None:
    """Supervise in the foreground until told to stop (for systemd and launchd); what happens is told on stderr."""
    from witness.daemon.__main__ import serve

    town = Town.find()
    town.make_runtime()
    sys.exit(serve(town, linger=False, tell=True))


@witness.command()
def start() -> None:
    """Supervise in the background; nothing happens where a Witness runs already."""
    with Witness(Town.find()) as watcher:
        before = watcher.status()
        watcher.start()
        if before.get("pid") and watcher.status().get("pid") != before["pid"]:
            click.echo(f"the Witness of version {before.get('version', 'before 0.2')} was replaced; polecats live on")
        click.echo(f"the Witness runs (pid {watcher.status().get('pid', '?')})")


@witness.command()
@click.option("--force", is_flag=True, help="Also from inside a polecat.")
def stop(force: bool) -> None:
    """Stop the Witness. Polecats and sidecars live on, unsupervised."""
    with Witness(Town.find()) as watcher:
        ask_for_force(watcher.journal, force=force)
        click.echo("the Witness has stopped" if watcher.stop() else "no Witness runs")


@witness.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(as_json: bool) -> None:
    """Whether a Witness runs, and over what."""
    with Witness(Town.find()) as watcher:
        found = {**watcher.status(), "town": str(watcher.town.root), "socket": watcher.town.socket}
    if as_json:
        print_json(found)
    elif found["running"]:
        count = found.get("groups")
        click.echo(
            f"the Witness runs (pid {found.get('pid')}), {count} group{'s' * (count != 1)}, town {found['town']}"
        )
        click.echo(f"  version {found.get('version', 'unknown')}, key for models: {found.get('key') or 'none'}")
    else:
        click.echo(f"no Witness runs in {found['town']}: 'gt witness start'")


@witness.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def patrol(as_json: bool) -> None:
    """One pass over the town, for cron: replace what died, end what must go."""
    with Witness(Town.find()) as watcher:
        report = watcher.patrol()
    if as_json:
        print_json(report.as_json())
    else:
        click.echo(
            f"checked {report.checked}, respawned {len(report.respawned)}, zombies {len(report.zombies)}, "
            f"nuked {len(report.nuked)}"
        )
    for error in report.errors:
        click.echo(f"gt: {error}", err=True)
    sys.exit(1 if report.errors else 0)


@witness.command(
    epilog="Examples:\n\n  gt witness install --cron\n\n  gt witness install --systemd --write",
)
@click.option("--cron", "kind", flag_value="cron", help="A line for your crontab: one patrol a minute.")
@click.option("--systemd", "kind", flag_value="systemd", help="A user unit that keeps the Witness running.")
@click.option("--launchd", "kind", flag_value="launchd", help="A launch agent for macOS.")
@click.option("--write", is_flag=True, help="Install it instead of printing it.")
def install(kind: str | None, write: bool) -> None:
    """Keep the Witness alive by cron, systemd or launchd: print what is needed, or install it."""
    from witness.daemon import service_units

    if kind is None:
        raise UsageError("say by what: --cron, --systemd or --launchd")
    town = Town.find()
    made = service_units.unit(town, kind)
    if exported_only(trusted_settings(town.root)):
        click.echo("gt: your key is exported only, and no unit sees that: write it with 'gt key set'", err=True)
    if not write:
        click.echo(made.text, nl=False)
        click.echo(f"# into {made.path or 'your crontab'}; then: {made.enable}", err=True)
        return
    place = service_units.write(town, made)
    click.echo(f"installed in {place}" + (f"; now run: {made.enable}" if made.path else ""))
