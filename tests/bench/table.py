"""Tables for people: on the screen, and as Markdown."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

Cell = str | int | float | bool | None


class Row(dict[str, Cell]):
    """One line of a table: value by column, in the order in which the columns are shown."""


def columns(rows: Iterable[dict[str, Cell]]) -> list[str]:
    """All columns, in order of first appearance."""
    return list(dict.fromkeys(name for row in rows for name in row))


def cells(rows: Sequence[dict[str, Cell]]) -> list[list[str]]:
    """The text of every cell. In a table of systems, measured numbers tell their ratio to the first row's."""
    names = columns(rows)
    first = rows[0] if names[0] == "system" else {}
    return [[_text(row.get(name), None if row is first else first.get(name)) for name in names] for row in rows]


def _text(value: Cell, base: Cell) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, float):
        return str(value)
    if isinstance(base, float) and base > 0:
        return f"{_number(value)} (×{_number(value / base)})"
    return _number(value)


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def markdown(title: str, words: str, rows: Sequence[dict[str, Cell]]) -> str:
    """One section of the report."""
    names = columns(rows)
    lines = [f"## {title}", "", words, "", "| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells(rows)]
    return "\n".join(lines) + "\n"


def show(title: str, rows: Sequence[dict[str, Cell]]) -> None:
    """Print one section."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for name in columns(rows):
        table.add_column(name, overflow="fold")
    for row in cells(rows):
        table.add_row(*row)
    # A pipe tells no width; the widest of our tables needs this much.
    Console(width=None if sys.stdout.isatty() else 160).print(table)
