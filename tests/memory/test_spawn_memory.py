"""``gt polecat spawn --memory``: what the polecat is given, with a scripted client in real tmux."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from sidecars.memory.store import MemoryStore
from tests.scripts import with_our_packages
from tests.waiting import until
from witness.api import Witness
from witness.cli import main
from witness.cli.memory_options import memory_provider
from witness.config.town import Town
from witness.errors import UsageError
from witness.journal import GroupState
from witness.launch.spawn_request import SpawnRequest, prepare
from witness.testing import make_town, supervised

_FACT = "the queue drops messages above 64 KB"

# Stands where the client would: writes down what it was started with, remembers something, and is done.
_CLIENT = f"""{with_our_packages()}import json, os, subprocess, sys
own = {{name: value for name, value in os.environ.items() if name.startswith("GT_MEMORY")}}
with open(os.environ["GT_RUN"] + ".started.new", "w") as file:
    json.dump({{"argv": sys.argv[1:], "environment": own}}, file)
os.rename(file.name, file.name.removesuffix(".new"))
for command in (["memory", "add", "ada", {_FACT!r}], ["done"]):
    subprocess.run([sys.executable, "-m", "witness.cli", *command], check=True)
sys.stdin.read()
"""


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return make_town(tmp_path / "a town")


def _client(town: Town) -> str:
    program = town.root / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(_CLIENT)
    program.chmod(0o700)
    return shlex.join([str(program)])


def _live(witness: Witness, town: Town, client: str, task: str) -> dict[str, Any]:
    repo = town.root / "repo"
    order: dict[str, Any] = {
        "workdir": repo,
        "task": task,
        "agent": client,
        "memory": "ada",
        "memory_provider": memory_provider,
    }
    run = witness.spawn("toast", **order).group.run

    def ended() -> bool:
        group = witness.journal.groups.get(run)
        return group is not None and group.state is GroupState.NUKED

    until(ended, "the Witness did not end the group", 40)
    started = json.loads((repo / f"{run}.started").read_text())
    assert isinstance(started, dict)
    return started | {"settings": json.loads((town.run_dir(run) / "settings.json").read_text())}


@pytest.mark.real
def test_the_second_run_is_started_with_what_the_first_learned(town: Town) -> None:
    client = _client(town)
    with supervised(town) as witness:
        first = _live(witness, town, client, "mend the queue")
        second = _live(witness, town, client, "mend the queue again")
    assert "gt memory add ada" in first["argv"][0]
    assert _FACT not in first["argv"][0]
    assert f'"{_FACT}"' in second["argv"][0]
    assert first["environment"] == {"GT_MEMORY_ROOT": str(town.root / "repo"), "GT_MEMORY_AGENT": "ada"}
    for event in ("SessionStart", "PreCompact", "SessionEnd"):
        # A client that does not tell its version is given hooks as one line.
        commands = [
            hook.get("args") or shlex.split(hook["command"])
            for entry in first["settings"]["hooks"][event]
            for hook in entry["hooks"]
        ]
        assert commands[-1][-3:] == ["memory", "hook", "ada"]
        assert len(commands) > 1
    # This client told no end: the second start has saved the first run.
    assert MemoryStore(town.root / "repo").read("ada").sessions_participated == 1


@pytest.mark.real
def test_a_memory_that_cannot_be_had_starts_nothing(town: Town) -> None:
    with supervised(town) as witness:
        with pytest.raises(UsageError, match="not a usable name"):
            witness.spawn(
                "toast", workdir=town.root / "repo", agent=_client(town), memory="../x", memory_provider=memory_provider
            )
        assert witness.polecats() == []
    assert not (town.root / "repo" / "_mdan").exists()


def test_a_molecule_gives_a_memory_and_the_flag_beats_it(town: Town) -> None:
    molecule = town.root / "m.toml"
    molecule.write_text('[vars.memory]\ndescription = "whose"\ndefault = "ada"\n')

    def memory(**more: Any) -> str:
        order = SpawnRequest("toast", workdir=town.root / "repo", molecule=str(molecule), agent="sh", **more)
        return prepare(town, order).memory

    assert memory(memory_provider=memory_provider) == "ada"
    assert memory(memory_provider=memory_provider, variables={"memory": "bob"}) == "bob"
    assert memory(memory_provider=memory_provider, memory="eve", variables={"memory": "bob"}) == "eve"


@pytest.mark.real
def test_a_running_polecat_is_told_through_its_queue(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = town.root / "repo"
    monkeypatch.chdir(repo)
    MemoryStore(repo).change("ada", "add", "s", {"content": _FACT})
    with supervised(town) as witness:
        spawned = witness.spawn("toast", workdir=repo, agent="sleep 600")
        main(["memory", "load", "ada", "--target", "toast"])
        waiting = [json.loads(path.read_text()) for path in town.queue_dir(spawned.session).glob("*.json")]
    assert [_FACT in each["message"] for each in waiting] == [True]
    assert MemoryStore(repo).read("ada").books.sessions[spawned.group.run].holder == spawned.group.address
