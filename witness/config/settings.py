"""The town's and the rig's settings, with a default for everything.

``settings/witness.yaml`` of the town is read first, then the rig's; the nearest wins. A missing file is no fault; a
wrong key or value is a declaration error naming file, line and key, so that a typing slip never turns into a default
in silence.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from witness.config.notices import Telling, read_notices
from witness.config.rigs import Operational
from witness.config.yaml_document import Document, load_yaml
from witness.errors import DeclarationError
from witness.process.limits import LIMITS, Limits, parse_limit, shown_size

_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)(ms|s|m|h|d))+")
_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: Any) -> float:
    """Read ``10s``, ``1m30s``, ``250ms`` or a plain number of seconds.

    Returns:
        Seconds.

    Raises:
        ValueError: it is none of these.
    """
    if isinstance(text, bool):
        raise ValueError("a duration is written like 10s, 1m30s or 250ms")
    if isinstance(text, int | float):
        if not 0 <= text < math.inf:
            raise ValueError(f"{text!r} is no length of time")
        return float(text)
    if not isinstance(text, str):
        raise ValueError(f"{text!r} is not a duration: write it like 10s, 1m30s or 250ms")
    plain = text.strip()
    if re.fullmatch(r"\d+(\.\d+)?", plain):
        return float(plain)
    if not _DURATION.fullmatch(plain):
        raise ValueError(f"{text!r} is not a duration: write it like 10s, 1m30s or 250ms")
    return sum(float(number) * _UNIT[unit] for number, unit in re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", plain))


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a town can set. Durations are in seconds.

    Args:
        containment: which nets hold a group together: ``reaper`` (its reapers, its marker, every descendant ever seen),
            ``cgroup`` (a cgroup of its own as well, or no spawn), ``auto`` (a cgroup where one is to be had).
        spawn_deadline: a group that is still SPAWNING after this is undone (Gas Town's spawn grace: 5 min).
        spawn_settle: an agent that ends within this time of its start counts as not started.
        stop_grace: between TERM and KILL.
        done_settle: between ``gt done`` and the end of the group, so that the agent's last words reach its screen.
        done_grace: a group that is still alive this long after ``gt done`` is the zombie class done-stuck.
        hung_after: silence of heartbeat, events and pane after which an agent is reported as hung.
        nuke_hung: whether a hung polecat is ended, not only reported.
        patrol_interval: the daemon's full look round.
        sidecar_silence: a sidecar without a sign of life for this long is replaced: three intervals, the default one
            being ten seconds.
        backoff_base, backoff_ceiling: the wait before the second respawn, doubled each time, and its upper end.
        intensity, intensity_window: that many crashes within the window, and the sidecar is FAILED.
        failed_decay: after this a FAILED sidecar is tried once more.
        member_limit: how many live polecats and sidecars the town may hold.
        linger: an automatically started Witness ends after this long without groups; 0 keeps it.
        retention: so long after a run's end its folder stays whole; its last screen and its history stay six times as
            long. 0 keeps all for ever.
        sidecars: the default ``--sidecars`` of a rig; empty means none.
        hook_wait: how long a hook waits for the verdict of rules sidecars.
        prompt_line: whether a client that runs our mod shows one line about its polecat above the prompt.
        key_env: the variable that holds the sidecars' own API key.
        key_file: a file with that key, 0600; asked where the variable is not set.
        key_command: a program that prints it (a password manager's); asked where there is no file.
        model: the judge's default model.
        model_url: address of an Anthropic-compatible server; empty for ANTHROPIC_BASE_URL, else Anthropic's own.
        client_model: the model that the agent's own client asks at its user's subscription, for types with
            ``judge: client``; empty: it is never asked.
        run_budget, day_budget: dollars that the sidecars of one run, and of the town in a day, may spend.
        run_calls, day_calls: the same in calls.
        prices: dollars for a million tokens by model, ``{beginning of its id: {input, output, written, cached}}``, for
            models that are not in the sidecars' own list.
        unheeded_limit: a rule is silent once more than this share of its remarks (of five at least) was not heeded; 1
            lets it speak on.
        memory_high, memory_max, pids_max, cpu_weight: what one polecat's agent may use with all that it starts; see
            ``Limits``. None for no limit, written ``max``.
        follow: what ``gt follow`` gives a session that a person has started in this project, ``{sidecars: SPEC}``; with
            our plugin each such session is followed from its start.
        types: overrides of sidecar types, ``{type: {field: value}}``.
        folders: whether a spawn answers the client's question about its folder beforehand: ``ask`` (the person at the
            terminal), ``accept``, ``never``.
        on: who is told when a polecat waits, has died, is stuck, has lost a sidecar or has met its client's limit:
            ``{waiting: {command: PROGRAM}}``; see ``Telling``.
        worktree: whether each polecat gets a worktree and a branch of its own, as ``gt polecat spawn --worktree``.
        worktree_files: what git ignores and a worktree needs all the same, relative to the repository's top: a folder
            is linked (where git ignores the link too), a file copied; ``link:PATH``, ``copy:PATH`` say it themselves.
        setup: commands that are run in a new worktree, in order, before the agent starts; no shell reads them.
        setup_timeout: how long one of them may take.
        worktree_throwaway: names of ignored files and folders that anybody can make again, as globs: they keep no
            worktree from being removed. Folders that say so themselves (``CACHEDIR.TAG``) need not be named.
        trust: folders whose projects may declare whatever they like of sidecar types, relative to the town's root.
    """

    containment: str = "auto"
    spawn_deadline: float = 300.0
    spawn_settle: float = 0.3
    stop_grace: float = 5.0
    done_settle: float = 1.0
    done_grace: float = 60.0
    hung_after: float = 1800.0
    nuke_hung: bool = False
    patrol_interval: float = 10.0
    sidecar_silence: float = 30.0
    backoff_base: float = 0.5
    backoff_ceiling: float = 60.0
    intensity: int = 5
    intensity_window: float = 60.0
    failed_decay: float = 900.0
    member_limit: int = 500
    linger: float = 900.0
    retention: float = 2_592_000.0
    sidecars: str = ""
    hook_wait: float = 0.1
    prompt_line: bool = True
    key_env: str = "GT_WITNESS_API_KEY"
    key_file: str = ""
    key_command: str = ""
    model: str = "claude-haiku-5-5"
    model_url: str = ""
    client_model: str = ""
    run_budget: float = 0.50
    day_budget: float = 5.00
    run_calls: int = 500
    day_calls: int = 5000
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    unheeded_limit: float = 1.0
    memory_high: int | None = None
    memory_max: int | None = None
    pids_max: int | None = None
    cpu_weight: int | None = None
    follow: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    folders: str = "ask"
    on: Mapping[str, tuple[Telling, ...]] = field(default_factory=dict)
    worktree: bool = False
    worktree_files: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    setup_timeout: float = 600.0
    worktree_throwaway: tuple[str, ...] = ("__pycache__", "*.pyc")
    trust: tuple[str, ...] = ()

    @property
    def limits(self) -> Limits:
        """What one polecat may use of the machine."""
        return Limits(self.memory_high, self.memory_max, self.pids_max, self.cpu_weight)


