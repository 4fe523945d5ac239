"""Records what each client gives to its hooks: ``make record-payloads`` (all) or ``… ARGS="codex claude-2.1.332"``.

The clients are the real ones of ``.ci/versions``, in a scratch home, offline: a scripted model makes each of them use
its edit, shell and read tools (``scripts.py``), and a hook that only writes its standard input down is all that is
installed. Beside each payload stands what truly changed in the file system meanwhile: two looks at all files, one when
the model asked for the call and one when its result came back.

Each recording is a file ``CLIENT-VERSION/CASE.EVENT.json`` (a second call in one case: ``CASE.2.EVENT.json``)::

    {"events": [every event of the case, in order], "changed": [], "created": [], "removed": [], "payload": {…}}

Paths are spelled ``{WORK}`` (the agent's folder), ``{ROOT}`` (what lies around it) and ``{HOME}``.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.clients import OTHERS, claude_program, versions
from tests.e2e.other_models import OtherModels, Step
from tests.payloads.scripts import FILES, SCRIPTS, Case
from witness.config.resources import hooks_dir
from witness.testing import MessagesServer, Request

HERE = Path(__file__).parent
TIMEOUT = 90
# Of a tool's call: these are kept for each case. Of the session: one of each kind is enough.
OF_A_CALL = frozenset(
    [
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "PermissionRequest",
        "PermissionDenied",
        "BeforeTool",
        "AfterTool",
    ]
)
LONGEST = 4000
_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d[:-]\d\d(?:[:-]\d\d(?:\.\d+)?Z?)?")


@dataclass
class Scene:
    """The scratch folders of one case, and what was seen in them.

    Args:
        root: the folder of all.
    """

    root: Path
    looks: list[tuple[int, dict[str, str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.home, self.work, self.sink = self.root / "home", self.root / "work", self.root / "payloads"
        for folder in (self.home, self.work, self.sink):
            folder.mkdir()
        for name, text in FILES.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.hook = self.root / "hook.sh"
        # A name of its own for each payload, and never a half-written one.
        self.hook.write_text(
            '#!/bin/sh\nset -- "$1" "$(date +%s%N)-$$"\n'
            f"cat >{self.sink}/.$2 && mv {self.sink}/.$2 {self.sink}/$2-$1.json\n"
        )

    def hook_command(self, event: str) -> list[str]:
        return ["sh", str(self.hook), event]

    def look(self) -> None:
        """Remember the state of every file that is the agent's business."""
        state = {}
        for path in sorted(self.root.rglob("*")):
            inside = path.relative_to(self.root).parts
            if inside[0] in ("work", "outside") and ".git" not in inside and path.is_file():
                state[self.scrub(str(path))] = f"{path.stat().st_mtime_ns} {path.read_bytes().hex()}"
        self.looks.append((time.time_ns(), state))

    def effects(self, at: int) -> dict[str, list[str]]:
        """What changed between the last look before a time and the first one after it."""
        before = [state for moment, state in self.looks if moment <= at][-1]
        after = next((state for moment, state in self.looks if moment > at), self.looks[-1][1])
        return {
            "changed": [path for path in after if path in before and after[path] != before[path]],
            "created": [path for path in after if path not in before],
            "removed": [path for path in before if path not in after],
        }

    def scrub(self, text: str) -> str:
        for path, name in ((self.work, "{WORK}"), (self.home, "{HOME}"), (self.root, "{ROOT}")):
            text = text.replace(str(path), name).replace(str(path)[1:], name[:-1] + "-WITHOUT-ROOT}")
        return text.replace(re.sub(r"[^a-zA-Z0-9]", "-", str(self.root)), "-ROOT")


class _Others(OtherModels):
    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self._scene = scene

    def take(self, body: dict[str, Any]) -> Step:
        if body.get("tools"):
            self._scene.look()
        return super().take(body)


def _claude_server(scene: Scene) -> MessagesServer:
    def look(request: Request) -> None:
        if "Bash" in request.tools:
            scene.look()

    return MessagesServer(client=True, on_request=look)


def _entries(events: list[str], scene: Scene, matched: bool, **more: Any) -> dict[str, Any]:
    def entry(event: str) -> dict[str, Any]:
        handler = {"type": "command", "command": shlex.join(scene.hook_command(event)), **more}
        return {"hooks": [handler], **({"matcher": "*"} if matched else {})}

    return {event: [entry(event)] for event in events}


