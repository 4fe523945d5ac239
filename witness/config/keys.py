"""The key of the model judges: where it comes from, and how it stays out of every environment block.

A process's first environment can be read by everybody who runs as the same user, the agent included. So the key goes
from a file, a command or the caller's own variable into the memory of the process that asks the model, and nowhere
else.
"""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

from witness.config.settings import Settings
from witness.errors import UsageError
from witness.files import check_own_folder, make_folder, open_regular, read_text, replace_file

_FILE = "key"
_LONGEST = 4096
_COMMAND_SECONDS = 10.0
# What the fork server was given for this process alone.
_given = ""


def user_key_file() -> Path:
    """The user's own key, as ``gt key set`` keeps it: for all towns, outside of each."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".config") / "gt-witness" / _FILE  # noqa: PTH117


def give_key(key: str) -> None:
    """Let this process ask models with a key that it was handed."""
    global _given
    _given = key


def exported_key(settings: Settings, environ: Mapping[str, str] | None = None) -> str:
    """The key in the caller's own environment; empty without."""
    return (os.environ if environ is None else environ).get(settings.key_env, "").strip()


def find_key(settings: Settings, environ: Mapping[str, str] | None = None) -> str:
    """The key of the sidecars' model: handed over, exported, from ``key_file``, ``key_command`` or ``gt key set``.

    Returns:
        Empty where there is none.

    Raises:
        UsageError: a file or a command was named, and gives none.
    """
    if _given or (key := exported_key(settings, environ)):
        return _given or key
    if settings.key_file:
        return read_key(Path(os.path.expanduser(settings.key_file)))  # noqa: PTH111
    if settings.key_command:
        return _ask(settings.key_command)
    path = user_key_file()
    return read_key(path) if path.is_file() else ""


def exported_only(settings: Settings) -> bool:
    """Whether the caller's environment alone has the key, so that nobody who is started otherwise finds it."""
    elsewhere = settings.key_file or settings.key_command or user_key_file().is_file()
    return bool(exported_key(settings)) and not elsewhere


def key_origin(settings: Settings, given: str = "") -> str:
    """Where a sidecar's key comes from, in words that show nothing of it; empty where there is none.

    Args:
        settings: the town's.
        given: the one that the Witness holds in memory.

    Raises:
        UsageError: as ``find_key``.
    """
    if given:
        return "given by a spawn or gt key set"
    if not find_key(settings):
        return ""
    if exported_key(settings):
        return f"exported as {settings.key_env}"
    if settings.key_file:
        return f"key_file {settings.key_file}"
    return "key_command" if settings.key_command else str(user_key_file())


def read_key(path: Path) -> str:
    """The key in a file that is its user's alone.

    Raises:
        UsageError: it is not there, empty, or open to others.
    """
    try:
        handle = open_regular(path)
        try:
            mode = stat.S_IMODE(os.fstat(handle).st_mode)
        finally:
            os.close(handle)
        if mode & 0o077:
            raise UsageError(f"{path} can be read by others: chmod 600 {path}")
        key = read_text(path, _LONGEST).strip()
    except (OSError, ValueError) as error:
        raise UsageError(f"the key cannot be read: {error}: write it with 'gt key set'") from error
    if not key or not key.isprintable() or " " in key:
        raise UsageError(f"{path} holds no key: write it with 'gt key set'")
    return key


def write_key(key: str) -> Path:
    """Keep a key for this user alone.

    Raises:
        UsageError: it is none.
        OSError: it cannot be written.
    """
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key or len(key) > _LONGEST:
        raise UsageError("that is no key: one line of printable characters without blanks is wanted")
    path = user_key_file()
    below = next(place for place in path.parent.parents if place.is_dir())
    make_folder(path.parent, below=below)
    check_own_folder(path.parent)
    replace_file(path, key + "\n")
    return path


def _ask(command: str) -> str:
    try:
        done = subprocess.run(
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"key_command: {error}") from error
    key = done.stdout.strip()
    if done.returncode != 0 or not key or not key.isprintable() or " " in key:
        raise UsageError(f"key_command gives no key (exit code {done.returncode})")
    return key
