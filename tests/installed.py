"""Packages with entry points, as pip would leave them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from witness import installed
from witness.agents import clients


@contextmanager
def package(site: Path, source: str, group: str, names: Mapping[str, str]) -> Iterator[str]:
    """A package on the path while the context lasts.

    Args:
        site: a folder of its own.
        source: the text of its one module.
        group: of its entry points.
        names: what each of them names, with ``{module}`` for the module.

    Yields:
        The module's name.
    """
    name = f"gtw_package_{os.getpid()}"
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (site / f"{name}.py").write_text(source)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    rows = [f"{key} = {value.format(module=name)}" for key, value in names.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *rows]))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(site)
        _forget(name)
        try:
            yield name
        finally:
            _forget(name)


def _forget(name: str) -> None:
    sys.modules.pop(name, None)
    installed.entries.cache_clear()
    clients.installed_clients.cache_clear()