CLAUDE_EVENTS = [
    "PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest", "PermissionDenied", "UserPromptSubmit",
    "SessionStart", "SessionEnd", "Stop", "SubagentStart", "SubagentStop", "Notification", "PostToolBatch",
    "CwdChanged", "FileChanged",
]  # fmt: skip


def claude(scene: Scene, case: Case, server: MessagesServer, version: str) -> tuple[list[str], dict[str, str]]:
    settings = {"hooks": _entries(CLAUDE_EVENTS, scene, False, timeout=20), "permissions": {"deny": list(case.deny)}}
    (scene.root / "settings.json").write_text(json.dumps(settings))
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    state = {"hasCompletedOnboarding": True, "theme": "dark", "projects": {str(scene.work): trusted}}
    (scene.home / ".claude.json").write_text(json.dumps(state))
    allowed = ["Bash", "Read", "Edit", "Write", "NotebookEdit", "Grep", "Glob", "Agent"] if case.allowed else ["Read"]
    argv = [str(claude_program(version)), "-p", case.prompt, "--settings", str(scene.root / "settings.json")]
    if case.allowed:
        argv += ["--permission-mode", "acceptEdits"]
    server.play(*case.steps(scene.work))
    server.play(*case.inner(scene.work), kind="subagent")
    return [*argv, "--allowedTools", *allowed], server.environment()


CODEX_EVENTS = [
    "PreToolUse", "PostToolUse", "PermissionRequest", "UserPromptSubmit", "SessionStart", "Stop", "SubagentStart",
    "SubagentStop",
]  # fmt: skip


def codex(scene: Scene, case: Case, server: _Others, version: str) -> tuple[list[str], dict[str, str]]:
    folder = scene.home / ".codex"
    folder.mkdir()
    (folder / "hooks.json").write_text(json.dumps({"hooks": _entries(CODEX_EVENTS, scene, False, timeout=20)}))
    approval, sandbox = ("never", "danger-full-access") if case.allowed else ("never", "read-only")
    (folder / "config.toml").write_text(
        f'model = "gpt-5.5"\nmodel_provider = "local"\napproval_policy = "{approval}"\nsandbox_mode = "{sandbox}"\n'
        f'[model_providers.local]\nname = "local"\nbase_url = "{server.url}/v1"\nenv_key = "LOCAL_KEY"\n'
        f'wire_api = "responses"\n[projects."{scene.work}"]\ntrust_level = "trusted"\n'
    )
    server.play(*case.steps(scene.work))
    program = [str(OTHERS / "codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", case.prompt]
    return program, {"LOCAL_KEY": "x"}


GEMINI_EVENTS = [
    "BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent", "SessionStart", "SessionEnd", "Notification",
]  # fmt: skip


def gemini(scene: Scene, case: Case, server: _Others, version: str) -> tuple[list[str], dict[str, str]]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
        "hooks": _entries(GEMINI_EVENTS, scene, True, name="recorder", timeout=20000),
    }
    (scene.home / ".gemini").mkdir()
    (scene.home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    server.play(*case.steps(scene.work))
    program = [str(OTHERS / "gemini"), "-p", case.prompt, "-m", "gemini-2.5-pro", *(["--yolo"] if case.allowed else [])]
    return program, {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": server.url}


def opencode(scene: Scene, case: Case, server: _Others, version: str) -> tuple[list[str], dict[str, str]]:

    plugins = scene.home / ".config" / "opencode" / "plugins"
    plugins.mkdir(parents=True)
    # opencode has no hooks but plugins: what ours passes to the hook is what the product reads.
    source = (hooks_dir() / "gt_opencode.js").read_text()
    (plugins / "recorder.js").write_text(source.replace('["GT_HOOK"]', json.dumps(scene.hook_command("X")[:-1])))
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "local",
        "options": {"baseURL": f"{server.url}/v1", "apiKey": "x"},
        "models": {name: {"name": name} for name in {"test", case.model or "test"}},
    }
    permitted = "allow" if case.allowed else "deny"
    settings = {
        "provider": {"local": provider},
        "model": f"local/{case.model or 'test'}",
        "small_model": "local/test",
        "autoupdate": False,
        "share": "disabled",
        "permission": {"bash": permitted, "edit": permitted},
    }
    (plugins.parent / "opencode.json").write_text(json.dumps(settings))
    server.play(*case.steps(scene.work))
    variables = {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "GT_WITNESS_SPOOL": str(scene.sink),
    }
    return [str(OTHERS / "opencode"), "run", case.prompt], variables


CLIENTS = {"claude": claude, "codex": codex, "gemini": gemini, "opencode": opencode}


def record(client: str, version: str, folder: Path, wanted: str = "") -> None:
    """Record all cases of a client into ``folder``; session-wide events from the first case that has them."""
    known: set[str] = set()
    for case in SCRIPTS[client]:
        if wanted and wanted not in case.name:
            continue
        root = Path(tempfile.mkdtemp(prefix="gt-payloads-")).resolve()
        try:
            scene = Scene(root)
            events, code, output = _run(client, version, scene, case)
            names = [name for _, name, _ in events]
            print(f"{client}-{version} {case.name}: {' '.join(names)} (exit {code})", flush=True)
            if os.environ.get("RECORD_OUTPUT"):
                print(output[-2000:], flush=True)
            _write(folder, scene, case, events, known)
        finally:
            shutil.rmtree(root, ignore_errors=True)


def _run(client: str, version: str, scene: Scene, case: Case) -> tuple[list[tuple[int, str, Any]], int, str]:
    with _claude_server(scene) if client == "claude" else _Others(scene) as server:
        scene.look()
        argv, variables = CLIENTS[client](scene, case, server, version)  # type: ignore[operator]
        environment = {
            "HOME": str(scene.home),
            "PATH": f"{OTHERS}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            **variables,
        }
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            env=environment, cwd=scene.work, timeout=TIMEOUT,
        )  # fmt: skip
        scene.look()
    events = []
    for path in sorted(scene.sink.glob("*.json")):
        at, _, name = path.stem.split("-", 2)
        payload = json.loads(path.read_text())
        events.append((int(at), payload.get("hook_event_name", name), payload))
    return events, done.returncode, done.stdout


