"""What other packages add to this one by entry points: judges and clients. Nothing of it is imported before it is used.

Looking for them costs some 10 ms of a process, so that it is done for a name that is not ours, by no hook, and only
where a file of the installed packages names the group at all.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

from witness.errors import WitnessError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

JUDGES, CLIENTS = "gt_witness.judges", "gt_witness.clients"
_LONGEST = 300


@cache
def entries(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name, none of them imported; as they are when they are first asked for."""
    if not _are_there(group):
        return {}
    from importlib.metadata import entry_points

    return {each.name: each for each in entry_points(group=group)}


def _are_there(group: str) -> bool:
    """Whether an installed package may have entry points of a group; yes where that cannot be told from files alone."""
    if any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path):
        return True
    for place in sys.path:
        try:
            names = os.listdir(place or ".")  # noqa: PTH208 - pathlib takes longer than the search
        except NotADirectoryError:
            return True  # an archive: only its own reader knows
        except OSError:
            continue
        for name in names:
            if not name.endswith((".dist-info", ".egg-info", ".egg")):
                continue
            inside = "EGG-INFO/entry_points.txt" if name.endswith(".egg") else "entry_points.txt"
            try:
                with open(os.path.join(place, name, inside), "rb") as file:  # noqa: PTH118, PTH123 - as above
                    if group.encode() in file.read():
                        return True
            except FileNotFoundError:
                continue
            except OSError:
                # An .egg may be an archive, a lone .egg-info of an old tool is a file and says nothing of entry points.
                if not name.endswith(".egg-info"):
                    return True
    return False


def load(found: EntryPoint, check: type | None = None) -> Any:
    """Import what an entry point names.

    Args:
        found: the entry point.
        check: what it has to be an instance of; anything when None.

    Raises:
        WitnessError: it cannot be imported, or is something else; one line names its package.
    """
    try:
        value = found.load()
        if check and not isinstance(value, check):
            raise TypeError(f"it is {type(value).__name__}, and no witness.{check.__name__}")
    except BaseException as error:
        words = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST]
        raise WitnessError(f"{describe(found)} cannot be used: {words}") from error
    return value


def describe(found: EntryPoint) -> str:
    """An entry point, its place and its package, for people."""
    package = f" of {found.dist.name}" if found.dist else ""
    return f"{found.group}: {found.name} = {found.value}{package}"
