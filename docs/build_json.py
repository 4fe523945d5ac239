"""Writes docs/json.md from the JSON schemas: one page of what ``--json`` prints.

python docs/build_json.py            writes it
python docs/build_json.py --check    exits 1 when it is out of date
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
PAGE = DOCS / "json.md"
#: The schemas that the page tells, in its order.
SCHEMAS = (
    DOCS.parent / "witness" / "state" / "state.schema.json",
    *(DOCS / "schemas" / f"{name}.schema.json" for name in ("logs", "du", "nuke", "patrol")),
)
_HEAD = """\
# What --json prints

Made from the JSON schemas by `make docs`; a test holds the commands to them. JSON goes to standard output alone, and an
error to standard error as `{"error": {"message", "where", "remedy"}}`. Times are RFC 3339 in UTC, lengths of time
seconds, sizes bytes; `null` is what is not known. Keys may be added; one that goes, or means something else, raises the
number `schema`.

`gt polecat list --json` and `gt polecat status --json` print the polecats of `gt state --json`, with what they had
before beside it. `gt state --json --follow` prints one object a line, as [state.md](state.md) says.
"""


def page() -> str:
    """The page's text."""
    return "\n".join([_HEAD, *(part for path in SCHEMAS for part in _section(json.loads(path.read_text("utf-8"))))])


def _section(schema: dict[str, Any]) -> Iterator[str]:
    yield f"## {schema['title']}\n\n{schema['description']}\n\n| key | type | meaning |\n|---|---|---|"
    rows = [f"| `{key}` | {kind} | {meaning} |" for key, kind, meaning in _rows(schema, "")]
    yield "\n".join(rows) + "\n"


def _rows(schema: dict[str, Any], prefix: str) -> Iterator[tuple[str, str, str]]:
    if schema.get("type") == "array":
        yield from _rows(schema["items"], f"{prefix}[]")
        return
    for key, each in schema.get("properties", {}).items():
        name = f"{prefix}.{key}" if prefix else key
        yield name, _kind(each), each.get("description", "")
        yield from _rows(each.get("items", each), f"{name}[]" if "items" in each else name)


def _kind(schema: dict[str, Any]) -> str:
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    kinds = schema.get("type", "any")
    text = " or ".join(kinds) if isinstance(kinds, list) else str(kinds)
    return text.replace("string", "time") if schema.get("format") == "date-time" else text


def main() -> None:
    """Write the page, or check it."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
        raise SystemExit("docs/json.md is out of date: make docs")


if __name__ == "__main__":
    main()
