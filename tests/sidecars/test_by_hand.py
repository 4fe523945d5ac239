"""gt-sidecar against a real tmux session, without a Witness and without a town."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecars.inject.typing import Typist, is_idle
from tests.sidecars.observe.test_screen import BOX, BUSY, EDIT, RULE, screen
from witness.clock import ManualClock
from witness.journal import Decision
from witness.transport.tmux import Tmux

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

# A stand-in for a client's screen: it paints one frame, then shows every line that is typed to it.
PAINTER = """
import sys, termios
state = termios.tcgetattr(0)
state[3] &= ~termios.ECHO
termios.tcsetattr(0, termios.TCSANOW, state)
sys.stdout.write("\\x1b[2J\\x1b[H" + open(sys.argv[1]).read())
sys.stdout.flush()
open(sys.argv[1] + ".painted", "w").close()
for line in sys.stdin:
    with open(sys.argv[1] + ".typed", "a") as heard:
        heard.write(line)
"""


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    tmux = Tmux(f"gt-test-{os.getpid()}-{tmp_path.name}")
    yield tmux
    subprocess.run(["tmux", "-L", tmux.socket, "kill-server"], capture_output=True, check=False)


@pytest.fixture
def session(tmux: Tmux, tmp_path: Path) -> Tmux:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "issue.md").write_text("---\nnot: [src/]\n---\n")
    (tmp_path / "frame").write_text(screen(EDIT))
    painter = [sys.executable, "-c", PAINTER, str(tmp_path / "frame")]
    tmux.new_session("work", str(tmp_path), painter, {}, (100, 40))
    await_file(tmp_path / "frame.painted")
    return tmux


def await_file(path: Path) -> str:
    for _ in range(2000):
        if path.exists() and (path.suffix != ".typed" or path.read_text().endswith("\n")):
            return path.read_text()
        select_nothing()
    raise AssertionError(f"{path} never came")


def select_nothing() -> None:
    import select

    select.select([], [], [], 0.01)


def run(tmp_path: Path, tmux: Tmux, *more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    return subprocess.run(
        [sys.executable, "-m", "sidecars", "--socket", tmux.socket, "--workdir", str(tmp_path / "work"), *more],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip


@needs_tmux
def test_one_look_says_what_it_would_say(session: Tmux, tmp_path: Path) -> None:
    done = run(tmp_path, session, "--session", "work", "--type", "scope", "--spec", "issue.md", "--once", "--dry-run")
    assert done.stdout.startswith("injected: [sidecar:scope] src/sum.py was changed")
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "state").exists()


@needs_tmux
def test_it_types_into_an_idle_client_and_remembers(session: Tmux, tmp_path: Path) -> None:
    arguments = ("--session", "work", "--type", "scope:issue.md", "--once")
    assert run(tmp_path, session, *arguments).stdout.startswith("injected:")
    assert await_file(tmp_path / "frame.typed").startswith("[sidecar:scope] src/sum.py")
    assert run(tmp_path, session, *arguments).stdout.startswith("refused: [sidecar:scope] src/sum.py")


@needs_tmux
def test_it_ends_with_the_session(session: Tmux, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "sidecars", "--socket", session.socket, "--workdir", str(tmp_path / "work"),
         "--session", "work", "--type", "scope:issue.md", "--interval", "5s", "--dry-run"],
        stdout=subprocess.PIPE, text=True,
    ) as watching:  # fmt: skip
        assert watching.stdout is not None
        assert watching.stdout.readline().startswith("injected:")
        session.kill_session("work")
        assert watching.wait(20) == 0


@needs_tmux
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--session", "nobody", "--type", "scope"), "no tmux session named 'nobody'"),
        (("--session", "work", "--type", "nonsense"), "no sidecar type named 'nonsense'"),
        (("--session", "work", "--type", "specs", "--spec", "missing.md"), "missing.md: no such file"),
        (("--session", "work", "--type", "scope", "--interval", "soon"), "--interval: 'soon' is not a duration"),
        (("--session", "work", "--type", "scope", "--judge", "oracle"), "'oracle' is no judge"),
        (("--type", "scope"), "Missing option '--session'"),
    ],
)
def test_bad_usage_is_one_line(session: Tmux, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = run(tmp_path, session, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("gt-sidecar: ")
    assert words in line


@pytest.mark.parametrize(
    ("shown", "idle"),
    [
        (BOX, True),
        (f"{RULE}\n❯\xa0\n{RULE}\n  status", True),
        (BUSY, False),
        (f"{RULE}\n❯ half a sentence\n{RULE}\n  status", False),
        (f"{RULE}\n Do you want to proceed?\n ❯ 1. Yes\n   2. No", False),
        ("$ ", False),
        ("", False),
    ],
)
def test_only_an_empty_box_at_rest_is_idle(shown: str, idle: bool) -> None:
    assert is_idle(f"● done\n{shown}") is idle


def test_nothing_is_typed_into_a_shell(clock: ManualClock) -> None:
    class Shell:
        def capture(self, session: str, lines: int) -> str:
            return "$ "

        def paste(self, session: str, text: str) -> None:
            raise AssertionError("typed into a shell")

    typist = Typist(Shell(), "work", clock)  # type: ignore[arg-type]
    typist.enqueue(Decision("1", "r", "s", 0, 0, "injected", message="x"))
    assert typist.flush() == []


def test_nothing_is_typed_before_its_time(clock: ManualClock) -> None:
    typed: list[str] = []

    class Client:
        def capture(self, session: str, lines: int) -> str:
            return BOX

        def paste(self, session: str, text: str) -> None:
            typed.append(text)

        def press(self, session: str, *keys: str) -> None:
            typed.extend(keys)

    typist = Typist(Client(), "work", clock)  # type: ignore[arg-type]
    typist.enqueue(Decision("1", "r", "s", 0, 0, "injected", message="x"), clock.wall() + 5)
    assert typist.flush() == []
    clock.advance(5)
    assert typist.flush() == ["x"]
    assert typed == ["x", "Enter"]
