"""The real Gas Town: one town for the tests that change nothing of it for each other, others as they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gastown.observed import until_observed
from tests.gastown.real_town import GIVEN, PROGRAMS, RealPolecat, RealTown, programs, real_town
from witness.api import Witness


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.gastown)
            item.add_marker(pytest.mark.timeout(300))
            if programs() is None:
                item.add_marker(pytest.mark.skip(reason=_why()))


def _why() -> str:
    wanted = f"a folder with the real {', '.join(PROGRAMS[:-1])} and {PROGRAMS[-1]}"
    if not GIVEN:
        return f"GASTOWN_BIN is not set: make e2e-gastown GASTOWN_BIN=DIR, {wanted}"
    return f"GASTOWN_BIN={GIVEN} is not {wanted}"


@pytest.fixture(scope="session")
def gastown() -> Iterator[RealTown]:
    """The town that the tests share; each slings a polecat of its own."""
    yield from real_town()


@pytest.fixture
def bare_town() -> Iterator[RealTown]:
    """A town without beads, for queues and sessions."""
    yield from real_town(beads=False)


@pytest.fixture
def environment(gastown: RealTown, monkeypatch: pytest.MonkeyPatch) -> None:
    """This very process works in the shared town."""
    for name in ("HOME", "PATH", "GT_DOLT_PORT", "TMUX_TMPDIR"):
        monkeypatch.setenv(name, gastown.environment[name])


@pytest.fixture
def witness(gastown: RealTown, environment: None) -> Iterator[Witness]:
    with Witness(gastown.town, environ={}) as witness:
        yield witness


@pytest.fixture
def observed(gastown: RealTown, witness: Witness) -> RealPolecat:
    """A polecat with a scope sidecar that observes it."""
    polecat = gastown.sling("--var", "sidecars=scope")
    until_observed(gastown, witness, polecat)
    return polecat
