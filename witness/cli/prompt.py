"""``gt prompt``: prompts made of typed blocks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from witness.cli.context import print_json
from witness.errors import DeclarationError, Problem, UsageError
from witness.files import parse_json, read_project
from witness.prompts import TYPES, Block, decompose, lint, render


@click.group()
def prompt() -> None:
    """Render, parse and lint prompts made of typed blocks.

    \b
    gt prompt render --role "You are a careful engineer." --objective "Make the sum right."
    gt prompt render blocks.yaml > prompt.xml
    gt prompt parse prompt.xml --json
    gt prompt lint prompt.xml
    """


@prompt.command("render")
@click.argument("file", required=False, metavar="[FILE|-]")
@click.option("--role", help="who the agent is")
@click.option("--objective", help="what it is to do")
@click.option("--block", "given", multiple=True, metavar="TYPE=TEXT", help="any other block; @FILE reads its text")
def render_command(file: str | None, role: str | None, objective: str | None, given: tuple[str, ...]) -> None:
    """Write blocks as XML.

    FILE holds a list of {type, content, summary} in YAML or JSON.
    """
    blocks = _blocks(file) if file else []
    for kind, text in (("role", role), ("objective", objective)):
        if text is not None:
            blocks.append(Block(kind, text))
    for each in given:
        kind, equals, text = each.partition("=")
        if not equals:
            raise UsageError(f"--block {each!r}: write TYPE=TEXT or TYPE=@FILE")
        try:
            blocks.append(Block(kind, _read(text[1:]) if text.startswith("@") else text))
        except ValueError as error:
            raise UsageError(f"--block: {error}") from error
    if not blocks:
        raise UsageError("nothing to render: name a FILE, or give --role, --objective or --block")
    click.echo(render(blocks))


@prompt.command("parse")
@click.argument("file", metavar="FILE|-")
@click.option("--json", "as_json", is_flag=True, help="one object for each block")
def parse_command(file: str, as_json: bool) -> None:
    """Show the blocks of a prompt."""
    rows: list[dict[str, Any]] = [
        {"type": piece.block.type, "start": piece.start, "end": piece.start + len(piece.source),
         "summary": piece.block.summary, "content": piece.block.content}
        for piece in decompose(_read(file)) if piece.block is not None
    ]  # fmt: skip
    if as_json:
        print_json(rows)
        return
    for row in rows:
        words = " ".join(row["content"].split())
        click.echo(f"{row['type']:<18} {row['start']:>6}  {words[:90]}{'…' if len(words) > 90 else ''}")


@prompt.command("lint")
@click.argument("file", metavar="FILE|-")
@click.option("--json", "as_json", is_flag=True, help="one object for each fault")
def lint_command(file: str, as_json: bool) -> None:
    """Look for blocks that are empty, unclosed or of no known type; exit code 1 when there are any."""
    faults = lint(_read(file))
    if as_json:
        print_json([{"file": file, "line": fault.line, "message": fault.message} for fault in faults])
    else:
        for fault in faults:
            click.echo(Problem(fault.message, file, fault.line))
    sys.exit(1 if faults else 0)


def _read(file: str) -> str:
    try:
        # Bytes, so that no line end is changed on the way.
        data = sys.stdin.buffer.read() if file == "-" else read_project(Path(file))
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error


def _blocks(file: str) -> list[Block]:
    from witness.config.yaml_document import parse_yaml_value

    text = _read(file)
    try:
        rows = parse_json(text) if text.lstrip().startswith("[") else parse_yaml_value(text, file)
    except ValueError as error:
        raise DeclarationError([Problem(f"neither JSON nor YAML: {error}", file)]) from error
    if not isinstance(rows, list):
        raise DeclarationError([Problem("must hold a list of {type, content}", file)])
    problems: list[Problem] = []
    blocks = [block for index, row in enumerate(rows) if (block := _block(row, file, index, problems))]
    if problems:
        raise DeclarationError(problems)
    return blocks


def _block(row: Any, file: str, index: int, problems: list[Problem]) -> Block | None:
    if not isinstance(row, dict) or not isinstance(row.get("type"), str) or not isinstance(row.get("content"), str):
        problems.append(Problem(f"a block is {{type, content}}, type one of {', '.join(TYPES)}", file, key=str(index)))
        return None
    try:
        return Block(row["type"], row["content"], str(row.get("summary") or ""))
    except ValueError as error:
        problems.append(Problem(str(error), file, key=str(index)))
        return None
