"""A key reaches who asks the model, and no environment block, argument list, log or journal on the way."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.real.conftest import SETTINGS, Place, make_place
from tests.sidecars.reports import report, tool
from tests.supervise.command import gt
from tests.trust.test_fixed_at_spawn import spool
from tests.waiting import until
from witness.config.keys import find_key, user_key_file, write_key
from witness.config.settings import Settings
from witness.errors import UsageError
from witness.launch import town_witness
from witness.testing import MessagesServer

__all__ = ["make_place"]

KEY = "sk-ant-very-secret"


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_a_key_is_kept_for_its_user_alone(tmp_path: Path) -> None:
    path = write_key(f"{KEY}\n")
    assert path == user_key_file()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert find_key(Settings(), {}) == KEY
    path.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        find_key(Settings(), {})
    for text in ("", " ", "two words", "a\nb", "\x1b[31m", "x" * 5000):
        with pytest.raises(UsageError):
            write_key(text)


def test_where_a_key_comes_from(tmp_path: Path) -> None:
    write_key("sk-user")
    file = tmp_path / "own"
    file.write_text("sk-file\n")
    file.chmod(0o600)
    assert find_key(Settings(key_file=str(file)), {}) == "sk-file"
    assert find_key(Settings(key_command="echo sk-command"), {}) == "sk-command"
    assert find_key(Settings(key_file=str(file)), {"GT_WITNESS_API_KEY": "sk-exported"}) == "sk-exported"
    with pytest.raises(UsageError, match="cannot be read"):
        find_key(Settings(key_file=str(tmp_path / "none")), {})
    with pytest.raises(UsageError, match="gives no key"):
        find_key(Settings(key_command="false"), {})
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UsageError):
        find_key(Settings(key_file=str(tmp_path / "fifo")), {})


def test_the_command_keeps_it_and_does_not_show_it(tmp_path: Path) -> None:
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "witness.cli", "key", "set"], input=KEY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert KEY not in done.stdout + done.stderr
    assert user_key_file().read_text().strip() == KEY


@pytest.fixture
def asking(make_place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Place]]:
    """A town whose sidecar asks a scripted model; made once the test has set its environment."""
    said = report(signal=True, evidence="b.py", confidence="high", message="b.py is not it.")
    with MessagesServer(tool(said), tool(said), tool(said)) as server:
        settings = (
            SETTINGS
            + f"model_url: {server.url}\n"
            + ("types: {scope: {judge: model, prompt: Look., poll: 100ms, batch: 0s, timeout: 15s}}\n")
        )

        def make() -> Place:
            place = make_place(settings=settings)
            (place.work / "issue.md").write_text("---\nfiles: [a/**]\n---\n")
            return place

        yield make


def everywhere(place: Place) -> str:
    """Every environment block and argument list of the town's processes, and every file of its runtime."""
    found = []
    helpers = [town_witness.witness_process(place.town), place.fork_server()]
    members = [member.process for _, members in place.witness.polecats() for member in members]
    for process in filter(None, (*helpers, *members)):
        for name in ("environ", "cmdline"):
            found.append(Path(f"/proc/{process.pid}/{name}").read_text(errors="replace"))
    files = [path for path in place.town.runtime.rglob("*") if path.is_file()]
    return "\n".join([*found, *(path.read_text(errors="replace") for path in files)])


def asked(place: Place, name: str) -> bool:
    run = place.witness.find(name).id.run
    return any(each.usage and each.usage.calls for each in place.witness.journal.decisions.of(run, "scope"))


def test_a_key_that_is_exported_later_works_and_shows_nowhere(
    asking: Callable[[], Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = asking()
    place.spawn("before", ["sleep", "60"], daemon=True, sidecars="scope:issue.md")
    witness = town_witness.witness_process(place.town)
    monkeypatch.setenv("GT_WITNESS_API_KEY", KEY)
    place.spawn("after", ["sleep", "60"], daemon=True, sidecars="scope:issue.md")
    spool(place, "after")
    until(lambda: asked(place, "after"), "the model was not asked")
    assert town_witness.witness_process(place.town) == witness
    assert KEY not in everywhere(place)


def test_a_key_in_a_file_reaches_the_sidecar(asking: Callable[[], Place]) -> None:
    place = asking()
    write_key(KEY)
    place.spawn("x", ["sleep", "60"], daemon=True, sidecars="scope:issue.md")
    spool(place, "x")
    until(lambda: asked(place, "x"), "the model was not asked")
    assert KEY not in everywhere(place)
    assert "there is a key" in gt(place.work, "doctor").stdout
