"""Every key of every file that may come with a repository or an issue, and what it can do.

The tables are the register: whoever adds a key to a schema adds it here, and a test holds both together. What decides
whether a key counts untrusted reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Effect(StrEnum):
    """What a key can do."""

    DATA = "data"
    """It says which actions are looked at, in which words, or what a person reads."""
    RUNS = "runs"
    """A program."""
    SPENDS = "spends"
    """Money, or lets more of it be spent."""
    REACHES = "reaches"
    """Outside of the work tree: another file, a server, a key."""
    CHANGES = "changes"
    """What the user chose: how it is supervised, or what a shipped type says."""
    UP = "up"
    """A limit that a larger value raises; a lower one is free."""
    DOWN = "down"
    """A limit that a smaller value raises; a higher one is free."""


_D, _UP, _DOWN = Effect.DATA, Effect.UP, Effect.DOWN


def _all(effect: Effect, names: str) -> dict[str, Effect]:
    return dict.fromkeys(names.split(), effect)


#: ``sidecar.yaml``; the whole of ``prompt.md`` is ``prompt``, all names of ``snippets.yaml`` are data.
SIDECAR: Mapping[str, Effect] = {
    **_all(_D, "summary argument tools pane snippets"),
    "rules": Effect.CHANGES,
    "judge": Effect.RUNS,
    "command": Effect.RUNS,
    "function": Effect.RUNS,
    "prompt": Effect.SPENDS,
    "model": Effect.SPENDS,
    "near_misses": Effect.SPENDS,
    "context": Effect.REACHES,
    **_all(_UP, "cap calls_per_hour timeout max_tokens pane_lines"),
    **_all(_DOWN, "cooldown gap poll duplicate_window batch change holdout"),
    "threshold": Effect.DOWN,
    "max_age": Effect.CHANGES,
}

#: A rule, in ``sidecar.yaml`` or in the front matter of an issue or a document: rules look and speak, nothing else.
RULE: Mapping[str, Effect] = _all(
    _D,
    "name tools failed opens writes touches writes_outside touches_outside but_not creates changes within runs named "
    "adds_dependency command text output code comments unless lines_over function_over lacks_block block_has defines "
    "undoes repeats since_last after given confidence once final snippet say cites",
)

#: The front matter of issues, specifications and guides.
FRONT_MATTER: Mapping[str, Effect] = _all(_D, "files not rules")

#: ``settings/witness.yaml`` of a town, or of a rig.
SETTINGS: Mapping[str, Effect] = {
    **_all(_D, "sidecars prompt_line unheeded_limit worktree worktree_files"),
    "setup": Effect.RUNS,
    # Layers of types: each is judged by itself, by ``SIDECAR``.
    "types": _D,
    "trust": Effect.RUNS,
    "folders": Effect.RUNS,
    "on": Effect.RUNS,
    "key_command": Effect.RUNS,
    **_all(Effect.REACHES, "key_env key_file model_url"),
    **_all(Effect.SPENDS, "model client_model prices"),
    **_all(_UP, "run_budget day_budget run_calls day_calls member_limit hook_wait setup_timeout"),
    **_all(_UP, "memory_high memory_max pids_max cpu_weight"),
    **_all(
        Effect.CHANGES,
        "containment spawn_deadline spawn_settle stop_grace done_settle done_grace hung_after nuke_hung "
        "patrol_interval sidecar_silence backoff_base backoff_ceiling intensity intensity_window failed_decay linger "
        "follow worktree_throwaway retention",
    ),
}

#: A molecule, and within it its variables. What its legs and steps say is for the agent to read.
MOLECULE: Mapping[str, Effect] = {
    "agent": Effect.RUNS,
    **_all(_UP, "memory_high memory_max pids_max cpu_weight"),
    **_all(
        _D,
        "formula description type version pour review_only inputs prompts output legs synthesis steps extends compose "
        "template aspects advice vars pointcuts phase source title labels metadata squash worktree",
    ),
}
VARIABLE: Mapping[str, Effect] = {
    **_all(_D, "description required type pattern enum"),
    # ``sidecars`` and ``issue`` name files: those outside of the project are refused.
    "default": Effect.REACHES,
}

#: ``town.yaml``, and a rig in it: its path is where polecats work.
TOWN: Mapping[str, Effect] = _all(_D, "name rigs")
RIG: Mapping[str, Effect] = {"prefix": _D, "path": Effect.REACHES}

#: An overlay of a molecule's steps.
OVERLAY: Mapping[str, Effect] = _all(_D, "step_id mode description")

#: Labelled cases: ``eval`` makes their files in a folder of its own and runs nothing of them.
CASE: Mapping[str, Effect] = _all(
    _D,
    "argument files task variables prompt type name event events expect needs knowable say not_say changed created "
    "removed generated exit",
)


def raises(effect: Effect, value: float | None, before: float | None) -> bool:
    """Whether a limit is raised; None is none."""
    if effect is Effect.UP:
        return before is not None and (value is None or value > before)
    return before is None or (value is not None and value < before)
