"""``gc-runtime-witness`` by Gas City's runtime protocol: what that wants of a program, and sidecars in its sessions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.gas_town import end_town
from tests.waiting import until
from witness.config.resources import molecules_dir
from witness.config.town import Town

ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = "from witness.cli.gas_city import main; main()"


class City:
    """Calls the program as Gas City does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.town = folder / "witness"

    def run(self, *args: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "GC_EXEC_STATE_DIR": str(self.folder),
            **env,
        }
        return subprocess.run(
            [sys.executable, "-P", "-c", _PROGRAM, *args], input=stdin, env={**environment, "PYTHONPATH": str(ROOT)},
            cwd=self.folder, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def says(self, *args: str, stdin: str = "") -> str:
        done = self.run(*args, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout.rstrip("\n")

    def start(self, name: str, **config: object) -> subprocess.CompletedProcess[str]:
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        return self.run("start", name, stdin=json.dumps({"work_dir": str(work), "command": "sleep 600", **config}))


@pytest.fixture
def city(tmp_path: Path) -> Iterator[City]:
    city = City(tmp_path)
    yield city
    if (city.town / "town.yaml").exists():
        end_town(Town.at(city.town))


def test_the_handshake_and_what_is_not_known(city: City) -> None:
    assert json.loads(city.says("protocol")) == {"version": 0, "capabilities": []}
    for operation in ("send-keys", "_group", "", "--help", "provision"):
        assert city.run(operation, "x").returncode == 2
    assert city.run("set-meta", "x").returncode == 1


def test_the_life_of_a_session_as_the_contract_wants_it(city: City) -> None:
    """Start, once; running; its processes; its meta; the end, twice; and one that never was."""
    name = "bright/lights--mayor"
    started = city.start(
        name, env={"GC_AGENT": "mayor", "GC_WITNESS_SIDECARS": "scope"}, pre_start=["echo set up; exit 3"]
    )
    assert started.returncode == 0, started.stderr
    assert "exit code 3" in started.stderr, "a step of the set-up that fails is told and stops nothing"
    assert city.says("is-running", name) == "true"
    again = city.start(name)
    assert (again.returncode, "runs already" in again.stderr) == (1, True)
    assert city.says("process-alive", name, stdin="node\nsleep\n") == "true"
    assert city.says("process-alive", name, stdin="nothing\n") == "false"
    assert city.says("list-running", "bright/") == name
    assert city.says("list-running", "other") == ""
    city.says("set-meta", name, "k", stdin="two\nlines")
    assert city.says("get-meta", name, "k") == "two\nlines"
    city.says("remove-meta", name, "k")
    assert city.says("get-meta", name, "k") == ""
    assert city.says("peek", name, "20") == city.says("peek", name, "20")
    city.says("nudge", name, stdin="hello")
    town = Town.at(city.town)
    (agent,) = [p for p in _processes(city) if p["sidecars"]]
    assert [each["name"] for each in agent["sidecars"]] == ["scope"]
    city.says("stop", name)
    assert city.says("is-running", name) == "false"
    city.says("stop", name)
    for operation in ("stop", "interrupt", "nudge"):
        city.says(operation, "never-was", stdin="x")
    assert city.says("is-running", "never-was") == "false"
    assert city.says("list-running") == ""
    assert town.journal_path.exists()


def test_names_that_differ_only_in_what_a_polecat_cannot_bear_are_two_sessions(city: City) -> None:
    assert city.start("a/b").returncode == 0
    assert city.says("is-running", "a-b") == "false"
    assert city.start("a-b").returncode == 0
    city.says("stop", "a/b")
    assert city.says("list-running") == "a-b"
    city.says("interrupt", "a-b")
    until(lambda: city.says("is-running", "a-b") == "false", "the end by Ctrl-C", every=0.2)
    city.says("stop", "a-b")


def test_a_start_that_cannot_be_is_one_line(city: City) -> None:
    for stdin in ("no json", json.dumps({"work_dir": "/nonexistent", "command": "sleep 1"})):
        done = city.run("start", "x", stdin=stdin)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert city.says("is-running", "x") == "false"


def test_the_pack_declares_it() -> None:
    pack = tomllib.loads((molecules_dir() / "gas-city" / "pack.toml").read_text())
    assert pack["runtimes"]["witness"] == {"command": "gc-runtime-witness", "protocol": 0}
    assert city_pack_folder() == molecules_dir() / "gas-city"
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["gc-runtime-witness"] == "witness.cli.gas_city:main"


def city_pack_folder() -> Path:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, "pack"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return Path(done.stdout.strip())


def _processes(city: City) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "witness.cli", "polecat", "list", "--json"], cwd=city.town, capture_output=True,
        text=True, check=True, env={"PATH": os.environ["PATH"], "HOME": str(city.folder), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found
