from __future__ import annotations

from pathlib import Path

import pytest

from sidecars.memory.store import MemoryStore
from tests.memory.cli import Cli
from witness.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> MemoryStore:
    return MemoryStore(tmp_path, clock)


@pytest.fixture
def gt(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return Cli(tmp_path, capsys)
