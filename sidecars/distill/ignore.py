"""The rules by which a folder's files are left out, as git reads them."""

from __future__ import annotations

import os
import re
from typing import Self

from sidecars.distill.beneath import open_beneath
from sidecars.distill.errors import UnreadableError

# In characters, of a file and of a line of it; the largest that projects share have a tenth of it.
_LARGEST, _LONGEST = 1 << 16, 1000


class IgnoreRules:
    """One ``.gitignore``."""

    def __init__(self, text: str) -> None:
        from pathspec import GitIgnoreSpec

        self._spec = GitIgnoreSpec.from_lines(text.splitlines())

    @classmethod
    def of(cls, folder: int) -> Self | None:
        """The rules that stand in an open folder, None when there are none that can be read."""
        try:
            own = open_beneath(folder, (".gitignore",), ".gitignore")
        except UnreadableError:
            return None
        try:
            text = os.pread(own, _LARGEST + 1, 0).decode("utf-8", "replace")
            # Each rule becomes an expression: a file that is none of a person's would cost minutes.
            if len(text) > _LARGEST or "\0" in text or max(map(len, text.splitlines()), default=0) > _LONGEST:
                return None
            return cls(text)
        except (ValueError, OSError, OverflowError, RecursionError, re.error):
            return None  # a rule that git itself would not understand, or a folder of that name
        finally:
            os.close(own)

    def verdict(self, path: str) -> bool | None:
        """Whether a path below their folder is left out; None when they say nothing of it."""
        return self._spec.check_file(path).include


def ignored(rules: list[tuple[int, IgnoreRules]], parts: tuple[str, ...], folder: bool) -> bool:
    """Whether a path is left out.

    Args:
        rules: from the root downwards, each with the depth of its folder.
        parts: the path from the root.
        folder: whether it is a folder.
    """
    # As git does it: the nearest file that says anything about the path decides.
    for depth, each in reversed(rules):
        verdict = each.verdict("/".join(parts[depth:]) + ("/" if folder else ""))
        if verdict is not None:
            return verdict
    return False
