"""Fixtures for pytest: ``pytest_plugins = ["witness.testing.fixtures"]`` in a ``conftest.py``. It needs pytest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from witness.api import Witness
from witness.testing.messages_server import MessagesServer
from witness.testing.towns import make_town, supervised


@pytest.fixture
def messages_server() -> Iterator[MessagesServer]:
    """A running ``MessagesServer`` for sidecars and other callers of a model."""
    with MessagesServer() as server:
        yield server


@pytest.fixture
def scratch_witness(tmp_path: Path) -> Iterator[Witness]:
    """A ``Witness`` of a scratch town, whose ``town`` has a repository under ``repo``; nothing of it outlives the test.

    Error of the test: something did.
    """
    with supervised(make_town(tmp_path / "town")) as witness:
        yield witness
