"""The settings that count: of a town that came with a repository, data; the rest once it is trusted.

A clone can bring a ``town.yaml`` and settings of its own, and whoever stands in it is in that town. So what of them
would run a program, spend, reach outside, or change how polecats are supervised asks first, like what a project
declares of sidecars. A town that lies in no repository is its user's own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from witness.config.rigs import read_town_file
from witness.config.settings import Settings, load_settings
from witness.files import repository_of
from witness.trust.asking import Asking
from witness.trust.definition import digest_of
from witness.trust.effects import RIG, SETTINGS, Effect, raises
from witness.trust.pins import Pins

FILE = Path("settings") / "witness.yaml"


def trusted_settings(town: Path, rig: str = "") -> Settings:
    """The settings of a town and a rig, as far as they count.

    Raises:
        DeclarationError: as ``load_settings``.
    """
    return load_settings(town, rig, _held)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value was read.

    Args:
        path: the file.
        value: as the file gives it.
        counts: whether it holds; one that came with a repository asks for trust first.
    """

    path: Path
    value: Any
    counts: bool


def settings_with_sources(town: Path, rig: str = "") -> tuple[Settings, dict[str, list[Source]]]:
    """The settings that count, and every place that gives a key a value, the farthest first.

    Raises:
        DeclarationError: as ``load_settings``.
    """
    sources: dict[str, list[Source]] = {}

    def look(path: Path, values: Mapping[str, Any], below: Settings) -> Collection[str]:
        held = _held(path, values, below)
        for key, value in values.items():
            sources.setdefault(key, []).append(Source(path, value, key not in held))
        return held

    return load_settings(town, rig, look), sources


def withheld_settings(town: Path, rig: str = "") -> list[str]:
    """One line for each file of settings that does not count as a whole, and for a rig that leads elsewhere.

    Raises:
        DeclarationError: as ``load_settings``.
    """
    found = [each for root in _roots(town, rig) if (each := settings_asking(root, town, rig)) is not None]
    return [each.withheld() for each in found if not each.counts]


def settings_asking(root: Path, town: Path, rig: str = "") -> Asking | None:
    """What the settings in a town's or a rig's folder ask for; None where they ask for nothing.

    Raises:
        DeclarationError: as ``load_settings``.
    """
    seen: list[Asking] = []

    def look(path: Path, values: Mapping[str, Any], below: Settings) -> Collection[str]:
        asking = _judged(path, values, below)
        if asking and path == root / FILE:
            seen.append(asking)
        return asking.asks if asking and not asking.counts else ()

    load_settings(town, rig, look)
    return seen[0] if seen else None


def rig_askings(town: Path) -> dict[str, Asking]:
    """The rigs of a town within a repository whose code lies outside of it, by name: polecats would work there."""
    top = repository_of(town)
    if top is None:
        return {}
    file, found = town / "town.yaml", {}
    for name, path in read_town_file(file)[1].items():
        if RIG["path"] is Effect.REACHES and not path.resolve().is_relative_to(top.resolve()):
            digest = digest_of(["rig", name, str(path)])
            asks = {f"rigs.{name}.path": f"lets polecats work in {path}"}
            found[name] = Asking(file, f"rig {name}", asks, digest, {}, Pins().hold(file, digest))
    return found


def _roots(town: Path, rig: str) -> list[Path]:
    return [town, town / rig] if rig else [town]


def _held(path: Path, values: Mapping[str, Any], below: Settings) -> Collection[str]:
    asking = _judged(path, values, below)
    return asking.asks if asking and not asking.counts else ()


def _judged(path: Path, values: Mapping[str, Any], below: Settings) -> Asking | None:
    if repository_of(path.parent) is None:
        return None
    asked = {key: value for key, value in values.items() if _asks(key, value, getattr(below, key))}
    if not asked:
        return None
    digest = digest_of(["settings", asked])
    words = {key: f"{_WORDS.get(SETTINGS[key], 'sets')} {value!r}" for key, value in asked.items()}
    return Asking(path, "settings", words, digest, {}, Pins().hold(path, digest))


_WORDS = {Effect.RUNS: "lets run", Effect.REACHES: "reaches", Effect.SPENDS: "spends by"}


def _asks(key: str, value: Any, before: Any) -> bool:
    effect = SETTINGS.get(key, Effect.CHANGES)
    if effect is Effect.DATA or value == before:
        return False
    return raises(effect, value, before) if effect in (Effect.UP, Effect.DOWN) else True
