"""What a hooked bead says of the work that hangs on it: which formula, with which variables.

Gas Town writes it into the bead's description, one ``key: value`` a line, the keys in any case, with ``_``, ``-`` or
nothing between their words.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Attachment:
    """The attached work.

    Args:
        formula: name of the formula, empty when none is attached.
        variables: what was given with ``gt sling --var``.
        prose: the rest of the description: what people wrote.
    """

    formula: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    prose: str = ""


# Every field that Gas Town writes among people's words, without the marks between its words.
_FIELDS = frozenset(
    [
        "attachedformula", "attachedmolecule", "attachedat", "attachedargs", "attachedvars", "dispatchedby", "nomerge",
        "reviewonly", "mode", "convoyid", "convoy", "mergestrategy", "convoyowned", "formulavars",
    ]
)  # fmt: skip


def read_attachment(description: str) -> Attachment:
    """Read a bead's description; lines that are no such field are somebody's prose."""
    formula, attached, given = "", {}, {}
    lines = description.splitlines()
    prose: list[str] = []
    below: set[int] = set()
    for at, line in enumerate(lines):
        key, colon, value = line.strip().partition(":")
        name = key.strip().lower().replace("_", "").replace("-", "")
        value = value.strip()
        if not colon or not value or name not in _FIELDS:
            prose += [line] if at not in below else []
            continue
        if name == "attachedformula":
            formula = value
        elif name == "attachedvars":
            attached = _pairs(_list(value))
        elif name == "formulavars":
            # Several are written one below the other, and only the first stands behind the key.
            more = _bare_pairs(lines[at + 1 :])
            given = _pairs([value, *more])
            below = set(range(at + 1, at + 1 + len(more)))
    return Attachment(formula, {**given, **attached}, "\n".join(prose).strip())


def _list(value: str) -> list[str]:
    try:
        raw = json.loads(value)
    except ValueError:
        return [part.strip() for part in value.split(",")]
    return [each for each in raw if isinstance(each, str)] if isinstance(raw, list) else []


def _bare_pairs(lines: list[str]) -> list[str]:
    found = []
    for line in lines:
        name, equals, _ = line.strip().partition("=")
        if not equals or not name.isidentifier():
            break
        found.append(line.strip())
    return found


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if equals and name.strip():
            pairs[name.strip()] = value.strip()
    return pairs
