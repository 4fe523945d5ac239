"""The town: one root directory, its rigs, its tmux socket, its runtime files.

Real Gas Town is recognised by ``mayor/town.json`` or ``mayor/``; a standalone town by ``town.yaml``. Nothing here needs
Gas Town to be installed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from witness.config.rigs import DEFAULT_PREFIX, DEFAULT_RIG, Operational, read_rigs_json, read_routes, read_town_file
from witness.errors import NotFoundError, TownNotFoundError, UsageError
from witness.files import make_folder, read_json, replace_file, typed
from witness.names import MARKER_VARIABLE, GroupId, check_name, is_text

STANDALONE_MARKER = "town.yaml"
# Prefixes that Gas Town takes for its own even when no rig has them.
LEGACY_PREFIXES = ("gt", "bd", "hq", "gthq")
# Sessions that are no polecats: `<prefix>-witness`, and so on; `hq` is the town's own prefix.
_RIG_ROLES = ("witness", "refinery")
_TOWN_ROLES = ("mayor", "deacon", "boot", "overseer")
_TMUX_PLACE = "tmux.json"
# What the kernel's 107 bytes leave beside /tmp/tmux-UID/ and the digits. Gas Town does not cut a longer name: there its
# tmux does not start at all.
_LONGEST_BASE = 107 - len("/tmp/tmux-4294967295/") - len("-0123ab")  # noqa: S108 - no file, a length


@dataclass(frozen=True, slots=True)
class Town:
    """A town as it was found. ``Town.find()`` is the usual way to one.

    Args:
        root: its directory, as it was reached (links not resolved: the socket's name depends on it).
        gastown: whether it is a real Gas Town rather than a standalone one.
        prefixes: session prefix by rig; in a Gas Town, rigs without one are missing here.
        rigs: the names of all rigs that are declared.
        paths: where the code of a standalone town's rig is, when its ``town.yaml`` says so.
        why: how it was found, for people.
    """

    root: Path
    gastown: bool = False
    prefixes: Mapping[str, str] = field(default_factory=dict)
    rigs: tuple[str, ...] = ()
    paths: Mapping[str, Path] = field(default_factory=dict)
    why: str = field(default="", compare=False)

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
        root, why = cls._root(start, os.environ if environ is None else environ)
        return replace(cls.at(root), why=why)

    @classmethod
    def around_is_gas_town(cls) -> bool:
        """Whether the town of the working directory is a Gas Town, in whatever state its files are."""
        try:
            return (cls._root(None, os.environ)[0] / "mayor").is_dir()
        except TownNotFoundError:
            return False

    @classmethod
    def _root(cls, start: Path | str | None, environ: Mapping[str, str]) -> tuple[Path, str]:
        """(root, why) of the town, found as ``find`` says."""
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
        for found, marker in ((primary, "mayor/town.json"), (secondary, "mayor/"), (standalone, STANDALONE_MARKER)):
            if found is not None:
                return found, f"{marker} at or above {begin}"
        for variable in ("GT_TOWN_ROOT", "GT_ROOT"):
            place_text = environ.get(variable, "")
            if place_text and cls.is_town(Path(place_text)):
                return Path(place_text), f"{variable}, because none stands above {begin}"
        if found := _of_polecat_at(begin):
            return found, f"a polecat of it works in {begin}"
        raise TownNotFoundError(str(begin))

    @staticmethod
    def is_town(place: Path) -> bool:
        """Whether ``place`` is the root of a town.

        Args:
            place: a folder.
        """
        return (place / "mayor").is_dir() or (place / STANDALONE_MARKER).is_file()

    @classmethod
    def at(cls, root: Path) -> Town:
        """The town whose root is ``root``.

        Args:
            root: its directory.

        Raises:
            DeclarationError: its ``rigs.json`` or ``town.yaml`` is wrong.
            UsageError: its path is not UTF-8.
        """
        if not is_text(root):
            raise UsageError(f"the town {str(root)!r} is not UTF-8, and the journal holds text: rename it")
        if (root / "mayor").is_dir():
            rigs = read_rigs_json(root)
            return cls(root, True, {rig: prefix for rig, prefix in rigs.items() if prefix}, tuple(rigs))
        prefixes, paths = read_town_file(root / STANDALONE_MARKER)
        return cls(root, False, prefixes, tuple(prefixes), paths)

    @classmethod
    def init(cls, root: Path) -> Town:
        """Make a standalone town at ``root``; an existing one is left as it is.

        Args:
            root: its directory; made if it is not there.

        Raises:
            OSError: it cannot be made there.
            UsageError: its path is not UTF-8.
        """
        root = Path(os.path.abspath(root))  # noqa: PTH100
        if not cls.is_town(root) and is_text(root):
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
        """The journal's file."""
        return self.runtime / "witness.db"

    def run_dir(self, run: str) -> Path:
        """Where the files of one run are.

        Args:
            run: id of the run.
        """
        return self.runtime / "runs" / run

    def queue_dir(self, session: str) -> Path:
        """Gas Town's nudge queue of a session.

        Args:
            session: name of the tmux session.
        """
        return self.root / ".runtime" / "nudge_queue" / session.replace("/", "_")

    @property
    def own_folder(self) -> Path:
        """The topmost folder that is ours alone: in a Gas Town the rest of ``.runtime`` is its own."""
        return self.runtime if self.gastown else self.runtime.parent

    def make_runtime(self) -> Path:
        """Create the runtime folder, closed to everybody else, and return it.

        Raises:
            UsageError: it, or the folder above it, is a link, another user's or open to others, or cannot be made.
        """
        try:
            # A user who may write into it can put another folder in the place of ours. Gas Town makes it by its own
            # umask.
            make_folder(self.runtime.parent, below=self.root, close=True)
            make_folder(self.runtime, below=self.runtime.parent)
            ignored = self.own_folder / ".gitignore"
            if not ignored.exists():  # a town may be a repository, and nothing of this is to be committed
                replace_file(ignored, "*\n", durable=False, below=self.own_folder)
        except OSError as error:
            raise UsageError(f"the runtime folder cannot be used: {error}") from error
        return self.runtime

    def need_runtime(self) -> Path:
        """``make_runtime`` where nothing has run yet; what runs is listed and ended wherever it was recorded."""
        return self.runtime if self.journal_path.exists() else self.make_runtime()

    # -- names --------------------------------------------------------------------------------------------------

    def prefix(self, rig: str) -> str:
        """The session prefix of a rig; in a standalone town a rig is its own prefix.

        Args:
            rig: its name.
        """
        if rig in self.prefixes:
            return self.prefixes[rig]
        if self.gastown or rig == DEFAULT_RIG:
            return DEFAULT_PREFIX
        # A rig of that very name must not share the sessions of `main`.
        return f"{rig}-rig" if rig == DEFAULT_PREFIX else rig

    def session(self, rig: str, polecat: str) -> str:
        """The tmux session of a polecat, as ``gt-Toast``.

        Args:
            rig: its rig.
            polecat: its name.

        Raises:
            UsageError: the name cannot be one, or Gas Town keeps it for an agent that is no polecat.
        """
        check_name("polecat", polecat)
        session = f"{self.prefix(rig)}-{polecat}"
        if self.gastown and (parsed := self.parse_session(session)) and parsed[1] != "polecat":
            raise UsageError(f"polecat {polecat!r} would share its session {session} with the {parsed[1]}: choose another name")  # noqa: E501 # fmt: skip
        return session

    def check_rig(self, rig: str) -> str:
        """Return ``rig`` when it can hold polecats.

        Args:
            rig: a name.

        Raises:
            UsageError: it cannot be a name.
            NotFoundError: a Gas Town does not know it, or a standalone town declares its rigs and this is none.
        """
        check_name("rig", rig)
        if rig in self.rigs or (not self.gastown and (not self.rigs or rig == DEFAULT_RIG)):
            return rig
        known = ", ".join(self.rigs) or "none"
        raise NotFoundError("rig", rig, f"this town has {known}", self.rigs)

    def parse_session(self, session: str) -> tuple[str, str, str] | None:
        """What a session is, by the longest prefix that fits, as Gas Town reads it.

        Args:
            session: name of a tmux session.

        Returns:
            (rig, role, name); role is polecat, crew, witness, refinery, or one of the town's own with an empty rig.
            None when no prefix fits.
        """
        if session.startswith("hq-"):
            name = session.removeprefix("hq-")
            if name.startswith("dog-"):
                return "", "dog", name.removeprefix("dog-")
            return ("", name, name) if name in _TOWN_ROLES else None
        by_prefix = {prefix: rig for rig, prefix in self.prefixes.items()}
        known = sorted({*by_prefix, *LEGACY_PREFIXES}, key=len, reverse=True)
        prefix = next((each for each in known if session.startswith(f"{each}-")), None)
        name = session[len(prefix) + 1 :] if prefix is not None else ""
        if prefix is None or not name:
            return None
        rig = by_prefix.get(prefix, prefix)
        if name in _RIG_ROLES:
            return rig, name, ""
        if name.startswith("crew-"):
            return (rig, "crew", name.removeprefix("crew-")) if name != "crew-" else None
        return rig, "polecat", name

    def rig_of(self, place: Path) -> str:
        """The rig that ``place`` lies in, else the only rig there is, else ``main``.

        Args:
            place: a folder.
        """
        return self.rig_around(place) or (self.rigs[0] if len(self.rigs) == 1 else DEFAULT_RIG)

    def rig_of_bead(self, bead: str) -> str:
        """The rig whose prefix a bead's id has, by Gas Town's routes, then by its rigs; empty when none has.

        Args:
            bead: its id, as ``gt-abc12``.
        """
        by_prefix = {f"{prefix.rstrip('-')}-": rig for rig, prefix in self.prefixes.items()}
        by_prefix |= read_routes(self.root) if self.gastown else {}
        fitting = [prefix for prefix in by_prefix if bead.startswith(prefix)]
        return by_prefix[max(fitting, key=len)] if fitting else ""

    def rig_around(self, place: Path) -> str:
        """The rig that ``place`` lies in; empty when it lies in none.

        Args:
            place: a folder.
        """
        here = Path(os.path.abspath(place))  # noqa: PTH100
        for rig, path in self.paths.items():
            if here.is_relative_to(path):
                return rig
        first = here.relative_to(self.root).parts[:1] if here.is_relative_to(self.root) else ()
        return first[0] if first and first[0] in self.rigs else ""

    def worktree(self, rig: str, polecat: str) -> Path | None:
        """Where Gas Town keeps a polecat's worktree: in the rig's name below the polecat's, or, of old, right there.

        Args:
            rig: its rig.
            polecat: its name.
        """
        home = self.root / rig / "polecats" / polecat
        if (home / rig).is_dir():
            return home / rig
        return home if (home / ".git").exists() else None

    def workdir(self, rig: str) -> Path | None:
        """Where a standalone town says that a rig's code is; None when it does not say.

        Args:
            rig: its name.
        """
        return self.paths.get(rig)

    @property
    def operational(self) -> Operational:
        """What a Gas Town has set for its own patrols, read anew; all defaults elsewhere."""
        return Operational(self.root)

    def stopped(self, rig: str = "") -> bool:
        """Whether an emergency stop stands, for the whole town or for this rig.

        Args:
            rig: its name; empty for the whole town alone.
        """
        return (self.root / "ESTOP").exists() or bool(rig and (self.root / f"ESTOP.{rig}").exists())

    @property
    def socket(self) -> str:
        """The name of the town's tmux socket, derived as Gas Town derives it; ``$TMUX`` plays no part."""
        return self.tmux_place[0]

    @property
    def tmux_place(self) -> tuple[str, str]:
        """The tmux socket's name and the value of ``TMUX_TMPDIR`` for it (empty for tmux's default).

        Where the town's polecats were spawned is remembered, so that a patrol run by cron finds them whatever its own
        environment says.
        """
        try:
            raw = read_json(self.runtime / _TMUX_PLACE, below=self.runtime)
            return typed(raw, "socket", str), typed(raw, "directory", str)
        except (OSError, ValueError):
            return self._tmux_place_here()

    def _tmux_place_here(self) -> tuple[str, str]:
        given = os.environ.get("GT_TMUX_SOCKET", "")
        socket = derive_socket(self.root) if given in ("", "default", "auto") else given
        return socket, os.environ.get("TMUX_TMPDIR", "")

    def keep_tmux_place(self) -> None:
        """Remember where tmux is now, unless that is known: for a polecat that was found there."""
        if not (self.runtime / _TMUX_PLACE).exists():
            self.remember_tmux()

    def remember_tmux(self) -> None:
        """Remember where tmux is now; for a spawn into a town without living polecats."""
        socket, directory = self._tmux_place_here()
        text = json.dumps({"socket": socket, "directory": directory})
        replace_file(self.make_runtime() / _TMUX_PLACE, text, durable=False, below=self.runtime)


def _of_polecat_at(place: Path) -> Path | None:
    """The town of a living polecat of ours that works in a folder or above it, as its own environment says.

    Asked last, when a person stands in an agent's folder outside of any town. An environment can be forged, so the town
    must know that very run.
    """
    import psutil

    for process in psutil.process_iter():
        try:
            if process.uids().real != os.getuid():
                continue
            environ = process.environ()
        except (psutil.Error, OSError):
            continue
        root, group, works = (environ.get(name, "") for name in ("GT_TOWN_ROOT", MARKER_VARIABLE, "GT_POLECAT_PATH"))
        if not (root and group and works and place.is_relative_to(works)):
            continue
        run = GroupId.from_marker(group)
        if run and Town.is_town(Path(root)) and (Path(root) / ".runtime" / "witness" / "runs" / run.run).is_dir():
            return Path(root)
    return None


def derive_socket(root: Path) -> str:
    """Gas Town's socket name: the directory's name made safe, and six hex digits of its real path's SHA-256."""
    try:
        canonical = os.path.realpath(root, strict=True)
    except OSError:
        canonical = os.path.abspath(root)  # noqa: PTH100
    base = re.sub(r"[^a-z0-9-]+", "-", root.name.lower()).strip("-") or "default"
    base = base[:_LONGEST_BASE]
    import hashlib

    return f"{base}-{hashlib.sha256(canonical.encode()).hexdigest()[:6]}"
