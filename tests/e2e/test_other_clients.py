"""Codex CLI, Gemini CLI and opencode as they come from the npm registry, offline: what their own hooks carry.

``.ci/need-other-clients`` installs them; without them these tests are skipped.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients import OTHERS as BIN
from tests.e2e.conftest import wait_until
from tests.e2e.other_models import OtherModels, Step
from witness.agents.clients import CODEX, GEMINI, OPENCODE, Client
from witness.agents.hook_settings import install
from witness.agents.screen import PromptState, read_prompt
from witness.clock import SystemClock
from witness.delivery.nudge_queue import Nudge, NudgeQueue
from witness.delivery.prompt_typist import IdlePoller
from witness.events.spool_reader import SpoolReader
from witness.tmux import Tmux

NOTE = "[sidecar:scope] billing is out of scope"


@dataclass
class Other:
    """A client with its configuration in a scratch home.

    Args:
        client: which.
        headless, interactive: its argument lists.
        calls: two harmless tool calls in its own form.
        variables: its environment.
    """

    client: Client
    headless: list[str]
    interactive: list[str]
    calls: list[Step]
    variables: dict[str, str]


def codex(home: Path, work: Path, url: str) -> Other:
    install(home / CODEX.settings, "codex")
    (home / ".codex" / "config.toml").write_text(
        'model = "gpt-test"\nmodel_provider = "local"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
        f'[model_providers.local]\nname = "local"\nbase_url = "{url}/v1"\nenv_key = "LOCAL_KEY"\n'
        f'wire_api = "responses"\n'
        f'[projects."{work}"]\ntrust_level = "trusted"\n'
    )
    return Other(
        CODEX,
        ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "do the work"],
        ["codex", "--dangerously-bypass-hook-trust"],
        [("exec_command", {"cmd": "echo one"}), ("exec_command", {"cmd": "echo two"})],
        {"LOCAL_KEY": "x"},
    )


def gemini(home: Path, work: Path, url: str) -> Other:
    path = home / GEMINI.settings
    path.parent.mkdir()
    path.write_text(
        json.dumps(
            {
                "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
                "general": {"disableAutoUpdate": True},
                "privacy": {"usageStatisticsEnabled": False},
            }
        )
    )
    install(path, "gemini")
    return Other(
        GEMINI,
        ["gemini", "-p", "do the work", "--yolo", "-m", "gemini-2.5-pro"],
        ["gemini", "--yolo", "-m", "gemini-2.5-pro"],
        [
            ("read_file", {"file_path": str(work / "app.py")}),
            ("run_shell_command", {"command": "echo two", "description": "says two"}),
        ],
        {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": url},
    )


def opencode(home: Path, work: Path, url: str) -> Other:
    install(home / OPENCODE.settings, "opencode")
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "local",
        "options": {"baseURL": f"{url}/v1", "apiKey": "x"},
        "models": {"test": {"name": "test"}},
    }
    settings = {
        "provider": {"local": provider},
        "model": "local/test",
        "small_model": "local/test",
        "autoupdate": False,
        "share": "disabled",
        "permission": {"bash": "allow", "edit": "allow"},
    }
    (home / ".config" / "opencode" / "opencode.json").write_text(json.dumps(settings))
    return Other(
        OPENCODE,
        ["opencode", "run", "do the work"],
        ["opencode"],
        [("read", {"filePath": str(work / "app.py")}), ("bash", {"command": "echo two", "description": "says two"})],
        {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
    )


class Scene:
    """A client in a scratch home, as a polecat's would be."""

    def __init__(self, make: Callable[[Path, Path, str], Other], folder: Path, models: OtherModels) -> None:
        self.models = models
        self.home, self.work = folder / "home", folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        (self.work / "app.py").write_text("x = 1\n")
        self.spool = folder / "run" / "spool"
        self.spool.mkdir(parents=True)
        self.queue = NudgeQueue(folder / "queue", SystemClock())
        self.queue.folder.mkdir()
        self.other = make(self.home, self.work, models.url)
        if not (BIN / self.other.headless[0]).exists():
            pytest.skip(f"{self.other.client.title} is not installed: .ci/need-other-clients")
        self.environment = {
            "HOME": str(self.home),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "GT_WITNESS_SPOOL": str(self.spool),
            "GT_WITNESS_QUEUE": str(self.queue.folder),
            "GT_WITNESS_GROUP": f"main/toast/{secrets.token_hex(4)}",
            **self.other.variables,
        }

    def events(self) -> list[dict[str, Any]]:
        return [event.payload for event in SpoolReader(self.spool).read()]


@pytest.fixture
def models() -> Iterator[OtherModels]:
    with OtherModels() as models:
        yield models


@pytest.fixture(params=[codex, gemini, opencode], ids=["codex", "gemini", "opencode"])
def scene(request: pytest.FixtureRequest, tmp_path: Path, models: OtherModels) -> Scene:
    return Scene(request.param, tmp_path, models)


def test_its_own_hooks_record_each_call_and_deliver_in_the_very_next_request(scene: Scene) -> None:
    scene.models.play(*scene.other.calls, "Done.")
    client = subprocess.Popen(
        scene.other.headless, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=scene.environment, cwd=scene.work,
    )  # fmt: skip
    try:
        scene.models.wait_for(1)
        scene.queue.enqueue(Nudge("sidecar:scope", NOTE))
        output, _ = client.communicate(timeout=50)
    finally:
        client.kill()
        client.communicate()
    assert client.returncode == 0, output
    assert [NOTE in request for request in scene.models.requests[:3]] == [False, True, True]
    assert scene.models.requests[-1].count(NOTE) == 1
    completed = [event for event in scene.events() if event["hook_event_name"] in ("PostToolUse", "AfterTool")]
    assert len(completed) == 2
    assert all(event["tool_name"] and event["tool_input"] for event in completed)


@pytest.fixture
def tmux() -> Iterator[Tmux]:
    tmux = Tmux(f"gtw-other-{os.getpid()}")
    yield tmux
    if tmux.panes():
        tmux.run("kill-server")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("scene", [codex, gemini], ids=["codex", "gemini"], indirect=True)
def test_at_its_idle_prompt_the_poller_types_and_sees_it_taken(scene: Scene, tmux: Tmux) -> None:
    client = scene.other.client
    program, *arguments = scene.other.interactive
    tmux.new_session("toast", str(scene.work), [str(BIN / program), *arguments], scene.environment, (120, 40))
    wait_until(lambda: read_prompt(tmux.screen("toast"), client).state is PromptState.IDLE, "its empty prompt", 60)
    scene.queue.enqueue(Nudge("mayor", "there is news"))
    poller = IdlePoller(tmux, SystemClock())
    before = time.monotonic()

    def delivered() -> bool:
        return poller.tick("toast", client, scene.queue.folder) == 1

    wait_until(delivered, "the poller to deliver", 40)
    assert "[from mayor] there is news" in scene.models.wait_for(1)
    assert time.monotonic() - before < 30
    wait_until(lambda: read_prompt(tmux.screen("toast"), client).state is PromptState.IDLE, "the end of the turn")
    assert scene.queue.pending() == []
