"""The command line of ``gt-sidecar``."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import click

from witness.config.settings import Settings, load_settings, parse_duration
from witness.config.town import Town
from witness.errors import TownNotFoundError, UsageError, WitnessError


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--session", required=True, help="The tmux session to observe.")
@click.option("--type", "name", required=True, metavar="TYPE[:ARGUMENT]", help="The sidecar type.")
@click.option("--spec", "argument", default="", metavar="FILE", help="The type's argument: files by comma, or globs.")
@click.option("--interval", default="", metavar="DURATION", help="How often to look (default: the type's).")
@click.option("--judge", default="", metavar="JUDGE", help="rules, model, rules+model, command, or model:ID.")
@click.option("--socket", default="", metavar="NAME", help="The tmux socket (default: the town's, else tmux's own).")
@click.option("--workdir", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path())
@click.option("--queue", type=click.Path(path_type=Path), help="A nudge queue to write to, in place of the pane.")
@click.option("--client", default="", metavar="NAME", help="claude, codex, gemini, … (default: found out).")
@click.option("--once", is_flag=True, help="Look once and end.")
@click.option("--dry-run", is_flag=True, help="Show what would be said; say nothing.")
def command(
    session: str, name: str, argument: str, interval: str, judge: str, socket: str, workdir: Path,
    queue: Path | None, client: str, once: bool, dry_run: bool,
) -> None:  # fmt: skip
    """Observe any tmux session with one sidecar: no Witness and no town are needed.

    \b
    gt-sidecar --session work --type specs --spec docs/api-spec.md --interval 10s --dry-run
    gt-sidecar --session gt-toast --type scope --spec docs/issue.md --once
    """
    from sidecars.observer.standalone import Watch, watch
    from sidecars.type_reader.sidecar_type import variant
    from sidecars.type_reader.type_loader import load_type

    town = _town()
    rig = town.rig_of(workdir.resolve()) if town else ""
    bare, _, inline = name.partition(":")
    kind = load_type(bare, town.root if town else None, rig, workdir.resolve(), {"pane": "only"})
    for line in kind.withheld:
        click.echo(f"gt-sidecar: {line}", err=True)
    if judge:
        kind = variant(kind, judge)
    if interval:
        try:
            kind = replace(kind, poll=max(0.05, parse_duration(interval)))
        except ValueError as error:
            raise UsageError(f"--interval: {error}") from error
    if queue is None and town is not None and (waiting := town.queue_dir(session)).is_dir():
        queue = waiting
    order = Watch(
        session=session,
        socket=socket or (town.socket if town else "default"),
        kind=kind,
        argument=argument or inline,
        workdir=workdir.resolve(),
        queue=queue,
        client=client,
        once=once,
        dry=dry_run,
        tmux_directory=town.tmux_place[1] if town and not socket else os.environ.get("TMUX_TMPDIR", ""),
    )
    sys.exit(watch(order, load_settings(town.root, rig) if town else Settings()))


def _town() -> Town | None:
    try:
        return Town.find()
    except TownNotFoundError:
        return None


def main(argv: list[str]) -> int:
    """Run it and return the exit code: 0 done, 1 it failed, 2 bad usage or bad declaration."""
    try:
        command.main(args=argv, prog_name="gt-sidecar", standalone_mode=False)
    except WitnessError as error:
        for line in str(error).splitlines():
            click.echo(f"gt-sidecar: {line}", err=True)
        return error.exit_code
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        click.echo(f"gt-sidecar: {error.format_message()}", err=True)
        return 2
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
