"""Another version's Witness, a report for whoever helps, leaving without a trace, and worlds that are not like ours."""

from __future__ import annotations

import os
import shlex
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.supervise.command import GT, gt
from witness.config.town import Town
from witness.launch.town_witness import running_witness, witness_process
from witness.process.table import is_alive
from witness.testing import make_town, supervised
from witness.version import __version__

PAUSE = shlex.join([sys.executable, "-c", "import signal; signal.pause()"])


def _witness_of(town: Town, version: str) -> None:
    """Start a Witness that takes itself for another version."""
    code = (
        f"import sys, witness.version; witness.version.__version__ = {version!r}\n"
        "from witness.daemon.__main__ import main\nsys.exit(main(sys.argv[1:]))"
    )
    subprocess.run([sys.executable, "-c", code, str(town.root)], check=True, timeout=50)


def test_a_witness_of_an_older_version_is_named_and_replaced_and_polecats_live_on(tmp_path: Path) -> None:
    town = make_town(tmp_path / "town")
    with supervised(town) as witness:
        _witness_of(town, "0.1.9")
        spawned = witness.spawn("a", workdir=town.root, agent=PAUSE, witness=False)
        before = witness_process(town)
        assert running_witness(town)["version"] == "0.1.9"
        done = gt(town.root, "witness", "start")
        assert "version 0.1.9 was replaced" in done.stdout
        assert running_witness(town)["version"] == __version__
        assert witness_process(town) != before
        assert is_alive(spawned.agent)
        assert f"version {__version__}" in gt(town.root, "logs").stdout


def test_an_older_program_refuses_a_newer_witness_and_a_newer_journal_in_one_line(tmp_path: Path) -> None:
    town = make_town(tmp_path / "town")
    with supervised(town) as witness:
        _witness_of(town, "99.1.0")
        done = gt(town.root, "witness", "start")
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert "99.1.0" in done.stderr
        assert "upgrade this one" in done.stderr
        witness.stop()
    other = make_town(tmp_path / "other")
    gt(other.root, "list")
    with sqlite3.connect(other.journal_path) as database:
        database.execute("PRAGMA user_version = 999")
    database.close()
    done = gt(other.root, "list")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "newer gt-witness (schema 999)" in done.stderr


def test_settings_that_were_changed_count_without_a_restart_and_it_is_told(tmp_path: Path) -> None:
    town = make_town(tmp_path / "town")
    with supervised(town) as witness:
        witness.start()
        witness.patrol()
        (town.root / "settings").mkdir()
        (town.root / "settings" / "witness.yaml").write_text("hung_after: 7s\nkey_command: pass show x\n")
        witness.patrol()
        told = gt(town.root, "logs").stdout
    assert "settings read anew: hung_after 1800.0 → 7.0, key_command" in told
    assert "pass show" not in told


def test_the_bundle_helps_and_tells_nothing_that_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SOME_API_KEY", "plainlookingvalue")
    town = make_town(tmp_path / "town")
    (town.root / "settings").mkdir()
    (town.root / "settings" / "witness.yaml").write_text("key_command: pass show my-key\nhung_after: 7s\n")
    with supervised(town) as witness:
        witness.spawn("a", workdir=town.root, agent=PAUSE, task="build the secret weapon", witness=False)
        leaks = "mail me@example.org sk-ant-api03-abcdefghij0123456789 plainlookingvalue password=hunter2x"
        (town.runtime / "witness.log").write_text(f"gt-witness: a line of the log\n{leaks}\n")
        done = gt(town.root, "doctor", "--bundle")
        assert done.returncode == 0, done.stderr
        path = town.root / "gt-witness-report.txt"
        told = path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "read it before you send it" in done.stdout
    for wanted in (__version__, "hung_after: 7.0", "key_command is set", "spawn-began", "a line of the log"):
        assert wanted in told
    for private in (str(tmp_path), "weapon", "pass show", "me@example.org", "sk-ant", "plainlooking", "hunter2x"):
        assert private not in told


