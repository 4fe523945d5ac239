"""What a polecat, and what a helper of ours, finds in its environment."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from witness.agents.clients import ANY, CLAUDE, client_for
from witness.config.town import Town
from witness.errors import WitnessError
from witness.files import make_folder, read_text, replace_file
from witness.names import MARKER_VARIABLE, GroupId
from witness.process.child_programs import filtered_environ
from witness.tmux import Tmux

# The room that a forked sidecar has for its own marker; rig, polecat and run are at most 64 characters each.
MARKER_ROOM = 200


def polecat_environment(
    town: Town,
    group: GroupId,
    session: str,
    workdir: Path,
    key_env: str,
    hook_wait: float,
    agent: Sequence[str],
    more: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """A polecat's whole environment: the caller's, Gas Town's, and ours.

    Args:
        town: its town.
        group: its identity.
        session: its tmux session.
        workdir: where it works.
        key_env: name of the variable with the sidecars' API key, which the agent must not see.
        hook_wait: seconds that a hook may wait for rules sidecars.
        agent: its command.
        more: variables over the caller's.
    """
    environment = filtered_environ() | dict(more or {})
    environment.pop(key_env, None)
    role = f"{group.rig}/polecats/{group.polecat}"
    environment["PATH"] = f"{own_commands(town)}{os.pathsep}{environment.get('PATH', os.defpath)}"
    environment |= {
        "GT_ROLE": role,
        "GT_RIG": group.rig,
        "GT_POLECAT": group.polecat,
        "GT_POLECAT_PATH": str(workdir),
        "GT_SESSION": session,
        "GT_ROOT": str(town.root),
        "GT_TOWN_ROOT": str(town.root),
        "GT_RUN": group.run,
        "BD_ACTOR": role,
        "BEADS_AGENT_NAME": group.address,
        "GIT_AUTHOR_NAME": group.polecat,
        "CLAUDECODE": "",
        **_process_names(agent),
        MARKER_VARIABLE: group.marker,
        "GT_WITNESS_RUNTIME": str(town.runtime),
        "GT_WITNESS_SETTINGS": str(town.run_dir(group.run) / "settings.json"),
        "GT_WITNESS_SPOOL": str(town.run_dir(group.run) / "spool"),
        "GT_WITNESS_QUEUE": str(town.queue_dir(session)),
        "GT_WITNESS_HOOK_WAIT": str(round(hook_wait * 1000)),
    }
    return environment


def _process_names(agent: Sequence[str]) -> dict[str, str]:
    """Which processes are the agent, in the words of Gas Town's doctor: it ends a session in which it finds none.

    What it sees first in the pane is our reaper, which is the interpreter that runs us.
    """
    program = Path(next((word for word in agent if "=" not in word and not word.startswith("-")), "sh")).name
    found = shutil.which(program)
    names = [program, *([Path(os.path.realpath(found)).name] if found else [])]
    names += [Path(os.path.realpath(sys.executable)).name, Path(sys.executable).name]
    client = client_for(agent)
    names += ["node"] if client is CLAUDE else []
    return {"GT_AGENT": program if client is ANY else client.name, "GT_PROCESS_NAMES": ",".join(dict.fromkeys(names))}


def own_commands(town: Town) -> Path:
    """A folder with nothing but our ``gt``, for the front of a polecat's PATH.

    What its prompt tells it to call must be there, without putting the rest of our installation (a Python of its own)
    in front of the user's.
    """
    folder = town.make_runtime() / "bin"
    make_folder(folder, below=folder.parent)
    # -P: the polecat's working directory must not be able to put its own modules in front of ours.
    script = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m witness.cli "$@"\n'
    path = folder / "gt"
    try:
        current = read_text(path, below=folder)
    except (OSError, ValueError):
        current = ""
    if current != script:
        replace_file(path, script, mode=0o700, durable=False, below=folder)
    return folder


def daemon_environ(key_env: str) -> dict[str, str]:
    """The environment of the Witness, the fork server and the sidecars: nothing of a polecat's, and no key.

    Every process of the same user can read it. The key goes to the process that asks a model by other ways
    (``witness.config.keys``).
    """
    kept = {
        name: value
        for name, value in filtered_environ().items()
        if not name.startswith(("ANTHROPIC_", "CLAUDE_")) or name == "ANTHROPIC_BASE_URL"
    }
    kept.pop("GT_TMUX_SOCKET", None)
    kept.pop(key_env, None)
    # Where tmux is: of a town whose polecats are all Gas Town's nobody has recorded it.
    return kept | {name: os.environ[name] for name in ("GT_TMUX_SOCKET", "TMUX_TMPDIR") if name in os.environ}


# Whether we run inside of a polecat, and how to start something outside of it.
#
# Whatever a process in a polecat starts falls to that polecat's reapers in the end, and ends with it. The tmux server
# that holds the polecat stands above them: what it starts is free of them.

_RUNTIME = "GT_WITNESS_RUNTIME"


def tmux_around(environ: Mapping[str, str] | None = None) -> Tmux | None:
    """The tmux that holds the polecat that we run in; None outside of polecats.

    Args:
        environ: the only place to look; None for our own environment and that of our ancestors, since an agent may
            call us with a bare one.
    """
    for place in (environ,) if environ is not None else (os.environ, *_environments_above()):
        if GroupId.from_marker(place.get(MARKER_VARIABLE, "")) and place.get(_RUNTIME):
            # $TMUX may name a tmux that the agent has started itself, and that ends with it.
            try:
                return Tmux(*Town.at(Path(place[_RUNTIME]).parent.parent).tmux_place)
            except WitnessError:
                return None
    return None


def _environments_above() -> Iterator[dict[str, str]]:
    """What our ancestors were started with, as far as the system shows it."""
    pid, seen = os.getppid(), {0, 1}
    while pid not in seen:
        seen.add(pid)
        try:
            raw = Path(f"/proc/{pid}/environ").read_bytes()
            pid = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return
        yield dict(part.split("=", 1) for part in os.fsdecode(raw).split("\0") if "=" in part)
