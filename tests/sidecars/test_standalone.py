"""gt-sidecar against a real tmux session, without a Witness and without a town."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sidecars.observe.test_screen import EDIT, screen
from tests.waiting import until
from witness.tmux import Tmux

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

# A stand-in for a client's screen: a frame with an input box, in which typed text is shown until Enter takes it.
PAINTER = """
import os, re, sys, tty
tty.setraw(0)
frame, typed, taken = open(sys.argv[1]).read(), "", ""
above, _, below = frame.rpartition("\\u276f ")

def paint():
    text = above + "\\u276f " + typed + below
    os.write(1, ("\\x1b[2J\\x1b[H" + text.replace("\\n", "\\r\\n")).encode())

paint()
open(sys.argv[1] + ".painted", "w").close()
while True:
    data = os.read(0, 4096).decode()
    if not data:
        break
    if data == "\\r":
        with open(sys.argv[1] + ".typed", "w") as heard:
            heard.write(typed + "\\n")
        typed = ""
    else:
        typed += re.sub("\\x1b\\\\[20[01]~", "", data)
    paint()
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
    until(lambda: path.exists() and (path.suffix != ".typed" or path.read_text().endswith("\n")), path)
    return path.read_text()


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
    arguments = ("--session", "work", "--type", "scope:issue.md", "--once", "--client", "claude")
    assert run(tmp_path, session, *arguments).stdout.startswith("injected:")
    assert await_file(tmp_path / "frame.typed").startswith("[sidecar:scope] src/sum.py")
    assert run(tmp_path, session, *arguments).stdout.startswith("refused: [sidecar:scope] src/sum.py")


@needs_tmux
def test_nothing_is_typed_into_what_is_no_known_client(session: Tmux, tmp_path: Path) -> None:
    arguments = ("--session", "work", "--type", "scope:issue.md", "--once", "--client", "any")
    assert run(tmp_path, session, *arguments).stdout.startswith("injected:")
    assert not (tmp_path / "frame.typed").exists()


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
        (("--session", "work", "--type", "scope", "--client", "cobol"), "no client named 'cobol'"),
        (("--type", "scope"), "Missing option '--session'"),
    ],
)
def test_bad_usage_is_one_line(session: Tmux, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = run(tmp_path, session, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("gt-sidecar: ")
    assert words in line