def _write(folder: Path, scene: Scene, case: Case, events: list[tuple[int, str, Any]], known: set[str]) -> None:
    names = [name for _, name, _ in events]
    calls: dict[str, int] = {}
    for at, name, payload in events:
        if name in OF_A_CALL:
            calls[name] = calls.get(name, 0) + 1
            stem = case.name if calls[name] == 1 else f"{case.name}.{calls[name]}"
        elif name not in known:
            known.add(name)
            stem = "session"
        else:
            continue
        record = {"events": names, **scene.effects(at), "payload": _bounded(payload)}
        text = scene.scrub(json.dumps(record, indent=1, ensure_ascii=False))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{stem}.{name}.json").write_text(_settled(text) + "\n")


def _bounded(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= LONGEST else value[:LONGEST] + "…"
    if isinstance(value, list):
        return [_bounded(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _bounded(each) for key, each in value.items()}
    return value


def _settled(text: str) -> str:
    """Without what differs at each run: a new recording of the same behaviour is the same text."""
    numbers: dict[str, str] = {}
    text = _UUID.sub(lambda found: numbers.setdefault(found[0], f"{{UUID-{len(numbers) + 1}}}"), text)
    text = re.sub(r'"duration_ms": [\d.]+', '"duration_ms": 1', text)
    return _TIME.sub("2026-01-01T00:00:00Z", text)


def main(wanted: list[str]) -> None:
    known = versions()
    every = [
        ("claude", known["CLAUDE"]), ("claude", known["CLAUDE_NEWEST"]), ("codex", known["CODEX"]),
        ("gemini", known["GEMINI"]), ("opencode", known["OPENCODE"]),
    ]  # fmt: skip
    only = os.environ.get("CASE", "")
    for client, version in every:
        name = f"{client}-{version}"
        if wanted and not {client, name} & set(wanted):
            continue
        folder = HERE / name
        if not only:
            for old in HERE.glob(f"{name}/*.json"):
                old.unlink()
        record(client, version, folder, only)


if __name__ == "__main__":
    main(sys.argv[1:])
