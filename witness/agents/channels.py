"""The channel of a polecat: how its client's events reach us and how its agent is told something.

Chosen at spawn by looking at the client, and proven by a first sign of life in the run's spool: what was configured is
not yet known to work. Claude Code has three, each behind the other: the mod answers inside the client; an event that it
does not answer runs the command hook; without either, the pane is watched and typed into.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from witness.agents.clients import CLAUDE, Channel, claude_home, client_for, program_at
from witness.files import read_json

#: The first version that runs mods without being asked to.
MODS_SINCE = (2, 1, 287)
#: The first version that runs hooks at all.
HOOKS_SINCE = (1, 0, 38)
#: The oldest version tried whose hook entries may hold ``args``; 2.1.49 is known to run the program bare.
ARGS_SINCE = (2, 1, 197)
#: Seconds after the spawn in which a client that has hooks has run the first of them, or waits for a person.
PATIENCE = 15.0
# (since which version, its channel, what it lacks), the newest first.
_SINCE: tuple[tuple[tuple[int, ...], Channel, str], ...] = (
    (MODS_SINCE, Channel.MOD, ""),
    (ARGS_SINCE, Channel.HOOKS, f"knows no mods ({'.'.join(map(str, MODS_SINCE))} does)"),
    (HOOKS_SINCE, Channel.HOOKS_STRING, "may not know args in a hook's entry"),
    ((), Channel.PANE, f"knows no hooks ({'.'.join(map(str, HOOKS_SINCE))} does): update it"),
)
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_EXECUTABLES = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
MANAGED = (Path("/etc/claude-code"), Path("/Library/Application Support/ClaudeCode"))
# Files of the spool; their names stand in hooks/gt_mod.py and witness/events/spool_writer.py, which import nothing.
MOD_SIGN, _MOD_LOCK, _HOOK_SIGN = "mod.json", "mod.serving", "client"


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen at spawn.

    Args:
        channel: the best one that the client should have.
        version: the client's version, empty when it could not be read.
        reason: why it is not the best that the client's kind has, empty when it is.
    """

    channel: Channel
    version: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ChannelState:
    """What is known of a polecat's channel.

    Args:
        channel: the one in use, as far as is known.
        seen: it has given a sign of life.
        reason: why it is another one than was chosen, or what is missing; empty when all is well.
    """

    channel: Channel
    seen: bool
    reason: str = ""


def choose(argv: Sequence[str], workdir: Path, environ: Mapping[str, str]) -> Choice:
    """The channel that an agent's client should have.

    Args:
        argv: the agent's command.
        workdir: where it will work; its settings may switch hooks off.
        environ: the environment that it will have.
    """
    client = client_for(argv)
    if client is not CLAUDE:
        return Choice(client.channel)
    found = client_version(argv, environ)
    off = "--bare loads neither hooks nor plugins" if "--bare" in argv else switched_off(workdir, environ)
    if off:
        return Choice(Channel.PANE, found, off)
    if not found:
        return Choice(Channel.HOOKS_STRING, "", "the client's version could not be read")
    version = tuple(int(number) for number in found.split("."))
    _, channel, lack = next(row for row in _SINCE if version >= row[0])
    return Choice(channel, found, f"{found} {lack}" if lack else "")


def client_version(argv: Sequence[str], environ: Mapping[str, str]) -> str:
    """The version of the Claude Code that a command starts, empty when it cannot be told.

    It stands in the installation (the native one's file name, the package's ``package.json``); a program of another
    place is asked, a script is not: nobody knows what it does with ``--version``.
    """
    at = program_at(argv, CLAUDE)
    found = shutil.which(argv[at], path=environ.get("PATH")) if at is not None else None
    if not found:
        return ""
    program = Path(os.path.realpath(found))
    if _VERSION.fullmatch(program.name):
        return program.name
    for folder in program.parents[:3]:
        with suppress(OSError, ValueError):
            package = read_json(folder / "package.json", follow=True, owners=())
            if isinstance(package, dict) and str(package.get("name", "")).endswith("claude-code"):
                return _first_version(str(package.get("version", "")))
    return _asked(program, environ)


def _asked(program: Path, environ: Mapping[str, str]) -> str:
    try:
        with program.open("rb") as file:
            if file.read(4) not in _EXECUTABLES:
                return ""
        answer = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=5,
            env=dict(environ), check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    return _first_version(answer.stdout)


def _first_version(text: str) -> str:
    found = _VERSION.search(text)
    return found[0] if found else ""


# -- settings that switch hooks off ------------------------------------------------------------------------------------


def switched_off(workdir: Path, environ: Mapping[str, str]) -> str:
    """The settings file that leaves a session in a folder without our hooks and mod, with its key; empty for none.

    A nearer file beats a farther one (local, project, user), the managed ones beat them all.
    """
    home = claude_home(environ)
    for folder in MANAGED:
        for path in _managed(folder):
            settings = _settings(path)
            for key in ("disableAllHooks", "allowManagedHooksOnly"):
                if settings.get(key) is True:
                    return f"{path} says {key}"
    nearest = (workdir / ".claude" / "settings.local.json", workdir / ".claude" / "settings.json")
    for path in (*nearest, home / "settings.json"):
        said = _settings(path).get("disableAllHooks")
        if said is not None:
            return f"{path} says disableAllHooks" if said is True else ""
    return ""


def _managed(folder: Path) -> Iterable[Path]:
    yield folder / "managed-settings.json"
    with suppress(OSError):
        yield from sorted((folder / "managed-settings.d").glob("*.json"))


def _settings(path: Path) -> dict[str, object]:
    try:
        found = read_json(path, follow=True, owners=())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


# -- signs of life -----------------------------------------------------------------------------------------------------


def first_sign(spool: Path) -> Channel | None:
    """The channel of which a run's spool shows a sign of life: the mod while its server lives, else hooks; None: none.

    A spool without any is the only sign of hooks that are switched off in a way that no settings file shows.
    """
    if (spool / MOD_SIGN).exists() and _is_held(spool / _MOD_LOCK):
        return Channel.MOD
    return Channel.HOOKS if (spool / _HOOK_SIGN).exists() else None


def _is_held(path: Path) -> bool:
    """Whether a living process holds the lock."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


def channel_state(chosen: Channel, reason: str, spool: Path, age: float) -> ChannelState:
    """What is known of a polecat's channel now.

    Args:
        chosen: at spawn; a client without hooks keeps it.
        reason: what the choice said.
        spool: the run's.
        age: seconds since the spawn.
    """
    if chosen in (Channel.PANE, Channel.NONE):
        return ChannelState(chosen, seen=True, reason=reason)
    sign = first_sign(spool)
    if sign is Channel.MOD or (sign is not None and chosen is not Channel.MOD):
        return ChannelState(Channel.MOD if sign is Channel.MOD else chosen, seen=True, reason=reason)
    if sign is not None:
        return ChannelState(Channel.HOOKS, seen=True, reason="the mod does not answer; command hooks do")
    if age < PATIENCE:
        return ChannelState(chosen, seen=False, reason=reason)
    waited = f"no sign of life of its {chosen} within {PATIENCE:.0f} s: a dialog may wait, or hooks are switched off"
    return ChannelState(Channel.PANE, seen=False, reason=waited)


def recorded_state(channel: str, reason: str, spool: Path, age: float) -> ChannelState:
    """``channel_state`` of what a spawn recorded in its run's state.

    Args:
        channel: empty for a session that others started: what its spool shows decides.
        reason: what the choice said.
        spool: the run's.
        age: seconds since the spawn.
    """
    return channel_state(Channel(channel or Channel.HOOKS), reason, spool, age)
