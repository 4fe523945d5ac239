"""The dialog with which a client asks whether a folder is trusted: has it been answered, and answering it beforehand.

The answer goes where the client itself would put it, for this folder only. Nothing else of its file changes.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from witness.agents.clients import CLAUDE, CODEX, GEMINI, client_for, program_at
from witness.errors import UsageError
from witness.files import parse_json, parse_toml, read_bytes, replace_file

# In bytes; Claude Code keeps a history of every project there.
_LARGEST = 64 << 20
# Claude Code holds ``<file>.lock``, a folder, while it writes; one that was not touched for so long is of the dead.
_LOCK_STALE_SECONDS = 10.0
_LOCK_PATIENCE_SECONDS = 5.0
_LOCK_STEP_SECONDS = 0.02
# What a folder may bring that a client runs or obeys once the folder is accepted.
_BRINGS = (".claude/settings.json", ".claude/settings.local.json", ".mcp.json", ".codex/config.toml", ".gemini/settings.json")  # noqa: E501 # fmt: skip


@dataclass(frozen=True, slots=True)
class FolderDialog:
    """A folder that a client will ask about.

    Args:
        client: the client's own name.
        folder: the folder, without links.
        path: the client's file in which the answer is kept.
        entry: what stands there once it is accepted, for people.
        brings: files of the folder that the client obeys then.
        record: writes the entry.
    """

    client: str
    folder: Path
    path: Path
    entry: str
    brings: tuple[str, ...]
    record: Callable[[], None]

    def __str__(self) -> str:
        brings = f" (it brings {', '.join(self.brings)})" if self.brings else ""
        return f"{self.folder}{brings} for {self.client}: {self.entry} in {self.path}"


def folder_dialog(argv: Sequence[str], workdir: Path, environ: Mapping[str, str]) -> FolderDialog | None:
    """The dialog that a client will show; None when it was answered already, or the client has none that we know.

    Args:
        argv: the agent's command; assignments before the program count (``env HOME=… claude``).
        workdir: where it is started.
        environ: the environment that it will have.

    Raises:
        UsageError: the client's file cannot be read.
    """
    client = client_for(argv)
    if client.name not in _KINDS:
        return None
    given = [word.partition("=") for word in argv[: program_at(argv, client)] if "=" in word]
    environ = {**environ, **{name: value for name, _, value in given}}
    folder = Path(os.path.realpath(workdir))
    place, read, entry, accepted, changed = _KINDS[client.name]
    path = Path(os.path.realpath(place(environ)))
    try:
        if accepted(read(_content(path)), folder):
            return None
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} of {client.title} cannot be read: {error}") from error
    brings = tuple(name for name in _BRINGS if (folder / name).exists())

    def record() -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with _client_lock(path):
                content = _content(path)
                mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
                if not accepted(read(content), folder):
                    replace_file(path, changed(content, folder), mode=mode)
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise UsageError(f"the answer could not be recorded in {path}: {error}") from error

    return FolderDialog(client.title, folder, path, entry(folder), brings, record)


def _content(path: Path) -> str:
    try:
        return read_bytes(path, _LARGEST, follow=True, owners=()).decode("utf-8")
    except FileNotFoundError:
        return ""


@contextmanager
def _client_lock(path: Path) -> Iterator[None]:
    """Keep running clients from writing the file meanwhile, in the way they keep each other from it."""
    lock = path.with_name(f"{path.name}.lock")
    deadline = time.monotonic() + _LOCK_PATIENCE_SECONDS
    while True:
        try:
            lock.mkdir()
            break
        except FileExistsError:
            try:
                if time.time() - lock.stat().st_mtime > _LOCK_STALE_SECONDS:
                    lock.rmdir()
                    continue
            except FileNotFoundError:
                continue
            if time.monotonic() > deadline:
                raise TimeoutError(f"a client holds {lock}") from None
            time.sleep(_LOCK_STEP_SECONDS)
    try:
        yield
    finally:
        lock.rmdir()


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or Path.home())


def _json_object(content: str) -> dict[str, Any]:
    found = parse_json(content) if content.strip() else {}
    if not isinstance(found, dict):
        raise TypeError("it holds no JSON object")
    return found


def _dumped(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


# -- Claude Code: an entry in .claude.json; that of a folder counts for what lies below it ----------


def claude_file(environ: Mapping[str, str]) -> Path:
    """Where Claude Code keeps its own state."""
    config = environ.get("CLAUDE_CONFIG_DIR")
    return Path(config) / ".claude.json" if config else _home(environ) / ".claude.json"


def _claude_accepted(found: dict[str, Any], folder: Path) -> bool:
    projects = found.get("projects", {})
    return any(projects.get(str(each), {}).get("hasTrustDialogAccepted") is True for each in (folder, *folder.parents))


def _claude_changed(content: str, folder: Path) -> str:
    found = _json_object(content)
    found.setdefault("projects", {}).setdefault(str(folder), {})["hasTrustDialogAccepted"] = True
    return _dumped(found)


# -- Codex CLI: a table in config.toml, appended, so that what people wrote there stays ----------


def _codex_accepted(found: dict[str, Any], folder: Path) -> bool:
    return found.get("projects", {}).get(str(folder), {}).get("trust_level") is not None


def _codex_changed(content: str, folder: Path) -> str:
    table = f"[projects.{json.dumps(str(folder))}]\n"
    if str(folder) in parse_toml(content).get("projects", {}):
        raise ValueError(f"it has a {table.strip()} without trust_level: add the line by hand")
    return f'{content}{"" if content.endswith(chr(10)) or not content else chr(10)}\n{table}trust_level = "trusted"\n'


# -- Gemini CLI: a file of folders; the nearest entry counts ----------


def _gemini_accepted(found: dict[str, Any], folder: Path) -> bool:
    return any(str(each) in found for each in (folder, *folder.parents))


def _gemini_changed(content: str, folder: Path) -> str:
    return _dumped({**_json_object(content), str(folder): "TRUST_FOLDER"})


_Kind = tuple[
    Callable[[Mapping[str, str]], Path],
    Callable[[str], dict[str, Any]],
    Callable[[Path], str],
    Callable[[dict[str, Any], Path], bool],
    Callable[[str, Path], str],
]
# (file, reader, entry in words, whether it holds an answer, the content with the answer)
_KINDS: Mapping[str, _Kind] = {
    CLAUDE.name: (
        claude_file,
        _json_object,
        lambda folder: f'projects["{folder}"].hasTrustDialogAccepted = true',
        _claude_accepted,
        _claude_changed,
    ),
    CODEX.name: (
        lambda environ: Path(environ.get("CODEX_HOME") or _home(environ) / ".codex") / "config.toml",
        parse_toml,
        lambda folder: f'projects."{folder}".trust_level = "trusted"',
        _codex_accepted,
        _codex_changed,
    ),
    GEMINI.name: (
        lambda environ: Path(
            environ.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH") or _home(environ) / ".gemini" / "trustedFolders.json"
        ),
        _json_object,
        lambda folder: f'"{folder}": "TRUST_FOLDER"',
        _gemini_accepted,
        _gemini_changed,
    ),
}
