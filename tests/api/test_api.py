"""The public interface, as a program uses it."""

from __future__ import annotations

import asyncio
import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import witness as public
from witness import (
    AsyncWitness,
    Channel,
    Client,
    DeclarationError,
    GroupId,
    GroupState,
    JudgeContext,
    NotFoundError,
    Observation,
    Problem,
    Ran,
    Report,
    SpawnError,
    TmuxError,
    TownEvent,
    TownLockedError,
    TownNotFoundError,
    Witness,
)
from witness.api.events import Snapshot
from witness.testing import make_town, supervised

AGENT = [sys.executable, "-c", "import signal; print('agent is up', flush=True); signal.pause()"]


def test_every_public_name_is_there() -> None:
    assert all(getattr(public, name) is not None for name in public.__all__)


@pytest.mark.parametrize(
    "error",
    [
        NotFoundError("polecat", "toast", "see the list"),
        DeclarationError([Problem("wrong", "a.toml", 3, "vars")]),
        TownNotFoundError("/x"),
        SpawnError("toast", "it ended", (1, 2)),
        TmuxError("new-session", "no"),
        TownLockedError(7),
    ],
)
def test_errors_survive_pickling(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(again) is type(error)
    assert (str(again), again.__dict__) == (str(error), error.__dict__)


@pytest.mark.parametrize(
    "value",
    [
        Report("No.", "print("),
        JudgeContext("own", (("a.md", "text"),)),
        Observation("e1", tool="Edit", written=("a.py",), ran=(Ran(("ls",)),)),
        Client("crew", "Crew", ("crew",), Channel.PANE, prompt=re.compile("> (.*)")),
        GroupId("main", "toast", "ab"),
        GroupState.RUNNING,
    ],
)
def test_values_survive_pickling(value: object) -> None:
    assert pickle.loads(pickle.dumps(value)) == value  # noqa: S301 - our own bytes


def test_a_bare_string_is_no_list_of_names(tmp_path: Path) -> None:
    with Witness(make_town(tmp_path / "town"), environ={}) as witness, pytest.raises(TypeError, match="list of names"):
        witness.nuke("toast")


def test_a_misspelt_keyword_is_found_by_the_type_checker(tmp_path: Path) -> None:
    calls = [f"Witness(Town.find()).spawn('toast', {keyword}='scope')" for keyword in ("sidecars", "sidecar")]
    (tmp_path / "calls.py").write_text("\n".join(["from witness import Town, Witness", *calls]) + "\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "calls.py"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    found = [line for line in ran.stdout.splitlines() if "error:" in line]
    assert len(found) == 1, ran.stdout
    assert found[0].startswith("calls.py:3: ")
    assert 'Unexpected keyword argument "sidecar"' in found[0]


def test_from_spawn_to_end_from_several_threads(tmp_path: Path) -> None:
    town = make_town(tmp_path / "a town")
    with supervised(town) as witness:
        seen: list[object] = []
        up = threading.Event()

        def follow() -> None:
            for event in witness.events():
                seen.append(event)
                up.set()
                if isinstance(event, TownEvent) and event.event.kind == "nuked":
                    return

        follower = threading.Thread(target=follow)
        follower.start()
        assert up.wait(20)
        spawned = witness.spawn("toast", workdir=town.root / "repo", agent=AGENT, sidecars=["conventions"])
        assert isinstance(seen[0], Snapshot)
        assert {each.pid for each in witness.processes("toast")} >= {spawned.agent.pid}
        result = witness.nudge("toast", "the spec has moved", mode="queue")
        assert (result.delivered, result.group.id) == (False, spawned.group)
        pickle.dumps((spawned, result, seen[0]))
        witness.wait("toast", {GroupState.RUNNING}, seconds=30)
        ends = threading.Thread(target=lambda: witness.nuke(["toast"]))
        ends.start()
        assert witness.wait("toast", seconds=30).state is GroupState.NUKED
        ends.join()
        follower.join(30)
        assert not follower.is_alive()
        with pytest.raises(TimeoutError, match="NUKED after 0 s, not RUNNING"):
            witness.wait("toast", {GroupState.RUNNING}, seconds=0)


def test_an_event_loop_is_not_held_up(tmp_path: Path) -> None:
    town = make_town(tmp_path / "town")

    async def go() -> None:
        async with AsyncWitness(town, environ={}) as witness:
            waiting = asyncio.create_task(_first(witness))
            await witness.spawn("toast", workdir=town.root / "repo", agent=AGENT, sidecars="")
            assert (await witness.find("toast")).id.polecat == "toast"
            await waiting
            (ended,) = await witness.nuke(["toast"])
            assert ended.result is not None
            assert not ended.result.survivors

    with supervised(town):
        asyncio.run(go())


async def _first(witness: AsyncWitness) -> None:
    async for event in witness.events():
        assert isinstance(event, Snapshot)
        return
