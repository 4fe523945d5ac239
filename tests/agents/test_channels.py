"""Which channel a client gets, from what is found by looking; and what shows that it works."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

from witness.agents import channels
from witness.agents.channels import PATIENCE, ChannelState, Choice, channel_state, choose, client_version, first_sign
from witness.agents.client_extensions import VARIABLE, make_mod, other_folders
from witness.agents.clients import Channel


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr(channels, "MANAGED", (tmp_path / "managed",))
    (tmp_path / "bin").mkdir()
    (tmp_path / "home").mkdir()
    return {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path / "home")}


def installed(tmp_path: Path, version: str) -> None:
    """A package as npm lays it out, with the link on PATH."""
    package = tmp_path / "lib" / "node_modules" / "@anthropic-ai" / "claude-code"
    (package / "bin").mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": "@anthropic-ai/claude-code", "version": version}))
    program = package / "bin" / "claude.exe"
    program.write_text("#!/bin/sh\nexit 9\n")
    program.chmod(0o755)
    (tmp_path / "bin" / "claude").symlink_to(program)


@pytest.mark.parametrize(
    ("version", "channel"),
    [
        ("2.1.332", Channel.MOD),
        ("2.1.287", Channel.MOD),
        ("3.0.0", Channel.MOD),
        ("2.1.286", Channel.HOOKS),
        ("2.1.197", Channel.HOOKS),
        ("2.1.49", Channel.HOOKS_STRING),
        ("1.0.128", Channel.HOOKS_STRING),
    ],
)
def test_the_version_of_the_installed_package_decides(
    tmp_path: Path, environ: dict[str, str], version: str, channel: Channel
) -> None:
    installed(tmp_path, version)
    choice = choose(["env", "A=b", "claude", "--permission-mode", "acceptEdits"], tmp_path, environ)
    assert (choice.channel, choice.version) == (channel, version)
    assert (choice.reason == "") == (channel is Channel.MOD)


def test_the_native_installation_names_its_version(tmp_path: Path, environ: dict[str, str]) -> None:
    program = tmp_path / "share" / "claude" / "versions" / "2.1.300"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 9\n")
    program.chmod(0o755)
    (tmp_path / "bin" / "claude").symlink_to(program)
    assert client_version(["claude"], environ) == "2.1.300"


def test_a_script_is_not_run_to_ask_it(tmp_path: Path, environ: dict[str, str]) -> None:
    """Nobody knows what somebody's wrapper does with a flag that it does not expect."""
    wrapper = tmp_path / "bin" / "claude"
    wrapper.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\necho 2.1.332\n")
    wrapper.chmod(0o755)
    assert choose(["claude"], tmp_path, environ) == Choice(
        Channel.HOOKS_STRING, "", "the client's version could not be read"
    )
    assert not (tmp_path / "ran").exists()


def test_other_clients_have_their_own(tmp_path: Path, environ: dict[str, str]) -> None:
    found = [choose([name], tmp_path, environ).channel for name in ("codex", "gemini", "opencode", "bash")]
    assert found == [Channel.HOOKS, Channel.HOOKS, Channel.PLUGIN, Channel.PANE]


def settings(path: Path, **values: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values))
    return path


@pytest.mark.parametrize(
    "place", ["home/.claude/settings.json", "work/.claude/settings.json", "work/.claude/settings.local.json"]
)
def test_settings_that_switch_hooks_off_leave_the_pane(tmp_path: Path, environ: dict[str, str], place: str) -> None:
    installed(tmp_path, "2.1.332")
    path = settings(tmp_path / place, disableAllHooks=True)
    choice = choose(["claude"], tmp_path / "work", environ)
    assert (choice.channel, choice.reason) == (Channel.PANE, f"{path} says disableAllHooks")


def test_the_nearer_settings_file_wins_and_the_managed_one_always(tmp_path: Path, environ: dict[str, str]) -> None:
    installed(tmp_path, "2.1.332")
    settings(tmp_path / "home/.claude/settings.json", disableAllHooks=True)
    settings(tmp_path / "work/.claude/settings.json", disableAllHooks=False)
    assert choose(["claude"], tmp_path / "work", environ).channel is Channel.MOD
    path = settings(tmp_path / "managed/managed-settings.json", allowManagedHooksOnly=True)
    assert choose(["claude"], tmp_path / "work", environ).reason == f"{path} says allowManagedHooksOnly"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"disableAllHooks": "yes"}', '{"disableAllHooks": null}'])
def test_settings_that_cannot_be_read_switch_nothing_off(tmp_path: Path, environ: dict[str, str], text: str) -> None:
    installed(tmp_path, "2.1.332")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text(text)
    assert choose(["claude"], tmp_path, environ).channel is Channel.MOD


def test_bare_loads_neither(tmp_path: Path, environ: dict[str, str]) -> None:
    installed(tmp_path, "2.1.332")
    assert choose(["claude", "--bare"], tmp_path, environ).channel is Channel.PANE


# -- signs of life -----------------------------------------------------------------------------------------------------


def test_what_was_configured_is_not_believed_for_ever(tmp_path: Path) -> None:
    assert first_sign(tmp_path) is None
    assert channel_state(Channel.MOD, "", tmp_path, 1.0) == ChannelState(Channel.MOD, seen=False)
    late = channel_state(Channel.MOD, "", tmp_path, PATIENCE + 1)
    assert (late.channel, late.seen) == (Channel.PANE, False)
    assert "no sign of life" in late.reason


def test_a_hook_that_ran_proves_hooks_and_a_living_server_the_mod(tmp_path: Path) -> None:
    (tmp_path / "client").write_text("1 2")
    assert channel_state(Channel.HOOKS_STRING, "why", tmp_path, 99) == ChannelState(
        Channel.HOOKS_STRING, seen=True, reason="why"
    )
    behind = channel_state(Channel.MOD, "", tmp_path, 99)
    assert (behind.channel, behind.seen) == (Channel.HOOKS, True)
    assert "command hooks" in behind.reason
    (tmp_path / "mod.json").write_text("{}")
    lock = os.open(tmp_path / "mod.serving", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert channel_state(Channel.MOD, "", tmp_path, 99) == ChannelState(Channel.MOD, seen=True)
    os.close(lock)
    assert channel_state(Channel.MOD, "", tmp_path, 99).channel is Channel.HOOKS


# -- the copy ----------------------------------------------------------------------------------------------------------


def test_each_run_has_a_copy_and_the_callers_own_folders_stay(tmp_path: Path) -> None:
    mine, others = make_mod(tmp_path / "mine", band=True), make_mod(tmp_path / "others", band=False)
    (tmp_path / "theirs" / ".claude-plugin").mkdir(parents=True)
    (tmp_path / "theirs" / ".claude-plugin" / "plugin.json").write_text('{"name": "theirs"}')
    caller = {VARIABLE: f"{tmp_path}/theirs:{others}:{tmp_path}/gone"}
    assert other_folders(caller) == [f"{tmp_path}/theirs", f"{tmp_path}/gone"]
    assert other_folders({}) == []
    assert make_mod(mine, band=True) == mine, "a restart finds it there"
    server = (mine / "hooks" / "server.js").read_text()
    assert "gt_mod.py" in server
    assert "BAND = true" in server


def test_a_client_too_old_for_hooks_is_told(tmp_path: Path, environ: dict[str, str]) -> None:
    installed(tmp_path, "1.0.30")
    found = choose(["claude"], tmp_path, environ)
    assert found.channel is Channel.PANE
    assert "1.0.30 knows no hooks" in found.reason
