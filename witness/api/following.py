"""Sidecars for a session that a person has started: followed, told, shown in the state, and never ended by us.

The session is known by its client's process. It is observed through our plugin in the client, which finds its way by a
file of ours (``witness.launch.followed_session``). It is over when the client ends, or when somebody says so.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from witness.agents.channels import MODS_SINCE, client_version, switched_off
from witness.agents.client_extensions import NAME, is_ours
from witness.agents.clients import CLAUDE, Channel, claude_home, client_for
from witness.api.witness import Witness
from witness.clock import SystemClock
from witness.declare.sidecar_spec import resolve_specs
from witness.declare.source import Source
from witness.errors import DeclarationError, NotFoundError, UsageError
from witness.files import read_json
from witness.journal import Group, GroupState, MemberKind, RunState
from witness.launch.environment import tmux_around
from witness.launch.followed_session import record, show_hooks_the_way
from witness.launch.spawn_request import SidecarCheck, look_at_sidecars
from witness.launch.town_witness import ask, start_witness
from witness.names import GroupId, check_name
from witness.process import ProcessId
from witness.process.table import identify
from witness.supervise.plan import SPAWN_FAILED
from witness.trust.settings import trusted_settings

_SIDECARS_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Session:
    """A client that a person has started.

    Args:
        process: the client's.
        argv: its command.
        environ: what it was started with, as far as the system shows it.
        workdir: where it works.
    """

    process: ProcessId
    argv: tuple[str, ...]
    environ: Mapping[str, str]
    workdir: Path


@dataclass(frozen=True, slots=True)
class FollowResult:
    """A session that is followed.

    Args:
        group: its run.
        mute: why a sidecar could never speak, by its name.
        found: what a sidecar holds the agent to, by its name.
        withheld: one line for each declaration of the project that does not count.
    """

    group: Group
    mute: Mapping[str, str] = field(default_factory=dict)
    found: Mapping[str, str] = field(default_factory=dict)
    withheld: tuple[str, ...] = ()


def session_around(pid: int = 0) -> Session:
    """The client that a process runs in.

    Args:
        pid: the client's own, or that of a process below it; 0 for the caller's.

    Raises:
        UsageError: there is no Claude Code at or above it.
    """
    for process in _upwards(pid or os.getpid()):
        with suppress(psutil.Error):
            argv = tuple(process.cmdline())
            identity = identify(process.pid)
            if argv and identity and client_for(argv) is CLAUDE:
                return Session(identity, argv, process.environ(), Path(process.cwd()))
    if pid:
        raise UsageError(f"--pid {pid}: no Claude Code that may be looked at runs there")
    raise UsageError(
        "no Claude Code is around this command: type '! gt-witness follow' at its prompt, or name its --pid"
    )


def _upwards(pid: int) -> Iterator[psutil.Process]:
    with suppress(psutil.Error):
        process: psutil.Process | None = psutil.Process(pid)
        while process is not None and process.pid > 1:
            yield process
            process = process.parent()


def followed_group(witness: Witness, session: Session) -> Group | None:
    """The living run that this session is; None when nobody follows it."""
    for group, members in witness.polecats():
        if any(each.kind is MemberKind.AGENT and each.process == session.process for each in members):
            return group
    return None


def follow(
    witness: Witness, session: Session, sidecars: str = "", name: str = "", check: SidecarCheck | None = None
) -> FollowResult:
    """Give a session sidecars, and have the town's Witness keep them.

    Args:
        witness: of the town.
        session: whose.
        sidecars: a spec; empty for the settings' ``follow``, else their ``sidecars``.
        name: the polecat that it is called; empty for ``session-PID``.
        check: looks at each sidecar before anything starts.

    Raises:
        UsageError: it is a polecat already, or our plugin is not in it.
        DeclarationError: the sidecars or the settings are wrong.
    """
    town = witness.town
    if found := followed_group(witness, session):
        raise UsageError(f"it is {found.id.address} already: gt-witness follow --stop ends that first")
    channel, version = _channel(session)
    rig = town.rig_of(session.workdir)
    settings = trusted_settings(town.root, rig)
    given = Source("--sidecars") if sidecars else Source("settings/witness.yaml", key="follow")
    text = sidecars or str(settings.follow.get("sidecars", "")) or settings.sidecars
    if not text:
        raise UsageError("no sidecars: say which, as in --sidecars conventions,tools (gt-witness sidecar types)")
    group_id = GroupId(rig, check_name("polecat", name or f"session-{session.process.pid}"), uuid.uuid4().hex)
    resolved = resolve_specs(text, given, town=town, rig=rig, workdir=session.workdir)
    mute: dict[str, str] = {}
    held: dict[str, str] = {}
    if check:
        mute, held, problems = look_at_sidecars(check, town, group_id, session.workdir, resolved)
        if problems:
            raise DeclarationError(problems)
    clock = SystemClock()
    group = Group(
        id=group_id,
        session=town.session(rig, group_id.polecat),
        state=GroupState.SPAWNING,
        boot=clock.boot,
        spawned_at=clock.monotonic(),
        created=clock.wall(),
        workdir=str(session.workdir),
        agent=session.argv,
        run_state=RunState(followed=True, by_person=True, channel=channel, client_version=version),
    )
    town.make_runtime()
    record(town, witness.journal, clock, group, session.process, resolved)
    try:
        show_hooks_the_way(town, group, session.process, settings)
        start_witness(town, tmux_around())
    except BaseException:
        witness.end([group], reason=SPAWN_FAILED)
        raise
    if ask(town, {"op": "await", "run": group_id.run}, _SIDECARS_SECONDS) is None:
        witness.poke(group_id.run)  # the one that ran was just leaving
    return FollowResult(group, mute, held, tuple(resolved.withheld))


def unfollow(witness: Witness, session: Session) -> Group:
    """End the sidecars of a session that is followed; the session itself goes on.

    Raises:
        NotFoundError: nobody follows it.
        UsageError: it is a polecat that we have spawned, or one of Gas Town's.
    """
    group = followed_group(witness, session)
    if group is None:
        raise NotFoundError("session", f"pid {session.process.pid}", "nobody follows it")
    if not group.run_state.by_person:
        raise UsageError(
            f"{group.id.address} is no session of your own: gt done, or gt polecat nuke {group.id.polecat}"
        )
    witness.end([group])
    return group


def _channel(session: Session) -> tuple[Channel, str]:
    """How the session's plugin records and tells, and the client's version.

    Raises:
        UsageError: our plugin is not in it, or does not run there.
    """
    off = "--bare loads no plugins" if "--bare" in session.argv else switched_off(session.workdir, session.environ)
    if off:
        raise UsageError(f"its hooks are switched off ({off}): nothing could be observed or told")
    if not _has_plugin(session):
        raise UsageError("our plugin is not in this session: gt-witness hooks plugin says how; then start it again")
    version = client_version(session.argv, session.environ) or client_version([_program(session)], session.environ)
    number = tuple(int(part) for part in version.split(".")) if version else ()
    return (Channel.MOD if number >= MODS_SINCE else Channel.HOOKS_STRING), version


def _program(session: Session) -> str:
    try:
        return psutil.Process(session.process.pid).exe()
    except psutil.Error:
        return session.argv[0]


def _has_plugin(session: Session) -> bool:
    """Whether the client was started with our plugin, by a flag, its environment or a settings file that applies."""
    named = [after for flag, after in zip(session.argv, session.argv[1:], strict=False) if flag == "--plugin-dir"]
    named += session.environ.get("CLAUDE_CODE_PLUGIN_DIRS", "").split(":")
    if any(folder and is_ours(session.workdir / folder) for folder in named):
        return True
    home = claude_home(session.environ)
    project = session.workdir / ".claude"
    for path in (home / "settings.json", project / "settings.json", project / "settings.local.json"):
        with suppress(OSError, ValueError, AttributeError, TypeError):
            enabled = read_json(path, follow=True, owners=()).get("enabledPlugins", {})
            if any(name.startswith(f"{NAME}@") and on for name, on in enabled.items()):
                return True
    return False
