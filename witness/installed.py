"""What other packages add to this one by entry points: judges and clients. Nothing of it is imported before it is used.

Looking for them costs some 10 ms of a process, so that it is done for a name that is not ours, and by no hook.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from witness.errors import WitnessError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

JUDGES, CLIENTS = "gt_witness.judges", "gt_witness.clients"
_LONGEST = 300


@cache
def entries(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name, none of them imported; as they are when they are first asked for."""
    from importlib.metadata import entry_points

    return {each.name: each for each in entry_points(group=group)}


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
