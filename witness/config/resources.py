"""Where the files that ride along with the code are: hooks, molecules, documents."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def _shipped(name: str) -> Path:
    # An installed wheel carries them inside the package; a checkout has them at its top.
    inside = _PACKAGE / "_data" / name
    return inside if inside.is_dir() else _PACKAGE.parent / name


def hooks_dir() -> Path:
    """The folder of the programs that run inside the agent's client."""
    return _shipped("hooks")


def docs_dir() -> Path:
    """The folder of the documents."""
    return _shipped("docs")


def molecules_dir() -> Path:
    """The folder of the molecules that are shipped as examples."""
    return _shipped("molecules")
