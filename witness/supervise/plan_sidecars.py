"""Deciding about the sidecars of one living group. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from witness.config.settings import Settings
from witness.journal import Member, MemberState
from witness.process.exits import ExitKind
from witness.supervise.actions import Action, EndProcess, MoveMember, StartSidecar, Tell
from witness.supervise.lifecycle import MemberEvent
from witness.supervise.snapshot import GroupFact, MemberFact, Snapshot

# A fork of the fork server observes within milliseconds; a machine under full load may need long.
_READY_SECONDS = 30.0
# A limited sidecar waits without its wait growing: the limit is not its fault.
_LIMITED_SECONDS = 60.0


def plan_sidecars(fact: GroupFact, snapshot: Snapshot, settings: Settings) -> Iterator[Action]:
    """What the sidecars of a group need, each on its own."""
    if fact.stopped:
        for each in fact.sidecars:
            yield from _plan_stopped(each, snapshot)
        return
    for each in fact.sidecars:
        stray = fact.strays.get(each.member.name)
        if stray and each.alive:
            yield EndProcess(fact.group.id.run, stray, "a second one of the same sidecar")
            stray = None
        match each.member.state:
            case MemberState.DECLARED:
                yield StartSidecar(each.member, MemberEvent.SPAWN)
            case MemberState.SPAWNING:
                yield from _plan_spawning(each, stray, fact, snapshot, settings)
            case MemberState.RUNNING:
                yield from _plan_running(each, fact, snapshot, settings)
            case MemberState.BACKOFF if each.member.retry_at <= snapshot.now:
                yield StartSidecar(each.member, MemberEvent.RETRY_DUE)
            case MemberState.FAILED if 0 < each.member.retry_at <= snapshot.now:
                yield StartSidecar(each.member, MemberEvent.RESET)
            case _:
                pass


def _plan_stopped(each: MemberFact, snapshot: Snapshot) -> Iterator[Action]:
    """Under an emergency stop sidecars end, and wait. Their end is no crash, and they begin anew when it is over."""
    member = each.member
    if member.state not in (MemberState.RUNNING, MemberState.SPAWNING):
        return
    if each.alive and member.process:
        yield EndProcess(member.run, member.process, "emergency stop")
    after = replace(member, process=None, since=snapshot.now, retry_at=0.0, note="emergency stop")
    yield MoveMember(member, MemberEvent.EXITED, after)


def _plan_spawning(
    each: MemberFact, stray: object, fact: GroupFact, snapshot: Snapshot, settings: Settings
) -> Iterator[Action]:
    member = each.member
    if member.process is None:
        # A Witness died between its intent and its record: what it had started is adopted, else started now.
        if (adopted := fact.strays.get(member.name)) and stray:
            yield MoveMember(member, MemberEvent.READY, replace(member, process=adopted, since=snapshot.now))
        elif snapshot.deep:
            yield StartSidecar(member, None)
    elif not each.alive:
        yield from _after_exit(each, snapshot, settings)
    elif each.beat is not None and each.beat >= member.since:
        yield MoveMember(member, MemberEvent.READY, replace(member, since=snapshot.now, note=""))
    elif not snapshot.late and snapshot.now - member.since > _READY_SECONDS:
        yield EndProcess(member.run, member.process, "it did not become ready")
        yield from _crashed(member, MemberEvent.EXITED, "it did not become ready", snapshot, settings)


def _plan_running(each: MemberFact, fact: GroupFact, snapshot: Snapshot, settings: Settings) -> Iterator[Action]:
    member = each.member
    if not each.alive:
        yield from _after_exit(each, snapshot, settings)
        return
    last = max(each.beat or 0.0, member.since)
    if not snapshot.late and snapshot.now - last > settings.sidecar_silence and member.process:
        yield EndProcess(member.run, member.process, "no sign of life for three intervals")
        yield from _crashed(member, MemberEvent.HUNG, "no sign of life for three intervals", snapshot, settings)


def _after_exit(each: MemberFact, snapshot: Snapshot, settings: Settings) -> Iterator[Action]:
    member, kind = each.member, each.exit.kind
    if kind is ExitKind.BAD_CONFIGURATION:
        note = "its configuration is wrong: see its log; 'gt polecat reset' tries again"
        yield from _fail(member, MemberEvent.EXITED, replace(member, process=None, retry_at=0.0, note=note))
    elif kind is ExitKind.LIMITED:
        retry = snapshot.now + _LIMITED_SECONDS
        after = replace(member, process=None, since=snapshot.now, retry_at=retry, note="limited")
        yield MoveMember(member, MemberEvent.EXITED, after)
    else:
        code = "" if each.exit.code is None else f" with {each.exit.code}"
        yield from _crashed(member, MemberEvent.EXITED, f"ended{code}", snapshot, settings)


def _crashed(member: Member, event: MemberEvent, note: str, snapshot: Snapshot, settings: Settings) -> Iterator[Action]:
    verdict = after_crash(member.crashes, snapshot.now, settings, f"{member.run}/{member.name}")
    after = replace(
        member, process=None, since=snapshot.now, retry_at=verdict.retry_at, crashes=verdict.crashes, note=note
    )
    if verdict.spent:
        yield from _fail(member, event, after)
        return
    yield MoveMember(member, event, after)
    if verdict.retry_at <= snapshot.now:
        # The first respawn is immediate: in the same pass, not in the next.
        yield StartSidecar(replace(after, state=MemberState.BACKOFF), MemberEvent.RETRY_DUE)


def _fail(member: Member, event: MemberEvent, after: Member) -> Iterator[Action]:
    waiting = replace(after, state=MemberState.BACKOFF)
    yield MoveMember(member, event, after)
    yield MoveMember(waiting, MemberEvent.RETRIES_SPENT, waiting)
    yield Tell(member.run, f"sidecar {member.name} is FAILED ({after.note}); the polecat works on without it")


# When a sidecar is started again, after Erlang's supervisors: backoff, and an intensity after which it is left alone.
#
# Reference: the OTP design principles, "Supervisor Behaviour", maximum restart intensity.

# Half of the wait is fixed, half is spread, so that a hundred sidecars which fell together do not rise together.
_JITTER = 0.5


@dataclass(frozen=True, slots=True)
class RestartDecision:
    """What follows a crash.

    Args:
        crashes: the crashes that still count, this one included.
        retry_at: monotonic seconds at which to try again.
        spent: the intensity is exceeded: the sidecar is FAILED until ``retry_at``.
    """

    crashes: tuple[float, ...]
    retry_at: float
    spent: bool


def after_crash(crashes: tuple[float, ...], now: float, settings: Settings, salt: str = "") -> RestartDecision:
    """Decide when a crashed sidecar is tried again.

    The first respawn is immediate; each further one within the window waits twice as long, up to the ceiling. Crashes
    older than the window are forgotten, so a long healthy time clears them, and a sidecar that dies a second after each
    start is still counted.

    Args:
        crashes: earlier crashes, monotonic seconds.
        now: monotonic seconds.
        settings: backoff and intensity.
        salt: spreads the wait; the same salt gives the same wait.
    """
    counted = (*(at for at in crashes if now - at < settings.intensity_window), now)
    if len(counted) > settings.intensity:
        return RestartDecision(counted, now + settings.failed_decay, spent=True)
    if len(counted) == 1:
        return RestartDecision(counted, now, spent=False)
    wait = min(settings.backoff_base * 2 ** (len(counted) - 2), settings.backoff_ceiling)
    spread = int.from_bytes(hashlib.sha256(f"{salt}/{len(counted)}".encode()).digest()[:4]) / 2**32
    return RestartDecision(counted, now + wait * (1 - _JITTER * spread), spent=False)
