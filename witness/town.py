"""The town: one root directory, its rigs, its tmux socket, its runtime files.

Real Gas Town is recognised by ``mayor/town.json`` or ``mayor/``; a standalone town by ``town.yaml``. Nothing here needs
Gas Town to be installed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from witness.errors import DeclarationError, Problem, TownNotFoundError
from witness.names import check_name

STANDALONE_MARKER = "town.yaml"
DEFAULT_RIG = "main"
# What Gas Town takes for a rig that it does not know.
DEFAULT_PREFIX = "gt"


@dataclass(frozen=True, slots=True)
class Town:
    """A town as it was found. ``Town.find()`` is the usual way to one.

    Args:
        root: its directory, as it was reached (links not resolved: the socket's name depends on it).
        gastown: whether it is a real Gas Town rather than a standalone one.
        prefixes: session prefix by rig.
    """

    root: Path
    gastown: bool = False
    prefixes: Mapping[str, str] = field(default_factory=dict)

    # -- finding ------------------------------------------------------------------------------------------------

    @classmethod
    def find(cls, start: Path | str | None = None, environ: Mapping[str, str] | None = None) -> Town:
        """Find the town as real ``gt`` does: upwards, the outermost match, then the environment.

        Args:
            start: where to begin; the working directory when None.
            environ: where ``GT_TOWN_ROOT`` and ``GT_ROOT`` are looked up; the process's own when None.

        Raises:
            TownNotFoundError: there is none.
        """
        environ = os.environ if environ is None else environ
        try:
            begin = Path(start) if start is not None else Path.cwd()
        except FileNotFoundError:  # the working directory was deleted under us
            begin = Path("/")
        begin = Path(os.path.abspath(begin))  # noqa: PTH100 - links must stay unresolved
        primary = secondary = standalone = None
        for place in (begin, *begin.parents):
            if (place / "mayor" / "town.json").is_file():
                primary = place
            elif (place / "mayor").is_dir():
                secondary = place
            if standalone is None and (place / STANDALONE_MARKER).is_file():
                standalone = place
        found = primary or secondary or standalone
        if found is not None:
            return cls.at(found)
        for variable in ("GT_TOWN_ROOT", "GT_ROOT"):
            place_text = environ.get(variable, "")
            if place_text and cls.is_town(Path(place_text)):
                return cls.at(Path(place_text))
        raise TownNotFoundError(str(begin))

    @staticmethod
    def is_town(place: Path) -> bool:
        """Whether ``place`` is the root of a town."""
        return (place / "mayor").is_dir() or (place / STANDALONE_MARKER).is_file()

    @classmethod
    def at(cls, root: Path) -> Town:
        """The town whose root is ``root``."""
        gastown = (root / "mayor").is_dir()
        return cls(root, gastown, _gastown_prefixes(root) if gastown else {})

    @classmethod
    def init(cls, root: Path) -> Town:
        """Make a standalone town at ``root``; an existing one is left as it is."""
        root = Path(os.path.abspath(root))  # noqa: PTH100
        if not cls.is_town(root):
            root.mkdir(parents=True, exist_ok=True)
            (root / STANDALONE_MARKER).write_text(f"name: {json.dumps(root.name)}\n", encoding="utf-8")
        return cls.at(root)

    # -- places -------------------------------------------------------------------------------------------------

    @property
    def runtime(self) -> Path:
        """Our own runtime folder; everything in it is the user's alone."""
        return self.root / ".runtime" / "witness"

    @property
    def journal_path(self) -> Path:
        return self.runtime / "witness.db"

    def run_dir(self, run: str) -> Path:
        """Where the files of one run are."""
        return self.runtime / "runs" / run

    def queue_dir(self, session: str) -> Path:
        """Gas Town's nudge queue of a session."""
        return self.root / ".runtime" / "nudge_queue" / session.replace("/", "_")

    def make_runtime(self) -> Path:
        """Create the runtime folder, closed to everybody else, and return it."""
        self.runtime.parent.mkdir(exist_ok=True)
        self.runtime.mkdir(mode=0o700, exist_ok=True)
        return self.runtime

    # -- names --------------------------------------------------------------------------------------------------

    def prefix(self, rig: str) -> str:
        """The session prefix of a rig; in a standalone town a rig is its own prefix."""
        if rig in self.prefixes:
            return self.prefixes[rig]
        return DEFAULT_PREFIX if self.gastown or rig == DEFAULT_RIG else rig

    def session(self, rig: str, polecat: str) -> str:
        """The tmux session of a polecat, as ``gt-Toast``."""
        return f"{self.prefix(rig)}-{check_name('polecat', polecat)}"

    def rig_of(self, place: Path) -> str:
        """The rig that ``place`` lies in, else the only rig there is, else ``main``."""
        try:
            first = Path(os.path.abspath(place)).relative_to(self.root).parts[:1]  # noqa: PTH100
        except ValueError:
            first = ()
        if first and first[0] in self.prefixes:
            return first[0]
        return next(iter(self.prefixes)) if len(self.prefixes) == 1 else DEFAULT_RIG

    @property
    def socket(self) -> str:
        """The name of the town's tmux socket, derived as Gas Town derives it; ``$TMUX`` plays no part."""
        given = os.environ.get("GT_TMUX_SOCKET", "")
        if given not in ("", "default", "auto"):
            return given
        return derive_socket(self.root)


def derive_socket(root: Path) -> str:
    """Gas Town's socket name: the directory's name made safe, and six hex digits of its real path's SHA-256."""
    try:
        canonical = os.path.realpath(root, strict=True)
    except OSError:
        canonical = os.path.abspath(root)  # noqa: PTH100
    base = re.sub(r"[^a-z0-9-]+", "-", root.name.lower()).strip("-") or "default"
    return f"{base}-{hashlib.sha256(canonical.encode()).hexdigest()[:6]}"


def _gastown_prefixes(root: Path) -> dict[str, str]:
    for path in (root / "mayor" / "rigs.json", root / "rigs.json"):
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise DeclarationError([Problem(f"cannot be read as JSON: {error}", str(path))]) from error
        rigs = raw.get("rigs") if isinstance(raw, dict) else None
        if not isinstance(rigs, dict):
            return {}
        prefixes = {}
        for name, rig in rigs.items():
            beads = rig.get("beads") if isinstance(rig, dict) else None
            prefix = beads.get("prefix") if isinstance(beads, dict) else None
            if isinstance(prefix, str) and prefix:
                prefixes[name] = prefix
        return prefixes
    return {}
