"""The agent's client before anything is spawned: its login, the folder that it would ask about, its channel."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from witness.agents.channels import choose
from witness.agents.clients import Channel, claude_home, installed_clients
from witness.agents.folder_dialog import claude_file, folder_dialog
from witness.config.town import Town
from witness.doctor.finding import Finding, note, ok, warning
from witness.doctor.prerequisites import DEFAULT_AGENT
from witness.errors import UsageError
from witness.files import read_json

_ARGV = [DEFAULT_AGENT]
# What each of them says by being set: the client asks for no login.
_LOGINS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
)
# Of a key in its environment the client remembers the end, and asks about one that it has not met.
_KEY_END = 20
_LARGEST = 64 << 20


def check_installed() -> Iterator[Finding]:
    """What is wrong with the clients that other packages add."""
    for fault in installed_clients()[1]:
        yield warning("clients", fault, "update or remove its package: the client is not known until then")


def check_client(start: Path, environ: Mapping[str, str]) -> Iterator[Finding]:
    """What keeps the default agent from working in this folder by itself; nothing where it is not installed."""
    if shutil.which(DEFAULT_AGENT, path=environ.get("PATH")) is None:
        return
    chosen = choose(_ARGV, start, environ)
    if chosen.channel is Channel.PANE:
        yield warning(
            "channel",
            f"polecats here would be observed through their screen only: {chosen.reason}",
            "correct what the line names",
        )
    state = _state(environ)
    yield _login(state, environ)
    try:
        dialog = folder_dialog(_ARGV, start, environ)
    except UsageError as error:
        yield warning("folder", str(error), "correct the file; the client reads it too")
        return
    if dialog:
        yield note(
            "folder",
            f"{dialog.client} will ask whether you trust {dialog.folder}",
            "answer it once, or spawn with --accept-folder",
        )
    else:
        yield ok("folder", f"{start} is accepted by the client")


def check_sling(town: Town, environ: Mapping[str, str]) -> Iterator[Finding]:
    """The two questions of the client that a sling of Gas Town's meets: their default answer ends the session.

    Each sling works in a new folder, and Gas Town starts the client with ``--dangerously-skip-permissions``. An answer
    for the town's folder counts for all below it.
    """
    if not town.gastown or shutil.which(DEFAULT_AGENT, path=environ.get("PATH")) is None:
        return
    asked = []
    try:
        if folder_dialog(_ARGV, town.root, environ):
            asked.append(
                (f"whether you trust each new worktree below {town.root}", f"cd {shlex.quote(str(town.root))}")
            )
    except UsageError:
        pass  # told by check_client
    places = [claude_home(environ), *(town.root / rig / "polecats" / ".claude" for rig in town.rigs)]
    if not any(_object(place / "settings.json").get("skipDangerousModePermissionPrompt") is True for place in places):
        asked.append(("about --dangerously-skip-permissions, with which gt starts it", ""))
    if not asked:
        yield ok("sling", "the client asks nothing that would keep a slung polecat from working")
        return
    questions, before = " and ".join(question for question, _ in asked), " && ".join(each for _, each in asked if each)
    command = f"{DEFAULT_AGENT} --dangerously-skip-permissions"
    yield warning(
        "sling",
        f"the client will ask {questions}; its default answer is 'No, exit', so a sling hangs or its session ends",
        f"answer it once by hand: {f'{before} && ' if before else ''}{command}",
    )


def _login(state: Mapping[str, object], environ: Mapping[str, str]) -> Finding:
    key = environ.get("ANTHROPIC_API_KEY", "")
    by = next((name for name in _LOGINS if environ.get(name)), "")
    if not by and not state.get("oauthAccount") and not _settings_log_in(environ):
        return note("login", "the client is not logged in: a polecat would wait for it", f"run {DEFAULT_AGENT} once")
    if not state.get("hasCompletedOnboarding"):
        return note("login", "the client will show its first-start dialogs", f"run {DEFAULT_AGENT} once")
    answers = state.get("customApiKeyResponses")
    approved = answers.get("approved") if isinstance(answers, dict) else None
    if by == "ANTHROPIC_API_KEY" and key[-_KEY_END:] not in (approved if isinstance(approved, list) else []):
        return note("login", "the client will ask whether to use ANTHROPIC_API_KEY", f"run {DEFAULT_AGENT} once")
    return ok("login", f"the client has a login{f' ({by})' if by else ''}")


def _settings_log_in(environ: Mapping[str, str]) -> bool:
    """Whether its settings bring a key, or its own file of credentials stands there."""
    folder = claude_home(environ)
    settings = _object(folder / "settings.json")
    variables = settings.get("env")
    given = isinstance(variables, dict) and any(name in variables for name in _LOGINS)
    return given or bool(settings.get("apiKeyHelper")) or (folder / ".credentials.json").exists()


def _state(environ: Mapping[str, str]) -> dict[str, object]:
    return _object(claude_file(environ))


def _object(path: Path) -> dict[str, object]:
    try:
        found = read_json(path, _LARGEST, follow=True, owners=())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
