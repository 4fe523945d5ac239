"""What an agent is started with: the task as it was written, from words, a file or standard input, long or short."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.scripts import BASE_PYTHON
from tests.supervise.command import GT
from witness.config.town import Town
from witness.launch.spawn_request import LONGEST_TASK
from witness.testing import make_town, supervised


def _client(folder: Path) -> str:
    """A program named claude that leaves its arguments in a file and waits."""
    program = folder / "claude"
    program.write_text(
        f"#!{BASE_PYTHON}\nimport json, signal, sys\n"
        f"open({str(folder / 'argv.json')!r}, 'w').write(json.dumps(sys.argv[1:]))\nsignal.pause()\n"
    )
    program.chmod(0o700)
    return shlex.quote(str(program))


def _spawn(town: Town, folder: Path, *words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    argv = [*GT, "polecat", "spawn", "a", "--workdir", "repo", "--agent", _client(folder), "--no-wait", *words]
    return subprocess.run(argv, cwd=town.root, input=given, capture_output=True, check=False, timeout=50)


def _prompt(folder: Path) -> str:
    prompt = json.loads((folder / "argv.json").read_text())[0]
    assert isinstance(prompt, str)
    return prompt


TASK = """Say "it's done" in <b> & elsewhere"""


@pytest.mark.parametrize("way", ["words", "file", "input"])
def test_the_task_is_told_as_it_was_written_and_the_closing_stands_apart(tmp_path: Path, way: str) -> None:
    town = make_town(tmp_path / "town")
    (town.root / "task.txt").write_text(f"{TASK}\n")
    word = {"words": TASK, "file": "@task.txt", "input": "-"}[way]
    with supervised(town):
        done = _spawn(town, tmp_path, "--task", word, "--sidecars", "conventions", given=TASK.encode())
        assert done.returncode == 0, done.stderr
        prompt = _prompt(tmp_path)
    assert """Say "it's done" in &lt;b&gt; &amp; elsewhere\n\nWhen it is finished, run `gt done`.""" in prompt
    assert prompt.count("[sidecar:NAME]") == 1, "what a sidecar's line means is told once"


def test_a_long_task_is_read_from_a_file_that_the_client_may_read(tmp_path: Path) -> None:
    town = make_town(tmp_path / "town")
    text = "Count the sheep. " * 20_000
    assert len(text) > LONGEST_TASK
    with supervised(town) as witness:
        done = _spawn(town, tmp_path, "--task", "-", given=text.encode())
        assert done.returncode == 0, done.stderr
        run_dir = town.run_dir(witness.find("a").id.run)
        assert (run_dir / "task.md").read_text() == text
        assert f"Do what {run_dir / 'task.md'} asks; read it first." in _prompt(tmp_path)
        settings = json.loads((run_dir / "settings.json").read_text())
        assert settings["permissions"] == {"allow": [f"Read(/{run_dir / 'task.md'})"]}


@pytest.mark.parametrize(
    ("word", "given", "told"),
    [
        ("@nothing.md", b"", "no such file; words that begin with @ want a blank"),
        ("@.", b"", "--task @."),
        ("-", b"", "it is empty"),
        ("-", b"\xff\xfe", "not UTF-8"),
        ("-", b"a\0b", "NUL"),
        ("-", b"x" * ((1 << 20) + 1), "give it as --issue FILE"),
    ],
)
def test_what_is_no_task_is_one_line_and_nothing_starts(tmp_path: Path, word: str, given: bytes, told: str) -> None:
    town = make_town(tmp_path / "town")
    with supervised(town) as witness:
        done = _spawn(town, tmp_path, "--task", word, given=given)
        assert (done.returncode, done.stderr.count(b"\n")) == (2, 1), done.stderr
        assert told in done.stderr.decode()
        assert witness.polecats() == []
