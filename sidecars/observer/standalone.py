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

import click

from sidecars.observer.context.gather import gather
from sidecars.observer.factory import build_components
from sidecars.observer.observe.pane import PaneWatch
from sidecars.observer.pipeline import DecisionPipeline
from sidecars.observer.watcher import AgentLife
from sidecars.type_reader.sidecar_type import SidecarType, tool_filter
from witness.agents.clients import ANY, CLIENTS, Client, client_for, client_named, installed_clients
from witness.assignment import Assignment
from witness.clock import Clock, SystemClock
from witness.config.settings import Settings, parse_duration
from witness.config.town import Town
from witness.delivery.prompt_typist import STILL, IdlePoller
from witness.delivery.queue_files import waiting
from witness.errors import NotFoundError, TmuxError, TownNotFoundError, UsageError, WitnessError
from witness.journal import Decision, Journal
from witness.judging.observation import Observation
from witness.names import GroupId
from witness.process import ProcessId
from witness.tmux import Pane, Tmux
from witness.trust.layers import type_names
from witness.trust.settings import trusted_settings

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
            known = ", ".join(client.name for client in (*CLIENTS, *installed_clients()[0]))
            raise NotFoundError("client", order.client, known)
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


# The command line of `gt-sidecar`.


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--session", required=True, help="The tmux session to observe.")
@click.option(
    "--type", "name", required=True, metavar="TYPE[:ARGUMENT]", help="The sidecar type.",
    shell_complete=lambda _, __, typed: [each for each in _known_types() if each.startswith(typed)],
)  # fmt: skip
@click.option("--spec", "argument", default="", metavar="FILE", help="The type's argument: files by comma, or globs.")
@click.option("--interval", default="", metavar="DURATION", help="How often to look (default: the type's).")
@click.option("--judge", default="", metavar="JUDGE", help="rules, model, rules+model, command, or model:ID.")
@click.option("--socket", default="", metavar="NAME", help="The tmux socket (default: the town's, else tmux's own).")
@click.option("--workdir", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path())
@click.option("--queue", type=click.Path(path_type=Path), help="A nudge queue to write to, in place of the pane.")
@click.option("--client", default="", metavar="NAME", help="claude, codex, gemini, … (default: found out).")
@click.option("--once", is_flag=True, help="Look once and end.")
@click.option("--dry-run", is_flag=True, help="Show what would be said; say nothing.")
def command(
    session: str, name: str, argument: str, interval: str, judge: str, socket: str, workdir: Path,
    queue: Path | None, client: str, once: bool, dry_run: bool,
) -> None:  # fmt: skip
    """Observe any tmux session with one sidecar: no Witness and no town are needed.

    \b
    gt-sidecar --session work --type specs --spec docs/api-spec.md --interval 10s --dry-run
    gt-sidecar --session gt-toast --type scope --spec docs/issue.md --once
    """
    from sidecars.type_reader.sidecar_type import variant
    from sidecars.type_reader.type_loader import load_type

    town = _town()
    rig = town.rig_of(workdir.resolve()) if town else ""
    bare, _, inline = name.partition(":")
    kind = load_type(bare, town.root if town else None, rig, workdir.resolve(), {"pane": "only"})
    for line in kind.withheld:
        click.echo(f"gt-sidecar: {line}", err=True)
    if judge:
        kind = variant(kind, judge)
    if interval:
        try:
            kind = replace(kind, poll=max(0.05, parse_duration(interval)))
        except ValueError as error:
            raise UsageError(f"--interval: {error}") from error
    if queue is None and town is not None and (waiting := town.queue_dir(session)).is_dir():
        queue = waiting
    order = Watch(
        session=session,
        socket=socket or (town.socket if town else "default"),
        kind=kind,
        argument=argument or inline,
        workdir=workdir.resolve(),
        queue=queue,
        client=client,
        once=once,
        dry=dry_run,
        tmux_directory=town.tmux_place[1] if town and not socket else os.environ.get("TMUX_TMPDIR", ""),
    )
    sys.exit(watch(order, trusted_settings(town.root, rig) if town else Settings()))


def _known_types() -> list[str]:
    town = _town()
    return type_names(town.root if town else None, workdir=Path.cwd())


def _town() -> Town | None:
    try:
        return Town.find()
    except TownNotFoundError:
        return None


def main(argv: list[str]) -> int:
    """Run it and return the exit code: 0 done, 1 it failed, 2 bad usage or bad declaration."""
    try:
        command.main(args=argv, prog_name="gt-sidecar", standalone_mode=False)
    except WitnessError as error:
        for line in str(error).splitlines():
            click.echo(f"gt-sidecar: {line}", err=True)
        return error.exit_code
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        click.echo(f"gt-sidecar: {error.format_message()}", err=True)
        return 2
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
