"""What a sidecar is told when it is started: one JSON file that the Witness writes and the sidecar reads."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from witness.files import parse_json
from witness.names import GroupId
from witness.process import ProcessId

# What stands behind each field's type.
_TYPES: dict[str, type] = {
    "GroupId": GroupId,
    "ProcessId": ProcessId,
    "str": str,
    "dict[str, str]": dict,
    "dict[str, Any]": dict,
}


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which agent to observe, as what, and through which files.

    Args:
        group: the polecat's life that is observed.
        name: the sidecar's own name, unique in its group (``specs``, or ``specs-2`` for a second one).
        type: the sidecar type (a folder under ``sidecars/types`` or the town's own).
        argument: what followed the colon in the spec, empty when nothing did.
        session: the polecat's tmux session.
        socket: the tmux socket's name (``tmux -L``).
        tmux_directory: value of ``TMUX_TMPDIR`` for it, empty for tmux's own default.
        pane: the agent's pane, as ``%3``; empty where only the session is known.
        town: the town's root.
        workdir: where the agent works; relative arguments are read from here.
        run_dir: this run's folder under the town's runtime (spool, heartbeats, logs).
        journal: path of the journal's database.
        queue: the session's nudge queue folder.
        agent: the agent's process; the sidecar ends when it ends.
        task: the issue or task text that the polecat was given, empty when none.
        variables: the molecule's resolved variables.
        overrides: fields of the type that are overridden by hand.
        definition: the type's definition as ``witness.trust`` wrote it when the polecat was spawned; empty for a
            sidecar that finds its type by itself.
    """

    group: GroupId
    name: str
    type: str
    argument: str
    session: str
    socket: str
    town: str
    workdir: str
    run_dir: str
    journal: str
    queue: str
    agent: ProcessId
    task: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    overrides: dict[str, Any] = field(default_factory=dict)
    definition: str = ""
    tmux_directory: str = ""
    pane: str = ""

    @property
    def spool(self) -> Path:
        """Folder into which the hooks record events."""
        return Path(self.run_dir) / "spool"

    @property
    def heartbeat(self) -> Path:
        """File that the sidecar rewrites at every sign of life (monotonic seconds as text)."""
        return Path(self.run_dir) / "beats" / self.name

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Assignment:
        """Read what ``to_json`` wrote.

        Raises:
            ValueError: it is not an assignment.
        """
        try:
            raw = parse_json(text)
            raw["group"] = GroupId(**raw["group"])
            raw["agent"] = ProcessId(**raw["agent"])
            made = cls(**raw)
            for each in fields(cls):
                if not isinstance(getattr(made, each.name), _TYPES[str(each.type)]):
                    raise ValueError(f"not an assignment: {each.name!r} is of another type")
            return made
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"not an assignment: {error}") from error
