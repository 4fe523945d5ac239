"""A cache of the test's own, and texts made of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sidecars.distill.artifact import Artifacts
from sidecars.distill.request import Deadline
from sidecars.distill.text import Text
from sidecars.distill.text_pool import TextPool


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing is read from or left in the user's own cache and state."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "cache"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[bytes], Text]]:
    """Make an artifact of some bytes and open it."""
    with ExitStack() as stack:

        def make(content: bytes, name: str = "artifact.log") -> Text:
            path = tmp_path / name
            path.write_bytes(content)
            artifacts = stack.enter_context(Artifacts([path]))
            return stack.enter_context(Text(artifacts, str(path), Deadline(60)))

        yield make


@pytest.fixture
def shelved(tmp_path: Path) -> Iterator[Callable[..., TextPool]]:
    """Make artifacts of some bytes and put them on a shelf; called by name."""
    with ExitStack() as stack:

        def make(**contents: bytes) -> TextPool:
            folder = tmp_path / "shelf"
            folder.mkdir(exist_ok=True)
            paths = []
            for name, content in contents.items():
                path = folder / name.replace("_", ".")
                path.write_bytes(content)
                paths.append(path)
            artifacts = stack.enter_context(Artifacts(paths))
            return stack.enter_context(TextPool(artifacts, Deadline(60)))

        yield make
