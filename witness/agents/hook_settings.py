"""The agent's client told to run our hooks: entries in its settings file, or, for opencode, a plugin file.

Read, modify, write: every unknown key and every foreign hook stays, in its place. Our entries are known by the program
they run (``gt_hook.py``), so that a moved installation is recognised, replaced and removed too.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from witness.agents import client_extensions
from witness.agents.hook_entries import CLAUDE_AS_STRING, DIALECTS, PROGRAM
from witness.errors import DeclarationError, Problem
from witness.files import read_bytes, read_text, replace_file

# In bytes; people's own settings are a thousandth of it.
_LARGEST = 4 << 20


@dataclass(frozen=True, slots=True)
class HookStatus:
    """What stands in a settings file.

    Args:
        path: the file.
        exists: whether it is there.
        installed: events with an entry of ours.
        missing: events without one.
        outdated: events whose entry runs another program or interpreter than this installation's.
        disabled: the file switches all hooks off.
    """

    path: Path
    exists: bool
    installed: tuple[str, ...]
    missing: tuple[str, ...]
    outdated: tuple[str, ...]
    disabled: bool

    @property
    def complete(self) -> bool:
        return not self.missing and not self.outdated and not self.disabled


def session_settings(*, as_string: bool = False) -> dict[str, Any]:
    """The settings with which a polecat's own session is started (``claude --settings FILE``).

    Args:
        as_string: each hook is one command line, for clients that know no ``args``.
    """
    dialect = CLAUDE_AS_STRING if as_string else DIALECTS["claude"]
    return {"hooks": {event: dialect.entries(event) for event in dialect.events}}


def readable(settings: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The settings of a session that may read one file outside of its folder without asking a person."""
    permissions = dict(settings.get("permissions", {}))
    permissions["allow"] = [*permissions.get("allow", []), f"Read(/{path})"]
    return {**settings, "permissions": permissions}


def install(path: Path | str, client: str = "claude") -> bool:
    """Put our entries into a settings file, replacing older ones of ours; the file is made when there is none.

    Args:
        path: the file.
        client: whose settings it holds, as ``witness.agents.clients`` names it.

    Returns:
        False when all was there already and the file was not touched.

    Raises:
        DeclarationError: it is not a JSON object, or its hooks are not in the client's form.
        OSError: it cannot be written.
    """
    path = Path(path)
    if client == "opencode":
        return client_extensions.install(path)
    dialect = DIALECTS[client]
    raw = _load(path)
    settings = json.loads(json.dumps(raw))
    hooks = settings.setdefault("hooks", {})
    for event in dialect.events:
        kept, place = _without_ours(hooks.get(event, []))
        kept[place:place] = dialect.entries(event)
        hooks[event] = kept
    if settings == raw:
        return False
    if not any(_ours_in(entry) for entries in raw.get("hooks", {}).values() for entry in entries):
        _keep_original(path)
    _write(path, settings)
    return True


def uninstall(path: Path | str, client: str = "claude") -> bool:
    """Take our entries out again, and nothing else.

    Where nobody has changed the file meanwhile it is as it was, byte for byte, or gone if there was none.

    Args:
        path: the file.
        client: whose settings it holds.

    Returns:
        False when there were none.

    Raises:
        DeclarationError: the file is not a JSON object, or its hooks are not in the client's form.
        OSError: it cannot be written.
    """
    path = Path(path)
    if client == "opencode":
        return client_extensions.uninstall(path)
    raw = _load(path)
    settings = json.loads(json.dumps(raw))
    hooks = settings.get("hooks", {})
    for event in list(hooks):
        before = hooks[event]
        kept, _ = _without_ours(before)
        if kept != before:
            hooks[event] = kept
            if not kept:
                del hooks[event]
    if settings == raw:
        return False
    if not hooks:
        del settings["hooks"]
    if not _restore_original(path, settings):
        _write(path, settings)
    return True


def status(path: Path | str, client: str = "claude") -> HookStatus:
    """What of ours stands in a settings file.

    Args:
        path: the file.
        client: whose settings it holds.

    Raises:
        DeclarationError: the file is not a JSON object, or its hooks are not in the client's form.
    """
    path = Path(path)
    if client == "opencode":
        there, current = client_extensions.state(path)
        names = ("plugin",)
        return HookStatus(
            path, path.exists(), names if there else (), () if there else names, names if there > current else (), False
        )
    settings = _load(path)
    hooks = settings.get("hooks", {})
    dialect = DIALECTS[client]
    events = dialect.events
    ours = {event: [entry for entry in hooks.get(event, []) if _ours_in(entry)] for event in events}
    return HookStatus(
        path=path,
        exists=path.exists(),
        installed=tuple(event for event in events if ours[event]),
        missing=tuple(event for event in events if not ours[event]),
        outdated=tuple(event for event in events if ours[event] and ours[event] != dialect.entries(event)),
        disabled=settings.get("disableAllHooks") is True,
    )