#: The settings that are lengths of time.
DURATIONS = frozenset(
    [
        "spawn_deadline",
        "spawn_settle",
        "stop_grace",
        "done_settle",
        "done_grace",
        "hung_after",
        "patrol_interval",
        "sidecar_silence",
        "backoff_base",
        "backoff_ceiling",
        "intensity_window",
        "failed_decay",
        "linger",
        "retention",
        "hook_wait",
        "setup_timeout",
    ]
)
_SHORTEST_INTERVAL = 0.01
#: The settings that take one of a few words.
CHOICES: Mapping[str, tuple[str, ...]] = {
    "containment": ("auto", "reaper", "cgroup"),
    "folders": ("ask", "accept", "never"),
}


_PRICES = frozenset(["input", "output", "written", "cached"])


def _prices(value: Any) -> Any:
    good = isinstance(value, dict) and all(
        isinstance(each, dict)
        and set(each) <= _PRICES
        and all(
            isinstance(price, int | float) and not isinstance(price, bool) and price >= 0 for price in each.values()
        )
        for each in value.values()
    )
    if not good:
        raise ValueError(f"write it as {{model: {{{', '.join(sorted(_PRICES))}}}}}, in dollars for a million tokens")
    return value


def _types(value: Any) -> Any:
    if not isinstance(value, dict) or not all(isinstance(entry, dict) for entry in value.values()):
        raise ValueError("write it as {type: {field: value}}")
    return value


def _follow(value: Any) -> Any:
    if not isinstance(value, dict) or set(value) != {"sidecars"} or not isinstance(value["sidecars"], str):
        raise ValueError("write it as {sidecars: SPEC}, as in {sidecars: 'conventions,tools'}")
    return value


def _folders(value: Any) -> Any:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise ValueError("write it as a list of folders")
    return tuple(value)


def _on(value: Any) -> Any:
    return read_notices(value, parse_duration)


def _worktree_files(value: Any) -> Any:
    for each in _texts(value):
        path = each.removeprefix("link:").removeprefix("copy:")
        parts = path.split("/")
        if path.startswith("/") or not path or ".." in parts or ".git" in parts or "." in parts:
            raise ValueError(f"{each!r} must be a path below the repository's top, as in [.env, node_modules]")
    return tuple(value)


def _texts(value: Any) -> Any:
    if not isinstance(value, list) or not all(isinstance(each, str) and each and "\0" not in each for each in value):
        raise ValueError("write it as a list of texts")
    return tuple(value)


def _commands(value: Any) -> Any:
    for each in _texts(value):
        try:
            words = shlex.split(each)
        except ValueError as error:
            raise ValueError(f"{each!r} cannot be split into words: {error}") from error
        if not words:
            raise ValueError("a command is empty")
    return tuple(value)


