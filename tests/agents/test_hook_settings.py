"""Our entries in other people's settings files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from witness.agents.hook_entries import DIALECTS
from witness.agents.hook_settings import install, session_settings, status, uninstall
from witness.errors import DeclarationError

EVENTS = DIALECTS["claude"].events
FOREIGN: dict[str, Any] = {
    "$schema": "https://example.invalid/schema.json",
    "permissions": {"allow": ["Bash(ls)"], "unknown": None},
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "guard"}]}],
        "PostToolUse": [
            {"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "fmt", "timeout": 3, "async": True}]},
            {"hooks": [{"type": "http", "url": "http://localhost"}, {"type": "command", "command": "x gt_hook"}]},
        ],
        "Stop": [{"hooks": [{"type": "command", "command": "bell"}]}],
        "OfNextYear": [{"anything": 1}],
    },
    "z": [1, 2],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "settings.json"


def write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_installed_where_there_was_nothing(path: Path) -> None:
    assert status(path).installed == ()
    assert install(path)
    assert read(path) == session_settings()
    assert status(path).complete
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_second_time_changes_nothing(path: Path) -> None:
    write(path, FOREIGN)
    install(path)
    before = path.read_bytes(), path.stat().st_mtime_ns
    assert not install(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_foreign_keys_and_hooks_stay_in_their_place(path: Path) -> None:
    write(path, FOREIGN)
    install(path)
    settings = read(path)
    assert list(settings) == list(FOREIGN)
    assert settings["hooks"]["PostToolUse"][:2] == FOREIGN["hooks"]["PostToolUse"]
    assert settings["hooks"]["PreToolUse"] == FOREIGN["hooks"]["PreToolUse"]
    assert settings["hooks"]["OfNextYear"] == FOREIGN["hooks"]["OfNextYear"]
    assert status(path).installed == EVENTS


@pytest.mark.parametrize(
    "before",
    [
        b'{"model":"opus",\r\n\t"hooks" : {}}',
        b'\xef\xbb\xbf{ "a": 1 }\n\n',
        b'{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"gt costs record &"}]}]}}',
        b"{}",
        b'{"hooks": {"Stop": []}}',
        b"\n",
        None,
    ],
)
def test_whatever_its_form_was_it_is_as_before(path: Path, before: bytes | None) -> None:
    if before is not None:
        path.write_bytes(before)
    else:
        path.unlink(missing_ok=True)
    names = sorted(path.parent.iterdir())
    assert install(path)
    install(path)
    assert uninstall(path)
    assert sorted(path.parent.iterdir()) == names
    assert (path.read_bytes() if path.exists() else None) == before


def test_what_somebody_changed_meanwhile_stays(path: Path) -> None:
    path.write_bytes(b'{"model":"opus"}')
    install(path)
    settings = json.loads(path.read_text())
    settings["model"] = "sonnet"
    path.write_text(json.dumps(settings))
    uninstall(path)
    assert json.loads(path.read_text()) == {"model": "sonnet"}
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_uninstalled_is_as_before_byte_for_byte(path: Path) -> None:
    write(path, FOREIGN)
    before = path.read_bytes()
    install(path)
    assert uninstall(path)
    assert path.read_bytes() == before
    assert not uninstall(path)


def test_an_entry_of_a_moved_installation_is_replaced_where_it_stood(path: Path) -> None:
    old = {"type": "command", "command": "/old/python", "args": ["-S", "-I", "/old/hooks/gt_hook.py", "Stop"]}
    bell = {"type": "command", "command": "bell"}
    write(path, {"hooks": {"Stop": [{"hooks": [old]}, {"hooks": [bell]}, {"hooks": [bell, old]}]}})
    assert status(path).outdated == ("Stop",)
    install(path)
    entries = read(path)["hooks"]["Stop"]
    assert entries == [*session_settings()["hooks"]["Stop"], {"hooks": [bell]}, {"hooks": [bell]}]


def test_a_hook_of_ours_shared_with_a_foreign_one_leaves_the_foreign_one(path: Path) -> None:
    install(path)
    settings = read(path)
    settings["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "bell"})
    write(path, settings)
    uninstall(path)
    assert read(path) == {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "bell"}]}]}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n  "a": 1,\n}', "settings.json:3: not JSON"),
        ("// comment\n{}", "settings.json:1: not JSON"),
        ("[]", "must hold a JSON object"),
        ('{"hooks": []}', "hooks: must be an object"),
        ('{"hooks": {"Stop": {}}}', "hooks.Stop: must be a list"),
    ],
)
def test_a_file_that_is_not_in_the_clients_form_is_refused_and_left(path: Path, text: str, message: str) -> None:
    path.write_text(text)
    for work in (install, uninstall, status):
        with pytest.raises(DeclarationError, match=message):
            work(path)
    assert path.read_text() == text
    assert os.listdir(path.parent) == ["settings.json"]


def test_an_empty_file_counts_as_empty_settings(path: Path) -> None:
    path.write_text("\n")
    assert install(path)
    assert status(path).complete


def test_a_link_into_somebodys_dotfiles_stays_a_link(path: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "claude.json"
    real.parent.mkdir()
    write(real, {"theme": "dark"})
    real.chmod(0o644)
    path.symlink_to(real)
    install(path)
    assert path.is_symlink()
    assert read(real)["theme"] == "dark"
    assert real.stat().st_mode & 0o777 == 0o644


def test_switched_off_hooks_are_told(path: Path) -> None:
    write(path, {"disableAllHooks": True})
    install(path)
    assert status(path).disabled
    assert not status(path).complete
