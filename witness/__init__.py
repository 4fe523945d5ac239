"""gt-witness: spawns coding agents in tmux together with their sidecars, keeps them alive, ends them completely.

from witness import Town, Witness

with Witness(Town.find()) as witness:
    witness.spawn("toast", molecule="mol-demo", workdir="repo")
    witness.patrol()
    witness.nuke(["toast"])
"""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["Molecule", "SpawnRequest", "Town", "Witness", "__version__"]

# `typing` costs as much as all the rest of handing a command over to the real gt.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from witness.api import Witness
    from witness.config.town import Town
    from witness.declare.molecule import Molecule
    from witness.launch.spawn_request import SpawnRequest

_HOMES = {
    "Molecule": "witness.declare.molecule",
    "SpawnRequest": "witness.launch.spawn_request",
    "Town": "witness.config.town",
    "Witness": "witness.api",
}


def __getattr__(name: str) -> Any:
    # Sidecars import witness.clock and the like many times a night; they must not pay for the whole package.
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
