"""Every ``console`` block of the README and of docs/ is run, page by page, and shows what the page says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.console import Block, Command, blocks
from witness.cli import demo
from witness.config.resources import molecules_dir
from witness.config.town import Town
from witness.testing import supervised

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
#: What cannot be run here; each has its reason on the page.
NOT_RUN = 2
_PATIENCE_SECONDS = 60.0


class Reader:
    """A person with a home, a project, and an agent named claude that a script plays."""

    def __init__(self, home: Path) -> None:
        self.home, self.place = home, home / "shop"
        shutil.copytree(molecules_dir() / "demo-repo", self.place)
        agent = home / "bin" / "claude"
        agent.parent.mkdir()
        scripted = Path(demo.__file__).with_name("scripted_agent.py")
        # It goes to work once its reader has seen the answer of the spawn.
        self._gate = home / "gate"
        os.mkfifo(self._gate)
        shows = f"echo '✶ Working… (esc to interrupt)'; : <'{self._gate}'"
        agent.write_text(f"#!/bin/sh\n{shows}\nexec '{sys.executable}' '{scripted}'\n")
        agent.chmod(0o755)
        # Neither our own packages' folder nor any setting of the caller's.
        self.environment = {
            "HOME": str(home),
            "PATH": os.pathsep.join([str(agent.parent), str(Path(sys.executable).parent), os.environ["PATH"]]),
            "SCRIPTED_AGENT_PAUSE": "0.1",
            "SCRIPTED_AGENT_STAYS": "1",
            "LANG": "C.UTF-8",
        }
        subprocess.run(["git", "init", "-q", str(self.place)], env=self.environment, check=True)

    def types(self, command: str) -> str:
        """Run one command in the shell's present folder; what is printed, both streams in their order."""
        left = self.home / "pwd"
        done = subprocess.run(
            ["/bin/sh", "-c", f"{command}\nstatus=$?; pwd > '{left}'; exit $status"],
            cwd=self.place, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False, timeout=120,
        )  # fmt: skip
        self.place = Path(left.read_text().strip())
        return done.stdout

    def follows(self, command: Command) -> None:
        """Type a command of a page and compare."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        shown = self.types(command.text)
        while command.patient and not command.fits(shown) and time.monotonic() < deadline:
            shown = self.types(command.text)
        wanted = "\n".join(command.shown)
        assert command.fits(shown), f"{command.place}: $ {command.text}\n{shown}\n--- the page shows:\n{wanted}"
        if "polecat spawn" in command.text:
            self._gate.write_text("")


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    yield reader
    for place in sorted(tmp_path.rglob("town.yaml")):
        with supervised(Town.at(place.parent)):
            pass


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
@pytest.mark.timeout(240)
def test_what_the_page_shows_is_what_happens(page: Path, reader: Reader) -> None:
    for block in blocks(page):
        for command in () if block.reason else block.commands:
            reader.follows(command)


def test_what_is_not_run_says_why_and_is_counted() -> None:
    left_out = [block for page in PAGES for block in blocks(page) if block.reason]
    assert len(left_out) == NOT_RUN, [f"{block.place}: {block.reason}" for block in left_out]
    assert all(len(block.reason.split()) > 2 for block in left_out)


def test_a_difference_is_found() -> None:
    command = Command("p:1", "x", ("a … c", "…", "z"), patient=False)
    assert command.fits("a b c\nz\n")
    assert command.fits("a b c\n1\n2\nz")
    assert not command.fits("a b c\n1\n2\n")
    assert not command.fits("a b d\nz\n")
    assert not Command("p:1", "x", (), patient=False).fits("something")


def test_the_pages_have_them() -> None:
    readme: list[Block] = blocks(PAGES[0])
    assert sum(len(block.commands) for block in readme if not block.reason) >= 7
