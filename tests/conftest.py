"""What every test stands on: an environment built from nothing, and a proof that nothing is left behind."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# A loaded machine draws examples slowly; that says nothing about what is tested.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

_KEPT = {
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "CI",
    "PYTHONDONTWRITEBYTECODE",
}


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No inherited keys, no TMUX*, CLAUDE*, ANTHROPIC_* or GT_*: a test says itself what it needs."""
    for name in list(os.environ):
        if name not in _KEPT and not name.startswith("PYTEST_"):
            monkeypatch.delenv(name)
