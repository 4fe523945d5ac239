"""``witness/cli/gt``, which stands before Gas Town's gt: whose command is whose, from names and folders alone."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.gas_town import make_gas_town
from tests.cli.stand_in import StandIn
from witness.cli.commands import COMMANDS, SHARED

ROOT = Path(__file__).resolve().parents[2]
FRONT = ROOT / "witness" / "cli" / "gt"


@dataclass(frozen=True)
class Place:
    """A town, our two programs before the real one, and what is called."""

    town: Path
    bin: Path
    real: StandIn

    def whose(self, *args: str, cwd: Path | None = None, path: Sequence[Path] | None = None, **more: str) -> str:
        """``ours ARGS`` or ``theirs ARGS``, whichever program got the call."""
        folders = [self.bin, self.real.folder] if path is None else path
        environment = {"HOME": "/nonexistent", "PATH": ":".join(map(str, [*folders, "/usr/bin", "/bin"])), **more}
        before = len(self.real.calls)
        done = subprocess.run(
            [self.bin / "gt", *args], env=environment, cwd=cwd or self.town, capture_output=True, text=True, check=False
        )
        if len(self.real.calls) > before:
            return " ".join(["theirs", *self.real.calls[-1]["args"]])
        return done.stdout.strip() or done.stderr.strip()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    town = make_gas_town(tmp_path / "town", "gastown/Toast").root
    folder = tmp_path / "our bin"
    folder.mkdir()
    shutil.copy(FRONT, folder / "gt")
    (folder / "gt-witness").write_text('#!/bin/sh\necho "ours $*"\n')
    (folder / "gt-witness").chmod(0o755)
    return Place(town, folder, StandIn(tmp_path / "real"))


def _ours(*args: str) -> str:
    return " ".join(["ours", *args])


@pytest.mark.parametrize(
    "line",
    [
        "--version", "--help", "", "help", "help polecat", "prime --hook", "mail check --inject", "sling gt-1 gastown",
        "tap polecat-stop-check", "done", "done --status DEFERRED", "doctor", "doctor --fix", "init", "init --force",
        "polecat", "polecat --help", "polecat list --json --all", "polecat list gastown", "polecat git-state gastown/x",
        "polecat status gastown/Toast --json", "polecat nuke gastown --all", "polecat nuke --help",
        "nudge mayor hello", "nudge gastown/Toast hello", "nudge -m hello gastown/polecats/Toast", "nudge channel:x y",
        "nudge --help", "peek gastown/crew/max", "peek deacon -n 50", "peek -n 50 gastown/Toast",
        "peek gastown/witness", "config agent list", "config set a b", "metrics",
        "witness", "witness status gastown", "witness start gastown", "witness attach", "witness status --help",
        "hooks", "hooks sync", "hooks install guard --role crew", "molecule", "molecule status", "completion bash",
    ],
)  # fmt: skip
def test_what_gas_town_has_too_is_gas_towns(place: Place, line: str) -> None:
    assert place.whose(*line.split()) == " ".join(["theirs", *line.split()])


@pytest.mark.parametrize(
    "line",
    [
        "state", "sidecar log gastown/Toast", "polecat spawn scout --help", "polecat list --since 1h",
        "doctor --bundle", "config show",
        "doctor --json", "init ../elsewhere", "nudge scout hello", "nudge gastown/scout hello", "peek scout 5",
        "polecat status gastown/scout", "polecat status scout", "witness start", "witness status --json",
        "witness patrol", "hooks install", "hooks install --settings x", "hooks uninstall", "molecule show x",
        "help trust", "help sidecar", "nudge --json gastown/Toast x", "uninstall",
    ],
)  # fmt: skip
def test_what_only_we_have_is_ours(place: Place, line: str) -> None:
    told = place.whose(*line.split())
    if line == "uninstall":
        assert "both programs have uninstall" in told
    else:
        assert told == _ours(*line.split())


def test_witness_asks_for_ours(place: Place) -> None:
    assert place.whose("--witness", "doctor", "--fix") == _ours("doctor", "--fix")
    assert place.whose("polecat", "list", "--witness", "--json") == _ours("polecat", "list", "--json")
    assert place.whose("sling", "x", "--witness") == "theirs sling x --witness", "no flag of a command that is not ours"
    assert place.whose("--witness", "--version") == _ours("--version")


def test_a_nuke_is_ours_where_we_have_a_journal(place: Place) -> None:
    (place.town / ".runtime" / "witness").mkdir(parents=True)
    (place.town / ".runtime" / "witness" / "witness.db").touch()
    assert place.whose("polecat", "nuke", "gastown/Toast") == _ours("polecat", "nuke", "gastown/Toast")
    assert place.whose("polecat", "nuke", "-h") == "theirs polecat nuke -h"


def test_in_a_polecat_of_ours_and_in_a_standalone_town_it_is_ours(place: Place, tmp_path: Path) -> None:
    for line in ("done", "doctor", "--help", "polecat list"):
        assert place.whose(*line.split(), GT_WITNESS_GROUP="main/toast/1") == _ours(*line.split())
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "town.yaml").touch()
    (alone / "deep" / "er").mkdir(parents=True)
    assert place.whose("done", cwd=alone / "deep" / "er") == _ours("done")
    assert place.whose("doctor", GT_TOWN_ROOT=str(alone), cwd=tmp_path) == _ours("doctor")
    assert place.whose("prime", cwd=alone) == "theirs prime"
    # The folder says more than the environment, and Gas Town's more than ours.
    assert place.whose("done", GT_TOWN_ROOT=str(alone)) == "theirs done"


def test_without_another_gt_all_is_ours(place: Place, tmp_path: Path) -> None:
    wrapper = tmp_path / "wrapper"
    wrapper.mkdir()
    (wrapper / "gt").write_text('#!/bin/sh\nexec gt-witness "$@"\n')
    (wrapper / "gt").chmod(0o755)
    for line in ("", "--version", "prime --hook", "done", "nudge mayor x"):
        assert place.whose(*line.split(), path=[place.bin, wrapper]) == _ours(*line.split()).strip()
    graphite = tmp_path / "node_modules" / "@withgraphite" / "graphite-cli"
    other = StandIn(graphite)
    assert place.whose("done", path=[place.bin, graphite]) == _ours("done")
    assert other.calls == []
    place.whose("log", "short", path=[place.bin, graphite])
    assert other.calls[-1]["args"] == ["log", "short"]


def test_a_link_to_it_finds_its_neighbour(place: Place, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "gt").symlink_to(place.bin / "gt")
    done = subprocess.run(
        [tmp_path / "links" / "gt", "state"], env={"PATH": f"{tmp_path / 'links'}:/usr/bin:/bin"}, cwd=place.town,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "ours state\n"
    assert place.whose("prime", path=[tmp_path / "links", place.bin, place.real.folder]) == "theirs prime"


def test_arguments_streams_and_environment_are_handed_over_unchanged(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    shutil.copy(FRONT, folder / "gt")
    real = StandIn(tmp_path / "real", "sys.stdout.write(sys.stdin.read().upper()); sys.exit(42)")
    given = {"PATH": f"{folder}:{real.folder}:/usr/bin:/bin", "HOME": "/nonexistent",
             "GT_SESSION": "a 'b'", "town": "mine", "real": "mine"}  # fmt: skip
    args = ["sling", "gt-1", "my rig", "--var", "a=$HOME;b", "", "--help", "--json", "*"]
    done = subprocess.run(
        [folder / "gt", *args], env=given, cwd=tmp_path, input=b"words", capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (42, b"WORDS", b"")
    (call,) = real.calls
    assert (call["args"], call["cwd"], call["ignored"]) == (args, str(tmp_path), [])
    shells = {"PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}
    assert {name: value for name, value in call["environment"].items() if name not in shells} == given


def test_its_lists_are_those_of_the_commands() -> None:
    text = FRONT.read_text()
    dispatch = text[text.index("--witness) shift") :]
    both = set(re.search(r"'' \| (.*?)\)", dispatch, re.DOTALL)[1].split(" | "))  # type: ignore[index]
    flags = {name for name in both if name.startswith("-")}
    assert both - flags == {*SHARED, "completion", "help", "uninstall"} - {"stop"}
    only, documents = (
        set(found.split(" | "))
        for found in re.findall(r"^        ([a-z| -]+)\)\n            return 0 ;;$", text, re.MULTILINE)[-2:]
    )
    # More than there are: a command that is promised is ours before it is there.
    assert only >= set(COMMANDS) - both
    assert documents | only | both >= {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert documents <= {path.stem for path in (ROOT / "docs").glob("*.md")}


@pytest.mark.parametrize("shell", ["sh", "bash", "dash"])
def test_each_shell_can_read_it(shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"no {shell}")
    assert subprocess.run([shell, "-n", FRONT], check=True).returncode == 0
