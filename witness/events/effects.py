"""What one tool call did to the files, as it was seen: stated, not judged.

An event in the spool carries it as ``"look"`` (schema 2). Paths are relative to the run's workdir where they lie below
it, absolute elsewhere; a path that ends with ``/`` stands for a whole tree of generated files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Of each kind; a checkout of another branch may touch thousands, and no reader needs more to see what happened.
MOST_PATHS = 200
_PATH_LISTS = ("changed", "created", "removed", "generated")


@dataclass(frozen=True, slots=True)
class Effects:
    """What was seen of one call.

    Args:
        changed: files that stood there before and hold something else now (or have another mode).
        created: files that did not stand there before.
        removed: files that do not stand there any longer.
        generated: those of them that git ignores, and trees of caches and installed packages (``node_modules/``) in
            which something changed.
        more: how many further files there were.
        exit: the command's exit status, None when the client did not tell.
        cwd_before: the directory in which the call began, empty when that is not known.
    """

    changed: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    generated: tuple[str, ...] = ()
    more: int = 0
    exit: int | None = None
    cwd_before: str = ""

    def to_json(self) -> dict[str, Any]:
        """As it stands in the spool: empty fields are left out, ``changed``, ``created`` and ``removed`` never."""
        raw: dict[str, Any] = {"changed": self.changed, "created": self.created, "removed": self.removed}
        if self.exit is not None:
            raw["exit"] = self.exit
        more = {"generated": self.generated, "more": self.more, "cwd_before": self.cwd_before}
        return raw | {key: value for key, value in more.items() if value}

    @classmethod
    def from_json(cls, raw: object) -> Effects | None:
        """Read what ``to_json`` wrote; None when it is nothing of that form."""
        if not isinstance(raw, Mapping):
            return None
        lists = {}
        for key in _PATH_LISTS:
            value = raw.get(key, ())
            if not isinstance(value, list | tuple):
                return None
            lists[key] = tuple(each for each in value if isinstance(each, str) and each)
        more, exit, cwd = raw.get("more", 0), raw.get("exit"), raw.get("cwd_before", "")
        return cls(
            **lists,
            more=more if isinstance(more, int) and more > 0 else 0,
            exit=exit if isinstance(exit, int) and not isinstance(exit, bool) else None,
            cwd_before=cwd if isinstance(cwd, str) else "",
        )
