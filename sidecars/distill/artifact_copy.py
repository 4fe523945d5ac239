"""A copy of the artifacts, read-only and alone in a folder, for a helper whose own tools know no borders."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Self

from sidecars.distill.decompress import PIECE
from sidecars.distill.errors import NoBackendError, UnreadableError
from sidecars.distill.text import Text
from sidecars.distill.text_pool import TextPool
from witness.config.town import Town

MOST_STAGED = 4 << 30
# A copy with another ending could be taken for a picture, a notebook, or for instructions to the client (CLAUDE.md).
_LONGEST_NAME = 100
_PLAIN = (".log", ".txt", ".json")


class Stage:
    """The folder. A context manager; at its end nothing is left of it.

    The copies hold what is read elsewhere in this package: text, unfolded and in UTF-8, so that lines are the same.

    Args:
        shelf: the artifacts.

    Attributes:
        place: the folder, outside of every town.
        scratch: an empty folder beside it for the helper's own temporary files.
        names: for each staged file, relative to the folder, the artifact's name.
    """

    def __init__(self, shelf: TextPool) -> None:
        self._shelf = shelf
        self.names: dict[str, str] = {}
        self._folders = {"."}

    def __enter__(self) -> Self:
        self._own = Path(tempfile.mkdtemp(prefix="gt-distill-", dir=_outside_of_towns())).resolve()
        self.place, self.scratch = self._own / "artifacts", self._own / "tmp"
        try:
            self.place.mkdir()
            self.scratch.mkdir()
            self._fill()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def _fill(self) -> None:
        size = sum(entry.size for entry in self._shelf.artifacts.entries())
        if size > MOST_STAGED or size > shutil.disk_usage(self._own).free // 2:
            raise NoBackendError(f"{size} bytes are too many to be copied for the claude backend: use model or index")
        for number, name in enumerate(self._shelf.names):
            try:
                text = self._shelf.text(name)
            except UnreadableError:
                continue  # the shelf keeps the reason
            self._copy(text, number)
        for folder, _, _ in os.walk(self.place, topdown=False):
            Path(folder).chmod(0o500)

    def _copy(self, text: Text, number: int) -> None:
        parts = [
            re.sub(r"[^\w.-]", "_", part).lstrip("-.") or "_" for part in Path(text.name).parts[-3:] if part != "/"
        ]
        parts = [part[:_LONGEST_NAME] for part in parts]
        stem = parts.pop()
        if not stem.endswith(_PLAIN):
            stem += ".txt"
        relative = Path(*parts, stem)
        if any(
            (self.place / above).exists() for above in (relative, *relative.parents) if str(above) not in self._folders
        ):
            relative = Path(f"{number}", *parts, stem)
        self._folders |= {str(above) for above in relative.parents}
        target = self.place / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as out:
            for piece in text.each_piece(lambda offset: text.read(offset, min(offset + PIECE, text.size))):
                out.write(piece)
        target.chmod(0o400)
        self.names[str(relative)] = text.name

    def original(self, path: str) -> str:
        """The artifact that a path in or below the folder means; another path unchanged."""
        relative = os.path.relpath(path, self.place) if os.path.isabs(path) else os.path.normpath(path or ".")  # noqa: PTH117
        if relative in self.names:
            return self.names[relative]
        ending = [name for staged, name in self.names.items() if staged.endswith(f"/{relative}")]
        return ending[0] if len(ending) == 1 else path

    def _remove(self) -> None:
        for folder, _, _ in os.walk(self.place):
            Path(folder).chmod(0o700)
        shutil.rmtree(self._own, ignore_errors=True)


def _outside_of_towns() -> str:
    """A folder for temporary files that lies in no town, so that nothing of a town is found from there."""
    candidates = [os.environ.get("TMPDIR", ""), "/var/tmp", tempfile.gettempdir(), "/tmp"]  # noqa: S108
    for each in candidates:
        if each and Path(each).is_dir() and os.access(each, os.W_OK):
            real = Path(each).resolve()
            if not any(Town.is_town(above) for above in (real, *real.parents)):
                return str(real)
    raise NoBackendError("no folder for temporary files lies outside of the town: set TMPDIR")
