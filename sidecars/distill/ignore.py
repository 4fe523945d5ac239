"""The rules by which a folder's files are left out, as git reads them."""

from __future__ import annotations

import os
from typing import Self

from sidecars.distill.beneath import open_beneath
from sidecars.distill.errors import UnreadableError


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
            return cls(os.pread(own, 1 << 20, 0).decode("utf-8", "replace"))
        except ValueError:
            return None  # a rule that git itself would not understand
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
