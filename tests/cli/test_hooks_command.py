from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from witness.cli.program import gt
from witness.errors import DeclarationError, UsageError


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(gt, ["hooks", *arguments], catch_exceptions=False)


@pytest.mark.parametrize(
    ("client", "file", "event", "timeout"),
    [
        ("claude", ".claude/settings.json", "PostToolUse", 10),
        ("codex", ".codex/hooks.json", "PostToolUse", 10),
        ("gemini", ".gemini/settings.json", "AfterTool", 10_000),
    ],
)
def test_each_client_has_its_own_file_and_form(
    tmp_path: Path, client: str, file: str, event: str, timeout: int
) -> None:
    assert str(tmp_path / file) in run("install", "--client", client).stdout
    (entry,) = json.loads((tmp_path / file).read_text())["hooks"][event]
    assert entry["matcher"] == "*"
    assert entry["hooks"][0]["timeout"] == timeout
    assert "all hooks are in" in run("status", "--client", client).stdout
    assert "already in" in run("install", "--client", client).stdout
    assert "removed from" in run("uninstall", "--client", client).stdout
    assert not (tmp_path / file).exists()
    assert "nothing of ours" in run("uninstall", "--client", client).stdout


def test_opencode_gets_a_plugin_file(tmp_path: Path) -> None:
    path = tmp_path / ".config/opencode/plugins/gt-witness.js"
    run("install", "--client", "opencode")
    assert "gt_hook.py" in path.read_text()
    assert '"GT_HOOK"' not in path.read_text()
    assert "all hooks are in" in run("status", "--client", "opencode").stdout
    path.write_text("// gt-witness plugin of an older day")
    assert "of another installation" in run("status", "--client", "opencode").stdout
    run("install", "--client", "opencode")
    run("uninstall", "--client", "opencode")
    assert not path.exists()


def test_somebody_elses_plugin_of_that_name_is_left(tmp_path: Path) -> None:
    path = tmp_path / "mine.js"
    path.write_text("export default 1")
    for command in ("install", "uninstall", "status"):
        with pytest.raises(DeclarationError, match="not our plugin"):
            run(command, "--client", "opencode", "--settings", str(path))
    assert path.read_text() == "export default 1"


def test_status_as_json(tmp_path: Path) -> None:
    found = json.loads(run("status", "--json", "--settings", str(tmp_path / "s.json")).stdout)
    assert found["complete"] is False
    assert found["missing"][0] == "PostToolUse"


def test_a_file_that_is_not_json_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text('{\n"a": 1,,\n}')
    with pytest.raises(DeclarationError, match=r"s\.json:2: not JSON") as caught:
        run("install", "--settings", str(path))
    assert caught.value.exit_code == 2


def test_a_folder_is_no_settings_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        run("install", "--settings", str(tmp_path))
