"""The demo plays the scripted agent, whatever the user has set up."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from witness.cli.demo import demo


@pytest.mark.real
@pytest.mark.timeout(120)
def test_a_key_and_a_client_do_not_change_what_it_shows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "claude"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\ntouch {tmp_path}/called\nexec sleep 100\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(fake.parent), prepend=":")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    ran = CliRunner().invoke(demo, [])
    assert ran.exit_code == 0, ran.output
    assert "the agent is scripted" in ran.output
    assert "survivors  none" in ran.output
    assert not (tmp_path / "called").exists()


@pytest.mark.real
@pytest.mark.timeout(120)
def test_the_real_clients_question_about_the_demos_folder_is_answered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "bin" / "claude"
    fake.parent.mkdir()
    scripted = Path(sys.modules[demo.callback.__module__].__file__ or "").with_name("scripted_agent.py")
    fake.write_text(f"#!/bin/sh\ncp ~/.claude.json {tmp_path}/seen.json\nexec '{sys.executable}' '{scripted}'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(fake.parent), prepend=":")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    ran = CliRunner().invoke(demo, ["--agent", "claude"])
    assert ran.exit_code == 0, ran.output
    assert "a few cents" in ran.output
    (folder,) = json.loads((tmp_path / "seen.json").read_text())["projects"]
    assert Path(folder).name == "repo"
