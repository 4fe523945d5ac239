from __future__ import annotations

from pathlib import Path

import pytest

from sidecars.memory.store import MemoryStore
from witness.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> MemoryStore:
    return MemoryStore(tmp_path, clock)
