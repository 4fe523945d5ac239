"""``gt-sidecar``: one sidecar beside any tmux session, without a Witness and without a town."""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from sidecars.observer.context import gather
from sidecars.observer.factory import build_components
from sidecars.observer.observe.agent_liveness import AgentLife
from sidecars.observer.observe.observation import Observation
from sidecars.observer.observe.pane import PaneWatch
from sidecars.observer.pipeline import DecisionPipeline
from sidecars.type_reader.sidecar_type import SidecarType, tool_filter
from witness.agents.clients import ANY, CLIENTS, Client, client_for, client_named
from witness.assignment import Assignment
from witness.clock import Clock, SystemClock
from witness.config.settings import Settings
from witness.delivery.prompt_typist import STILL, IdlePoller
from witness.delivery.queue_files import waiting
from witness.errors import NotFoundError, TmuxError
from witness.journal import Decision, Journal
from witness.names import GroupId
from witness.process import ProcessId
from witness.tmux import Pane, Tmux

# How long --once waits for an idle prompt to say in it what it has found.
_ONCE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Watch:
    """What was asked for on the command line.

    Args:
        session: the tmux session.
        socket: the tmux socket's name.
        tmux_directory: value of ``TMUX_TMPDIR`` for it, empty for tmux's own default.
        kind: the sidecar's type, with poll, judge and model as wished.
        argument: what the type is given, as ``docs/api-spec.md``.
        workdir: the project.
        queue: a nudge queue that somebody drains; None types into the pane when its prompt is idle.
        client: the agent's client, empty to find it out.
        once: one look only.
        dry: judge and show, inject nothing, remember nothing.
    """

    session: str
    socket: str
    kind: SidecarType
    argument: str
    workdir: Path
    queue: Path | None = None
    client: str = ""
    once: bool = False
    dry: bool = False
    tmux_directory: str = ""


def private_assignment(name: str, argument: str, workdir: Path, run_dir: str) -> Assignment:
    """An assignment outside of any town."""
    return Assignment(
        group=GroupId("none", "none", "none"),
        name=name,
        type=name,
        argument=argument,
        session="",
        socket="",
        town="",
        workdir=str(workdir),
        run_dir=run_dir,
        journal="",
        queue="",
        agent=ProcessId(0, 0),
    )


def state_folder() -> Path:
    """Where caps and cooldowns of sidecars by hand are remembered."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "gt-witness" / "by-hand"


def watch(order: Watch, settings: Settings | None = None) -> int:
    """Observe a session until it ends.

    Args:
        order: what was asked for.
        settings: for key, model and budgets.

    Returns:
        The exit code.

    Raises:
        NotFoundError: there is no such session.
        UsageError: the type's declaration or its argument is wrong.
    """
    tmux, clock = Tmux(order.socket, order.tmux_directory), SystemClock()
    pane = _pane(tmux, order.session)
    client = _client(order, pane)
    folder = state_folder() / re.sub(r"[^\w-]", "_", f"{order.socket}-{order.session}")
    assignment = replace(
        private_assignment(order.kind.name, order.argument, order.workdir, str(folder)),
        group=GroupId("none", "by-hand", f"pane-{pane.pid}"),
        session=order.session,
        socket=order.socket,
        queue=str(order.queue or folder / "queue"),
    )
    parts = build_components(order.kind, gather(order.kind, assignment), settings or Settings(), order.workdir)
    if parts.lack:
        sys.stderr.write(f"gt-sidecar: {parts.lack}\n")
    if not order.dry:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    mouth = _PromptWriter(tmux, order, pane, client, Path(assignment.queue), clock)
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(Path(":memory:") if order.dry else folder / "witness.db"))
        observer = parts.observer(assignment, journal, clock, aloud=not order.dry)
        stack.callback(observer.close)
        life = stack.enter_context(AgentLife(_identity(pane)))
        screen = PaneWatch(parts.kind, lambda lines: tmux.capture(pane.id, lines), str(order.workdir), clock)
        _look_until_it_ends(order, observer, screen, mouth, life)
    return 0


def _pane(tmux: Tmux, session: str) -> Pane:
    panes = tmux.panes()
    # The oldest one is the one that the session was made with.
    found = min((pane for pane in panes if pane.session == session), key=lambda pane: pane.age, default=None)
    if found is None:
        known = ", ".join(sorted({pane.session for pane in panes})) or "none"
        raise NotFoundError("tmux session", session, f"on socket {tmux.socket} there are: {known}")
    return found


def _identity(pane: Pane) -> ProcessId:
    import psutil

    stat = Path(f"/proc/{pane.pid}/stat")
    if stat.exists():
        return ProcessId(pane.pid, int(stat.read_text(errors="replace").rpartition(")")[2].split()[19]))
    return ProcessId(pane.pid, int(psutil.Process(pane.pid).create_time() * 1000))


def _client(order: Watch, pane: Pane) -> Client:
    """The client in a pane, by the command lines of its processes."""
    import psutil

    if order.client:
        if (named := client_named(order.client)) is None:
            raise NotFoundError("client", order.client, ", ".join(client.name for client in CLIENTS))
        return named
    with suppress(psutil.Error):
        first = psutil.Process(pane.pid)
        for process in [first, *first.children(recursive=True)]:
            with suppress(psutil.Error):
                if (found := client_for(process.cmdline())) is not ANY:
                    return found
    return ANY


class _PromptWriter:
    """Where nobody drains the queue, what waits is typed into the prompt once that is proven idle."""

    def __init__(self, tmux: Tmux, order: Watch, pane: Pane, client: Client, queue: Path, clock: Clock) -> None:
        self._poller = IdlePoller(tmux, clock)
        self._pane, self._client, self._queue = pane.id, client, queue
        self._typed_by_us = order.queue is None and not order.dry and client.prompt is not None
        if order.queue is None and not order.dry and client.prompt is None:
            sys.stderr.write(f"gt-sidecar: the prompt of {client.title} is not known, so nothing is typed into it\n")

    @property
    def full(self) -> bool:
        """Whether something waits that only we would deliver."""
        return self._typed_by_us and bool(waiting(str(self._queue)))

    def speak(self) -> None:
        """Type what waits, if the prompt was idle at the last call already."""
        if self.full:
            with suppress(TmuxError):
                self._poller.tick(self._pane, self._client, self._queue)


def _look_until_it_ends(
    order: Watch, observer: DecisionPipeline, screen: PaneWatch, mouth: _PromptWriter, life: AgentLife
) -> None:
    wanted = tool_filter(order.kind.tools)
    clock = SystemClock()
    patience = clock.monotonic() + _ONCE_SECONDS
    looked = False
    while not life.ended:
        seen: list[Observation] = []
        if screen.due == 0.0 and not (order.once and looked):
            looked = True
            seen = [each for each in screen.look() if not each.tool or wanted(each.tool)]
        _tell(observer.take(seen))
        if order.once:
            _tell(observer.ask())
        elif observer.due == 0.0:
            _tell(observer.tick())
        mouth.speak()
        if order.once and not (mouth.full and clock.monotonic() < patience):
            return
        waits = [screen.due, order.kind.poll, *([] if observer.due is None else [observer.due])]
        if mouth.full:
            waits.append(STILL)
        file = life.fileno()
        select.select([file] if file >= 0 else [], [], [], max(0.05, min(waits)))


def _tell(decisions: Sequence[Decision]) -> None:
    for each in decisions:
        if each.outcome != "silent":
            reason = f"  [{each.reason}]" if each.reason else ""
            sys.stdout.write(f"{each.outcome}: {each.message or each.evidence}{reason}\n")
    sys.stdout.flush()
