"""What keeps the default agent from working by itself is told before anything is spawned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.gas_town import make_gas_town
from witness.config.town import Town
from witness.doctor.client_checks import check_client, check_sling
from witness.doctor.finding import Finding, Level


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    return {"PATH": str(program.parent), "HOME": str(tmp_path)}


def _found(tmp_path: Path, environ: dict[str, str]) -> dict[str, Finding]:
    return {finding.check: finding for finding in check_client(tmp_path / "work", environ)}


def _state(tmp_path: Path, **values: object) -> None:
    (tmp_path / ".claude.json").write_text(json.dumps(values))


def test_without_the_client_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert list(check_client(tmp_path, {"PATH": str(tmp_path), "HOME": str(tmp_path)})) == []


def test_a_fresh_home_is_not_logged_in_and_asks_about_the_folder(tmp_path: Path, environ: dict[str, str]) -> None:
    found = _found(tmp_path, environ)
    assert "not logged in" in found["login"].message
    assert "--accept-folder" in found["folder"].fix
    assert found["login"].level is found["folder"].level is Level.NOTE


def test_hooks_that_are_switched_off_are_a_warning_before_any_polecat(tmp_path: Path, environ: dict[str, str]) -> None:
    settings = tmp_path / "work" / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"disableAllHooks": true}')
    finding = _found(tmp_path, environ)["channel"]
    assert finding.level is Level.WARNING
    assert f"{settings} says disableAllHooks" in finding.message


@pytest.mark.parametrize(
    ("state", "given", "told"),
    [
        ({"oauthAccount": {"x": 1}}, {}, "first-start dialogs"),
        ({"oauthAccount": {"x": 1}, "hasCompletedOnboarding": True}, {}, "has a login"),
        ({"hasCompletedOnboarding": True}, {"ANTHROPIC_API_KEY": "sk-" + "x" * 30}, "ask whether to use"),
        (
            {"hasCompletedOnboarding": True, "customApiKeyResponses": {"approved": ["x" * 20]}},
            {"ANTHROPIC_API_KEY": "sk-" + "x" * 30},
            "has a login (ANTHROPIC_API_KEY)",
        ),
        ({"hasCompletedOnboarding": True}, {"CLAUDE_CODE_USE_BEDROCK": "1"}, "has a login (CLAUDE_CODE_USE_BEDROCK)"),
        ({"hasCompletedOnboarding": "yes", "customApiKeyResponses": [], "projects": {}}, {}, "not logged in"),
    ],
)
def test_the_login(
    tmp_path: Path, environ: dict[str, str], state: dict[str, object], given: dict[str, str], told: str
) -> None:
    _state(tmp_path, **state)
    finding = _found(tmp_path, environ | given)["login"]
    assert told in finding.message
    assert "x" * 20 not in finding.message


def test_a_folder_that_was_accepted_is_ok_and_a_broken_file_is_named(tmp_path: Path, environ: dict[str, str]) -> None:
    _state(tmp_path, projects={str(tmp_path / "work"): {"hasTrustDialogAccepted": True}})
    assert _found(tmp_path, environ)["folder"].level is Level.OK
    (tmp_path / ".claude.json").write_text("{")
    assert "cannot be read" in _found(tmp_path, environ)["folder"].message


def test_what_a_sling_of_gas_towns_would_hang_at_is_told(tmp_path: Path, environ: dict[str, str]) -> None:
    town = make_gas_town(tmp_path / "my town", "gastown/Toast")
    (finding,) = check_sling(town, environ)
    assert finding.level is Level.WARNING
    assert "trust each new worktree" in finding.message
    assert "--dangerously-skip-permissions" in finding.message
    assert f"cd '{town.root}' && claude" in finding.fix
    _state(tmp_path, projects={str(town.root): {"hasTrustDialogAccepted": True}})
    (finding,) = check_sling(town, environ)
    assert "trust" not in finding.message
    # As Gas Town may hand it to its own sessions, with --settings.
    settings = town.root / "gastown" / "polecats" / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"skipDangerousModePermissionPrompt": true}')
    (finding,) = check_sling(town, environ)
    assert finding.level is Level.OK
    assert list(check_sling(Town.init(tmp_path / "alone"), environ)) == []
