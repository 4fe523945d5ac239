"""Sets of files, given by globs as in ``.gitignore``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path


class PathSet:
    """Globs that a file matches or not.

    Relative files are matched from the agent's workdir. A glob that begins with ``/`` or ``~`` also means the
    file system's root or the home folder, and only such a glob matches a file outside of the workdir.
    """

    def __init__(self, globs: Iterable[str]) -> None:
        from pathspec import GitIgnoreSpec

        self.globs = tuple(globs)
        home = str(Path.home())
        full = [home + glob[1:] if glob.startswith("~/") else glob for glob in self.globs]
        self._folders = any(glob.endswith(("/", "/**")) for glob in self.globs)
        self._inside = GitIgnoreSpec.from_lines(_rooted(glob) for glob in full if not glob.startswith(home + "/"))
        self._outside = GitIgnoreSpec.from_lines(glob for glob in full if glob.startswith("/"))

    def __bool__(self) -> bool:
        return bool(self.globs)

    def __contains__(self, path: str) -> bool:
        chosen, path = (self._outside, path[1:]) if path.startswith("/") else (self._inside, path)
        # A folder itself counts as inside of "folder/" and "folder/**": whoever lists it has opened what is in it.
        return chosen.match_file(path) or (self._folders and chosen.match_file(f"{path}/."))

    def __str__(self) -> str:
        shown = ", ".join(self.globs[:6])
        return shown + (", …" if len(self.globs) > 6 else "")


def _rooted(glob: str) -> str:
    return glob.removeprefix("./")


def path_set(globs: Iterable[str], sets: Mapping[str, tuple[str, ...]]) -> PathSet:
    """The set that a rule's list means; ``@name`` stands for a set of the context, an unknown one for none."""
    flat: list[str] = []
    for glob in globs:
        if glob.startswith("@"):
            flat += sets.get(glob[1:], ())
        else:
            flat.append(glob)
    return PathSet(flat)
