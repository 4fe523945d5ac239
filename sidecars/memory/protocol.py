"""The memory protocol: pure functions from a memory and one journal entry to the next memory.

Everything that changes a memory is an entry: it is written to the journal at once and folded into the file later, so a
crash loses nothing and applying the same journal again gives the same memory. The numbers are those of MDAN's memory
protocol. What breaks a rule is refused with the rule's own words before it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from uuid import NAMESPACE_OID, uuid5

from sidecars.memory.operations import add, forget, merge_memories, refuse_secrets, restore, use, without
from sidecars.memory.paths import is_agent
from sidecars.memory.record import (
    CONTENT_LIMIT,
    OUTCOMES,
    RELATIONSHIPS,
    ROLES,
    Applied,
    DecisionEntry,
    Entry,
    Refused,
    RuleError,
    Session,
    Sidecar,
    one_line,
)
from witness.errors import UsageError

DECAY_AFTER = 5
DECAY_STEP = 0.1
FORGOTTEN_UNDER = 0.3
OCCURRENCES = 2
# Enough to recognise an end that is told twice (the client's own, then the Witness's).
CLOSED_KEPT = 20
# Holds the session of a party, which counts only when the party came to its end.
PARTY = "party"
# What a session may bring at its end.
GAINED_BY = frozenset(["add", "use", "relate", "decide"])


def apply(sidecar: Sidecar, entry: Entry) -> Applied:
    """Apply one entry.

    Raises:
        RuleError: it breaks a rule.
        NotFoundError: it names a memory that is not there.
    """
    operation = OPERATIONS.get(entry.op)
    if operation is None:
        raise RuleError(f"{entry.op!r} is not an operation on a memory")
    applied = operation(sidecar, entry)
    return replace(applied, sidecar=replace(applied.sidecar, last_updated=entry.at))


def replay(sidecar: Sidecar, entries: tuple[Entry, ...]) -> tuple[Sidecar, tuple[Refused, ...]]:
    """Fold a journal into a memory, each entry at most once.

    Returns:
        The memory, and one line for each entry that no longer fits it: somebody else changed the file meanwhile.
    """
    refused: list[Refused] = []
    for entry in entries:
        if entry.id in sidecar.books.applied:
            continue
        try:
            sidecar = apply(sidecar, entry).sidecar
        except UsageError as error:
            refused.append(Refused(entry, str(error)))
        done = (*sidecar.books.applied, entry.id)
        sidecar = replace(sidecar, books=replace(sidecar.books, applied=done))
    return sidecar, tuple(refused)


def _open(sidecar: Sidecar, entry: Entry) -> Applied:
    holder = str(entry.data.get("holder") or "manual")
    known = sidecar.books.sessions.get(entry.session)
    if known is not None:
        return Applied(sidecar, "the session is known already")
    # A holder sits in one session at a time: one of its own that is still open ended without a word. Of others' the
    # caller may know that they are over.
    over = set(entry.data.get("over") or ())
    left = [
        name
        for name, session in sidecar.books.sessions.items()
        if session.is_open and (session.holder == holder or name in over)
    ]
    for name in left:
        if sidecar.books.sessions[name].holder == PARTY:
            sidecar = _uncounted(sidecar, name)
        else:
            sidecar = _ended(sidecar, name, entry.at, crashed=True)
    sessions = {**sidecar.books.sessions, entry.session: Session(holder, entry.at)}
    note = f"{len(left)} session(s) that ended without a word were saved" if left else ""
    return Applied(_with_sessions(sidecar, sessions), note)


def _close(sidecar: Sidecar, entry: Entry) -> Applied:
    """End a session: at most once it is counted, and at most once its gains are taken in.

    One entry holds both, so that a crash in the middle of a save leaves all of it or nothing.
    """
    known = sidecar.books.sessions.get(entry.session) or Session(str(entry.data.get("holder") or ""), entry.at)
    gains = [] if known.gained else list(entry.data.get("gains") or ())
    refused = []
    for number, (op, data) in enumerate(gains):
        # Each needs an id of its own, and the same one whenever the journal is read.
        part = replace(entry, id=uuid5(NAMESPACE_OID, f"{entry.id} {number}").hex, op=str(op), data=dict(data))
        try:
            if op not in GAINED_BY:
                raise RuleError(f"{op!r} is nothing that a session gains")
            sidecar = apply(sidecar, part).sidecar
        except UsageError as error:
            refused.append(str(error))
    # An addition counts itself into the session, so its record is read anew.
    known = replace(sidecar.books.sessions.get(entry.session) or known, gained=known.gained or bool(gains))
    sidecar = _with_sessions(sidecar, {**sidecar.books.sessions, entry.session: known})
    if not known.is_open:
        return Applied(sidecar, "the session was counted already", refused=tuple(refused))
    return Applied(_ended(sidecar, entry.session, entry.at), refused=tuple(refused))


def _ended(sidecar: Sidecar, name: str, at: str, *, crashed: bool = False) -> Sidecar:
    ended = replace(sidecar.books.sessions[name], closed_at=at, crashed=crashed)
    sidecar = _with_sessions(sidecar, {**sidecar.books.sessions, name: ended})
    return _decayed(replace(sidecar, sessions_participated=sidecar.sessions_participated + 1), at)


def _with_sessions(sidecar: Sidecar, sessions: Mapping[str, Session]) -> Sidecar:
    closed = [name for name, session in sessions.items() if not session.is_open]
    too_old = set(closed[:-CLOSED_KEPT])
    kept = {name: session for name, session in sessions.items() if name not in too_old}
    return replace(sidecar, books=replace(sidecar.books, sessions=kept))


def _decayed(sidecar: Sidecar, at: str) -> Sidecar:
    """Let fade what was only ever told: by days on which there was a session, not by how many sessions a day has."""
    if at[:10] == sidecar.books.faded_on:
        return sidecar
    memories = []
    for memory in sidecar.memories:
        idle = sidecar.sessions_participated - memory.last_reinforced_session
        if idle > DECAY_AFTER:
            # What was used stays, however little it is trusted by now.
            least = min(memory.confidence, FORGOTTEN_UNDER) if memory.reinforced_in else 0.0
            memory = replace(memory, confidence=max(least, round(memory.confidence - DECAY_STEP, 4)))  # noqa: PLW2901
        memories.append(memory)
    faded = {each.id for each in memories if each.confidence < FORGOTTEN_UNDER and not each.reinforced_in}
    sidecar = replace(sidecar, memories=tuple(memories), books=replace(sidecar.books, faded_on=at[:10]))
    return without(sidecar, faded, f"faded under {FORGOTTEN_UNDER:g}", at)


def _relate(sidecar: Sidecar, entry: Entry) -> Applied:
    kind, other = str(entry.data.get("kind") or ""), one_line(str(entry.data.get("other") or ""))
    if kind not in RELATIONSHIPS:
        raise RuleError(f"{kind!r} is not a relationship: one of {', '.join(RELATIONSHIPS)}")
    if other == sidecar.agent or not is_agent(other):
        raise RuleError("a relationship is one to another agent, by its name")
    counts = {**sidecar.books.evidence.get(kind, {})}
    counts[other] = counts.get(other, 0) + 1
    sidecar = replace(sidecar, books=replace(sidecar.books, evidence={**sidecar.books.evidence, kind: counts}))
    if counts[other] < OCCURRENCES or other in sidecar.relationships[kind]:
        return Applied(sidecar, f"seen {counts[other]} time(s)")
    present = (*sidecar.relationships[kind], other)
    return Applied(replace(sidecar, relationships={**sidecar.relationships, kind: present}), "a relationship now")


def _decide(sidecar: Sidecar, entry: Entry) -> Applied:
    dr_id, position = one_line(str(entry.data.get("dr_id") or "")), one_line(str(entry.data.get("position") or ""))
    role, outcome = str(entry.data.get("role") or ""), str(entry.data.get("outcome") or "")
    if not dr_id:
        raise RuleError("a decision needs the id of its record (DR-001)")
    if role not in ROLES or outcome not in OUTCOMES:
        raise RuleError(f"a decision has a role ({', '.join(ROLES)}) and an outcome ({', '.join(OUTCOMES)})")
    refuse_secrets(position)
    new = DecisionEntry(dr_id, role, position[:CONTENT_LIMIT], outcome)
    others = tuple(each for each in sidecar.decision_history if each.dr_id != dr_id)
    return Applied(replace(sidecar, decision_history=(*others, new)), f"{dr_id} recorded")


def _merge(sidecar: Sidecar, entry: Entry) -> Applied:
    sidecar, taken = merge_memories(sidecar, entry.data.get("memories") or (), entry)
    for kind in RELATIONSHIPS:
        names = (one_line(str(name)) for name in (entry.data.get("relationships") or {}).get(kind) or ())
        present = tuple(dict.fromkeys((*sidecar.relationships[kind], *filter(None, names))))
        sidecar = replace(sidecar, relationships={**sidecar.relationships, kind: present})
    for decision in entry.data.get("decision_history") or ():
        sidecar = _decide(sidecar, replace(entry, data=decision)).sidecar
    return Applied(sidecar, taken.told(), refused=(*taken.left_out, *taken.cut))


def _cancel(sidecar: Sidecar, entry: Entry) -> Applied:
    """Take back that a session was begun: it came to nothing, so it is not counted and nothing fades by it."""
    known = sidecar.books.sessions.get(entry.session)
    if known is None or not known.is_open:
        return Applied(sidecar, "no such session is open")
    return Applied(_uncounted(sidecar, entry.session), "the session is not counted")


def _uncounted(sidecar: Sidecar, session: str) -> Sidecar:
    kept = {name: each for name, each in sidecar.books.sessions.items() if name != session}
    return _with_sessions(sidecar, kept)


OPERATIONS: Mapping[str, Callable[[Sidecar, Entry], Applied]] = {
    "open": _open,
    "close": _close,
    "cancel": _cancel,
    "add": add,
    "use": use,
    "forget": forget,
    "restore": restore,
    "merge": _merge,
    "relate": _relate,
    "decide": _decide,
}
