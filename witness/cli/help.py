"""``gt help TOPIC``: the documents, which come with the program, and the help of each command."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from witness.cli.commands import COMMANDS
from witness.cli.exec_real_gt import find_real_gt, hand_over
from witness.config.resources import docs_dir
from witness.errors import NotFoundError


@click.command("help", epilog="Examples:\n\n  gt help\n\n  gt help start\n\n  gt help polecat spawn")
@click.argument("topic", nargs=-1)
@click.pass_context
def help_(context: click.Context, topic: tuple[str, ...]) -> None:
    """Show a document, or the help of a command; without a topic the list of both."""
    pages = {path.stem: path for path in sorted(docs_dir().glob("*.md"))}
    assert context.parent  # noqa: S101 - it is a command of ours
    if not topic:
        if real := find_real_gt():
            hand_over(real, ["help"])
        click.echo(context.parent.get_help())
        click.echo("\nDocuments, shown by gt help TOPIC:")
        for name, path in pages.items():
            click.echo(f"  {name:<14}{_title(path)}")
    elif topic[0] in pages and len(topic) == 1:
        text = pages[topic[0]].read_text(encoding="utf-8")
        click.echo_via_pager(text) if sys.stdout.isatty() else click.echo(text, nl=False)
    elif topic[0] in COMMANDS:
        context.parent.command.main([*topic, "--help"], prog_name=context.parent.info_name, standalone_mode=False)
    else:
        if real := find_real_gt():
            hand_over(real, ["help", *topic])
        raise NotFoundError(
            "help topic", topic[0], f"there are {', '.join(pages)}, and all commands", [*pages, *COMMANDS]
        )


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline().lstrip("# ").strip()
