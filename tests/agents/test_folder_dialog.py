"""The client's question about its folder, answered beforehand where the client itself keeps the answer."""

from __future__ import annotations

import json
import threading
import time
import tomllib
from pathlib import Path

import pytest

from witness.agents.folder_dialog import folder_dialog
from witness.errors import UsageError


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "a work"
    (folder / "below").mkdir(parents=True)
    return folder


def test_claude_is_told_of_this_folder_only_and_the_rest_stays(work: Path, tmp_path: Path) -> None:
    kept = {"oauthAccount": {"a": "é"}, "projects": {"/other": {"history": [1]}, str(work): {"history": [2]}}}
    (tmp_path / ".claude.json").write_text(json.dumps(kept))
    (work / ".mcp.json").write_text("{}")
    link = tmp_path / "link"
    link.symlink_to(work)
    environ = {"HOME": str(tmp_path)}
    dialog = folder_dialog(["claude"], link, environ)
    assert dialog
    assert (dialog.folder, dialog.brings) == (work, (".mcp.json",))
    assert json.loads((tmp_path / ".claude.json").read_text()) == kept, "asking writes nothing"
    dialog.record()
    found = json.loads((tmp_path / ".claude.json").read_text())
    assert found["projects"].pop(str(work)) == {"history": [2], "hasTrustDialogAccepted": True}
    assert found == {"oauthAccount": {"a": "é"}, "projects": {"/other": {"history": [1]}}}
    assert not (tmp_path / ".claude.json.lock").exists()
    assert folder_dialog(["claude"], work, environ) is None
    assert folder_dialog(["claude"], work / "below", environ) is None, "it counts for what lies below"
    assert folder_dialog(["claude"], tmp_path, environ)


def test_the_environment_of_the_command_counts(work: Path, tmp_path: Path) -> None:
    argv = ["env", f"CLAUDE_CONFIG_DIR={tmp_path / 'config'}", "claude", "--model", "x"]
    dialog = folder_dialog(argv, work, {"HOME": "/nowhere"})
    assert dialog
    assert dialog.path == tmp_path / "config" / ".claude.json"
    dialog.record()
    assert folder_dialog(argv, work, {"HOME": "/nowhere"}) is None


def test_codex_keeps_what_people_wrote(work: Path, tmp_path: Path) -> None:
    path = tmp_path / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text('# mine\nmodel = "x"')
    dialog = folder_dialog(["codex"], work, {"HOME": str(tmp_path)})
    assert dialog
    dialog.record()
    assert path.read_text().startswith('# mine\nmodel = "x"\n')
    assert tomllib.loads(path.read_text())["projects"] == {str(work): {"trust_level": "trusted"}}
    assert folder_dialog(["codex"], work, {"HOME": str(tmp_path)}) is None


def test_gemini_has_a_file_of_folders(work: Path, tmp_path: Path) -> None:
    dialog = folder_dialog(["gemini"], work, {"HOME": str(tmp_path)})
    assert dialog
    dialog.record()
    assert json.loads((tmp_path / ".gemini" / "trustedFolders.json").read_text()) == {str(work): "TRUST_FOLDER"}
    assert folder_dialog(["gemini"], work, {"HOME": str(tmp_path)}) is None


@pytest.mark.parametrize("content", ["not json", "[]", '{"projects": []}', '{"projects": {"/": 3}}'])
def test_a_file_that_cannot_be_understood_is_left_alone(work: Path, tmp_path: Path, content: str) -> None:
    (tmp_path / ".claude.json").write_text(content)
    with pytest.raises(UsageError, match=r"\.claude\.json of Claude Code cannot be read"):
        folder_dialog(["claude"], work, {"HOME": str(tmp_path)})
    assert (tmp_path / ".claude.json").read_text() == content


def test_other_agents_have_no_dialog(work: Path) -> None:
    assert folder_dialog(["sh", "-c", "true"], work, {}) is None


def test_a_client_that_writes_is_waited_for(work: Path, tmp_path: Path) -> None:
    lock = tmp_path / ".claude.json.lock"
    dialog = folder_dialog(["claude"], work, {"HOME": str(tmp_path)})
    assert dialog
    lock.mkdir()

    def written() -> None:
        (tmp_path / ".claude.json").write_text('{"numStartups": 3}')
        lock.rmdir()

    writer = threading.Timer(0.05, written)
    writer.start()
    dialog.record()
    writer.join()
    found = json.loads((tmp_path / ".claude.json").read_text())
    assert found["numStartups"] == 3
    assert found["projects"]


def test_the_lock_of_a_dead_client_holds_nobody_up(work: Path, tmp_path: Path) -> None:
    import os

    lock = tmp_path / ".claude.json.lock"
    lock.mkdir()
    os.utime(lock, (time.time() - 60, time.time() - 60))
    dialog = folder_dialog(["claude"], work, {"HOME": str(tmp_path)})
    assert dialog
    dialog.record()
    assert not lock.exists()
