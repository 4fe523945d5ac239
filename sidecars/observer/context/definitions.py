"""The names that a project's files define, and those that an agent's new text defines."""

from __future__ import annotations

import re

# One pattern for what most languages write: def, class, function, const x =, func, fn, pub fn, type, interface.
_DEFINITION = re.compile(
    r"^[ \t]*(?:export\s+)?(?:default\s+)?(?:pub(?:\([a-z]+\))?\s+)?(?:public\s+|static\s+)*(?:async\s+)?"
    r"(?:def|class|function\*?|func|fn|interface|struct|trait|module|sub)\s+(?:\([^)]*\)\s*)?([A-Za-z_$][\w$]*)"
    r"|^[ \t]*(?:export\s+)?(?:const|let|var)\s+([A-Za-z_$][\w$]*)\s*=\s*(?:async\s*)?(?:function|\()",
    re.MULTILINE,
)
# Names that every program has of its own.
_COMMON = frozenset(
    ["main", "init", "setup", "teardown", "run", "start", "stop", "close", "open", "test", "handler", "error", "config"]
)
_SHORTEST = 4


def fold(name: str) -> str:
    """One spelling for ``formatPrice``, ``format_price`` and ``FormatPrice``."""
    return name.replace("_", "").replace("$", "").casefold()


def defined_names(text: str) -> list[str]:
    """The names that a text defines and that say enough to be recognised; private and test ones are left out."""
    found = (first or second for first, second in _DEFINITION.findall(text))
    return [
        name
        for name in found
        if len(name) >= _SHORTEST and not name.startswith(("_", "test", "Test")) and fold(name) not in _COMMON
    ]