_SHAPED: Mapping[str, Callable[[Any], Any]] = {
    "prices": _prices,
    "types": _types,
    "trust": _folders,
    "follow": _follow,
    "on": _on,
    "worktree_files": _worktree_files,
    "worktree_throwaway": _texts,
    "setup": _commands,
}


def _convert(name: str, value: Any) -> Any:
    default = getattr(Settings(), name)
    if name in DURATIONS:
        seconds = parse_duration(value)
        if name == "patrol_interval" and seconds < _SHORTEST_INTERVAL:
            raise ValueError(
                f"at least {_SHORTEST_INTERVAL * 1000:.0f}ms: a Witness that never sleeps keeps a core busy"
            )
        return seconds
    if name in LIMITS:
        return parse_limit(name, value)
    if name in _SHAPED:
        return _SHAPED[name](value)
    if isinstance(default, bool) or isinstance(value, bool):
        if isinstance(default, bool) and isinstance(value, bool):
            return value
        raise ValueError(f"expected {type(default).__name__}, got {value!r}")
    if isinstance(default, float) and isinstance(value, int):
        value = float(value)
    if not isinstance(value, type(default)):
        raise ValueError(f"expected {type(default).__name__}, got {value!r}")
    if isinstance(value, int | float) and not 0 <= value < math.inf:
        raise ValueError("must not be negative" if value < 0 else f"{value!r} is no limit")
    if value not in (choices := CHOICES.get(name, (value,))):
        raise ValueError(f"one of {', '.join(choices)}, not {value!r}")
    return value


# Given a file of settings, its values, and the settings that they are put over: which of them do not count.
Held = Callable[[Path, Mapping[str, Any], "Settings"], Collection[str]]


def check_values(document: Document) -> dict[str, Any]:
    """The values of a file of settings, as ``Settings`` holds them.

    Raises:
        DeclarationError: every key that is unknown and every value that is wrong.
    """
    known = {each.name for each in fields(Settings)}
    problems, changes = [], {}
    for key, value in document.values.items():
        if key not in known:
            problems.append(document.unknown(key, sorted(known)))
            continue
        try:
            changes[key] = _convert(key, value)
        except ValueError as error:
            problems.append(document.problem(str(error), key))
    if problems:
        raise DeclarationError(problems)
    return changes


def _apply(base: Settings, path: Path, owners: Collection[int], held: Held | None) -> Settings:
    changes = check_values(load_yaml(path, owners))
    for key in held(path, changes, base) if held and changes else ():
        del changes[key]
    return replace(base, **changes)


def changes(before: Settings, after: Settings) -> list[str]:
    """What differs between two settings, as ``key 5.0 → 1.0``; what may lead to a secret has no values."""
    found = []
    for each in fields(Settings):
        old, new = getattr(before, each.name), getattr(after, each.name)
        if old != new:
            found.append(
                each.name if each.name.startswith("key_") or each.name == "on" else f"{each.name} {old} → {new}"
            )
    return found


def written(name: str, value: Any) -> str:
    """A setting's value as it would stand in a file; nothing for one that is empty."""
    if name in DURATIONS:
        return _written_duration(value)
    if name.startswith("memory_") and value is not None:
        return shown_size(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list | Mapping):
        return json.dumps(value, ensure_ascii=False) if value else ""
    return "" if value is None else str(value)


def _written_duration(seconds: float) -> str:
    if seconds != round(seconds):
        return f"{seconds * 1000:g}ms"
    whole, parts = int(seconds), []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        if whole >= size:
            parts.append(f"{whole // size}{unit}")
            whole %= size
    return "".join(parts) or "0"


def _gas_town(town: Path) -> Settings:
    """Our defaults, save where a Gas Town has set the same thing for its own patrols."""
    knobs, plain = Operational(town), Settings()
    return replace(
        plain,
        done_grace=knobs.seconds("witness", "done_intent_stuck_timeout", plain.done_grace),
        hung_after=knobs.seconds("session", "hung_session_threshold", plain.hung_after),
    )


def load_settings(town: Path, rig: str = "", held: Held | None = None) -> Settings:
    """Read the town's settings and, over them, the rig's; below both, what a Gas Town set in its own file.

    Whoever acts on them calls ``witness.trust.settings.trusted_settings``.

    Args:
        town: the town's root.
        rig: name of the rig, empty for the town's own settings.
        held: which values of a file do not count; all do when None.

    Raises:
        DeclarationError: a file is not YAML, or has an unknown key or a wrong value.
    """
    owners = _owners(town)
    settings = _apply(_gas_town(town), town / "settings" / "witness.yaml", owners, held)
    return _apply(settings, town / rig / "settings" / "witness.yaml", owners, held) if rig else settings


def _owners(town: Path) -> set[int]:
    """Whose settings count: our own, the system's, and those of the user that the town belongs to (a folder that is
    mounted into a container has another user than the one that runs there)."""
    try:
        return {os.geteuid(), 0, town.stat().st_uid}
    except OSError:
        return {os.geteuid(), 0}
