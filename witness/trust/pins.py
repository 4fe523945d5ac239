"""What the user has trusted: by place and content, kept outside of every repository and town."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from witness.errors import WitnessError
from witness.files import locked, make_folder, read_json, read_text, replace_file, typed

_FILE = "trust.json"
_LARGEST = 4 << 20
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class Pin:
    """One thing that is trusted.

    Args:
        path: the type's folder or the settings file, links resolved.
        digest: of its content.
        asks: what it asked for, by field.
        time: wall clock of when it was trusted.
        repository: the repository's own folder, shared by all its worktrees; empty outside of any.
        inside: the path within the work tree.
        what: which part of it, where one file holds several.
    """

    path: str
    digest: str
    asks: Mapping[str, str]
    time: float = 0.0
    repository: str = ""
    inside: str = ""
    what: str = ""


class Pins:
    """The user's own file of what is trusted.

    Args:
        folder: where it is; the user's state folder when None.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or state_folder()

    @property
    def path(self) -> Path:
        return self._folder / _FILE

    def all(self) -> list[Pin]:
        """Everything that is trusted.

        Raises:
            WitnessError: the file is not what we wrote: nothing is trusted until somebody has looked.
        """
        try:
            raw = read_json(self.path, _LARGEST)
            return [_pin(each) for each in typed(raw, "trusted", list)]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except (OSError, ValueError) as error:
            raise WitnessError(f"{self.path} cannot be read: {error}: mend it, or remove it and trust anew") from error

    def add(self, subject: Path, digest: str, asks: Mapping[str, str], what: str = "") -> Pin:
        """Trust this content in this place, and no other content there.

        Raises:
            WitnessError: it cannot be recorded.
        """
        repository, inside = _within(subject)
        pin = Pin(str(subject.resolve()), digest, dict(asks), time.time(), repository, inside, what)
        with self._changing() as pins:
            pins[pin.path, pin.what] = pin
        return pin

    def drop(self, subject: Path) -> list[Pin]:
        """Trust neither this place nor anything below it; returns what was trusted there.

        Raises:
            WitnessError: it cannot be recorded.
        """
        place = subject.resolve()
        with self._changing() as pins:
            gone = [pin for pin in pins.values() if Path(pin.path).is_relative_to(place)]
            for pin in gone:
                del pins[pin.path, pin.what]
        return gone

    def hold(self, subject: Path, digest: str) -> bool:
        """Whether this content is trusted in this place, or in another work tree of the same repository."""
        pins = [pin for pin in self.all() if pin.digest == digest]
        if not pins:
            return False
        place, (repository, inside) = str(subject.resolve()), _within(subject)
        return any(
            pin.path == place or (repository and (pin.repository, pin.inside) == (repository, inside)) for pin in pins
        )

    def knows(self, subject: Path) -> bool:
        """Whether some content was trusted in this place."""
        return any(pin.path == str(subject.resolve()) for pin in self.all())

    @contextmanager
    def _changing(self) -> Iterator[dict[tuple[str, str], Pin]]:
        try:
            make_folder(self._folder, below=_existing(self._folder))
            with locked(f"{self.path}.lock", _PATIENCE) as held:
                if held is None:
                    raise WitnessError(f"{self.path} is being changed by somebody else for {_PATIENCE:.0f} s")
                pins = {(pin.path, pin.what): pin for pin in self.all()}
                yield pins
                replace_file(self.path, _text(pins))
        except OSError as error:
            raise WitnessError(f"{self.path} cannot be written: {error}") from error


def state_folder() -> Path:
    """Our folder for what the user has decided for good; no town and no repository holds it."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".local" / "state") / "gt-witness"  # noqa: PTH117


def _existing(folder: Path) -> Path:
    return next(place for place in folder.parents if place.is_dir())


def _text(pins: Mapping[tuple[str, str], Pin]) -> str:
    import json

    rows = [
        {
            "path": pin.path,
            "digest": pin.digest,
            "asks": dict(pin.asks),
            "time": pin.time,
            "repository": pin.repository,
            "inside": pin.inside,
            "what": pin.what,
        }
        for pin in pins.values()
    ]
    return json.dumps({"trusted": rows}, indent=1)


def _pin(raw: Any) -> Pin:
    asks = typed(raw, "asks", dict, {})
    return Pin(
        path=typed(raw, "path", str),
        digest=typed(raw, "digest", str),
        asks={str(key): str(value) for key, value in asks.items()},
        time=typed(raw, "time", float, 0.0),
        repository=typed(raw, "repository", str, ""),
        inside=typed(raw, "inside", str, ""),
        what=typed(raw, "what", str, ""),
    )


def _within(subject: Path) -> tuple[str, str]:
    """(the folder that all work trees of the repository share, the path within this one); empty outside of any."""
    place = subject.resolve()
    top = next((each for each in place.parents if (each / ".git").exists()), None)
    if top is None:
        return "", ""
    inside, git = place.relative_to(top).as_posix(), top / ".git"
    if git.is_dir():
        return str(git), inside
    try:
        # A linked work tree: a file that names its own folder, which names the shared one.
        own = top / read_text(git, owners=()).strip().removeprefix("gitdir:").strip()
        return str((own / read_text(own / "commondir", owners=()).strip()).resolve()), inside
    except (OSError, ValueError):
        return "", ""