def _is_ours(handler: object) -> bool:
    if not isinstance(handler, dict):
        return False
    words = [handler.get("command"), *(handler.get("args") or [])]
    if isinstance(words[0], str) and PROGRAM in words[0]:
        with suppress(ValueError):  # a shell's command line
            words += shlex.split(words[0])
    return any(isinstance(word, str) and Path(word).name == PROGRAM for word in words)


def _ours_in(entry: object) -> list[Any]:
    handlers = entry.get("hooks") if isinstance(entry, dict) else None
    return [handler for handler in handlers if _is_ours(handler)] if isinstance(handlers, list) else []


def _without_ours(entries: list[Any]) -> tuple[list[Any], int]:
    """The entries without our handlers, and where the first of ours stood (the end when none did)."""
    kept: list[Any] = []
    place = -1
    for entry in entries:
        ours = _ours_in(entry)
        if not ours:
            kept.append(entry)
            continue
        place = len(kept) if place < 0 else place
        foreign = [handler for handler in entry["hooks"] if not _is_ours(handler)]
        if foreign:
            kept.append({**entry, "hooks": foreign})
    return kept, len(kept) if place < 0 else place


def _load(path: Path) -> dict[str, Any]:
    try:
        text = read_text(path, _LARGEST, follow=True, owners=())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise DeclarationError([Problem(f"cannot be read: {error}", str(path))]) from error
    if not text.strip():
        return {}
    try:
        settings = json.loads(text)
    except json.JSONDecodeError as error:
        message = f"not JSON ({error.msg}, column {error.colno}); it was left as it is: mend it, then try again"
        raise DeclarationError([Problem(message, str(path), error.lineno)]) from error
    except RecursionError:
        raise DeclarationError([Problem("nested too deeply to be settings", str(path))]) from None
    if not isinstance(settings, dict):
        raise DeclarationError([Problem("the file must hold a JSON object", str(path), 1)])
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict):
        raise DeclarationError([Problem("must be an object of event to list", str(path), key="hooks")])
    wrong = [event for event, entries in hooks.items() if not isinstance(entries, list)]
    if wrong:
        raise DeclarationError([Problem("must be a list", str(path), key=f"hooks.{event}") for event in wrong])
    return settings


def _original(path: Path) -> Path:
    """Where the file as it was before us is kept, until our entries are taken out."""
    real = Path(os.path.realpath(path))
    return real.with_name(f"{real.name}.before-gt-witness")


def _keep_original(path: Path) -> None:
    kept = _original(path)
    kept.parent.mkdir(parents=True, exist_ok=True)
    replace_file(kept, read_bytes(path, _LARGEST, follow=True, owners=()) if path.exists() else b"")


def _said(settings: dict[str, Any]) -> dict[str, Any]:
    """What settings say: empty lists of hooks say nothing, and we take them away."""
    hooks = {event: entries for event, entries in settings.get("hooks", {}).items() if entries}
    return {**{key: value for key, value in settings.items() if key != "hooks"}, **({"hooks": hooks} if hooks else {})}


def _restore_original(path: Path, settings: dict[str, Any]) -> bool:
    """Put the kept original back when it says what ``settings`` says; it is not kept any longer in any case.

    Returns:
        False when there is none, or it says something else.
    """
    kept = _original(path)
    try:
        data = read_bytes(kept, _LARGEST, owners=())
        same = _said(_load(kept)) == _said(settings)
    except (OSError, DeclarationError):
        return False
    try:
        if same and data:
            _write_text(path, data.decode("utf-8"))
        elif same:
            Path(os.path.realpath(path)).unlink(missing_ok=True)
    finally:
        kept.unlink(missing_ok=True)
    return same


def _write(path: Path, settings: dict[str, Any]) -> None:
    _write_text(path, json.dumps(settings, indent=2, ensure_ascii=False) + "\n")


def _write_text(path: Path, content: str) -> None:
    # Through a link: the linked file is the one that people keep in their dotfiles.
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    # Others may have to read it as before.
    replace_file(path, content, mode=path.stat().st_mode & 0o777 if path.exists() else 0o600)