def test_uninstall_leaves_nothing_and_says_what_it_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    town = make_town(tmp_path / "town")
    tmux_sockets = Path(os.environ.get("TMUX_TMPDIR") or "/tmp") / f"tmux-{os.getuid()}"
    settings = tmp_path / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"model": "opus"}')
    with supervised(town) as witness:
        spawned = witness.spawn("a", workdir=town.root, agent=PAUSE, sidecars="conventions")
        gt(town.root, "hooks", "install")
        gt(town.root, "witness", "install", "--systemd", "--write")
        refused = gt(town.root, "uninstall")
        assert (refused.returncode, "say --yes" in refused.stderr) == (2, True)
        assert is_alive(spawned.agent)
        done = gt(town.root, "uninstall", "--yes")
        assert done.returncode == 0, done.stderr
        assert not is_alive(spawned.agent)
        assert witness_process(town) is None
        assert not (town.root / ".runtime").exists()
        assert not (tmux_sockets / town.socket).exists()
        again = gt(town.root, "uninstall", "--yes")
        assert (again.returncode, "removed:" in again.stdout) == (0, False), again.stdout
        assert f"nothing of ours is left in {town.root}" in again.stdout
        assert not (town.root / ".runtime").exists()
    assert settings.read_text() == '{"model": "opus"}'
    assert not list((tmp_path / ".config").rglob("*.service"))
    assert f"kept: {town.root / 'town.yaml'}" in done.stdout
    assert "pipx uninstall" in done.stdout


def test_uninstall_removes_only_what_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    town = make_town(tmp_path / "town")
    shared = town.root / ".runtime"
    settings = tmp_path / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text("{broken")
    shared.mkdir(exist_ok=True)
    (shared / "mine.txt").write_text("somebody's")
    done = gt(town.root, "uninstall", "--yes")
    assert (done.returncode, settings.read_text()) == (1, "{broken")
    assert str(settings) in done.stderr
    assert {each.name for each in shared.iterdir()} - {".gitignore"} == {"mine.txt"}
    assert f"kept: {shared}" in done.stdout

    settings.write_text("{}")
    gt(town.root, "hooks", "install")
    elsewhere = shared.rename(tmp_path / "elsewhere")
    shared.symlink_to(elsewhere)
    (elsewhere / "witness").mkdir(mode=0o700)
    (elsewhere / "witness" / "file").touch()
    done = gt(town.root, "uninstall", "--yes")
    assert (elsewhere / "witness" / "file").exists()
    assert shared.is_symlink()
    assert done.returncode == 2 or f"removed: our hooks in {settings}" in done.stdout, done.stderr


def test_what_runs_is_not_committed(tmp_path: Path) -> None:
    town = make_town(tmp_path / "town")
    subprocess.run(["git", "init", "-q", str(town.root)], check=True)
    gt(town.root, "list")
    town.queue_dir("gt-a").mkdir(parents=True)
    (town.queue_dir("gt-a") / "1.json").touch()
    shown = subprocess.run(["git", "status", "--short"], cwd=town.root, capture_output=True, text=True, check=True)
    assert ".runtime" not in shown.stdout


@pytest.mark.parametrize(
    "strange",
    [
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"NO_COLOR": "1", "TERM": "dumb"},
        {"HOME": ""},
        {"COLUMNS": "0"},
    ],
)
def test_strange_environments_are_no_traceback(tmp_path: Path, strange: dict[str, str]) -> None:
    town = make_town(tmp_path / "a tówn ●")
    (town.root / "issue.md").write_text("---\nnot: [billing/**]\n---\nÄ ● issue\n")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **strange}
    with supervised(town):
        for words in (
            ("polecat", "spawn", "a", "--agent", PAUSE, "--issue", "issue.md", "--sidecars", "scope", "--no-witness"),
            ("list",),
            ("state",),
            ("doctor",),
            ("logs",),
            ("polecat", "status", "nobody-●"),
            ("--help",),
        ):
            done = subprocess.run(
                [*GT, *words], cwd=town.root, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                check=False, timeout=50,
            )  # fmt: skip
            assert b"Traceback" not in done.stderr + done.stdout, done.stderr.decode(errors="replace")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", ["list", "completion bash", "nonsense"])
def test_a_closed_stream_is_no_traceback(tmp_path: Path, closed: str, words: str) -> None:
    town = make_town(tmp_path / "town")
    done = subprocess.run(
        ["sh", "-c", f"{shlex.join(GT)} {words} {closed}"],
        cwd=town.root, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, capture_output=True, text=True,
        check=False, timeout=50,
    )  # fmt: skip
    assert "Traceback" not in done.stderr + done.stdout
    assert "Exception ignored" not in done.stderr
    assert done.returncode in (0, 1, 2)


def test_a_reader_that_leaves_is_no_traceback(tmp_path: Path) -> None:
    town = make_town(tmp_path / "town")
    gt(town.root, "list")
    line = f"{shlex.join([*GT, 'doctor'])} | true"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], cwd=town.root, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
