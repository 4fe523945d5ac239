"""The rules of remembering, each by its number, and what holds for every journal."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecars.memory.lenient_reader import read_sidecar
from sidecars.memory.operations import MEMORY_CAP, NEW_PER_SESSION, capped
from sidecars.memory.protocol import OPERATIONS, apply, replay
from sidecars.memory.record import (
    Entry,
    Memory,
    RuleError,
    Sidecar,
    empty_sidecar,
    entries_of,
    entry_to_line,
    iso,
    sameness,
    sidecar_to_json,
)
from tests.memory.files import validator
from witness.errors import NotFoundError, UsageError

_NOW = iso(1_800_000_000.0)
_valid = validator("agent-sidecar")
_numbers = itertools.count()


def _do(sidecar: Sidecar, op: str, session: str = "s1", at: str = _NOW, **data: Any) -> Sidecar:
    return apply(sidecar, Entry(f"{next(_numbers):032x}"[::-1], at, session, op, data)).sidecar


def _new() -> Sidecar:
    return empty_sidecar("ada", _NOW)


def _after(sidecar: Sidecar, sessions: int) -> Sidecar:
    # Each on a day of its own.
    for _ in range(sessions):
        number = next(_numbers)
        sidecar = _do(sidecar, "close", f"later-{number}", at=iso(1_800_000_000.0 + 86_400 * number))
    return sidecar


@pytest.mark.parametrize(
    ("basis", "confidence"), [("explicit", 1.0), ("unchallenged", 0.8), ("observed", 0.6), ("inferred", 0.5)]
)
def test_confidence_follows_from_what_it_rests_on(basis: str, confidence: float) -> None:
    sidecar = _do(_new(), "add", content="x", basis=basis)
    assert sidecar.memories[0].confidence == confidence


def test_a_session_adds_five_and_the_sixth_is_refused() -> None:
    sidecar = _new()
    for number in range(NEW_PER_SESSION):
        sidecar = _do(sidecar, "add", content=f"fact {number}")
    with pytest.raises(RuleError, match="5 memories"):
        _do(sidecar, "add", content="one more")
    assert len(_do(sidecar, "add", "s2", content="one more").memories) == NEW_PER_SESSION + 1


def test_what_a_session_takes_back_makes_room() -> None:
    sidecar = _do(_new(), "open", holder="r/p")
    for number in range(NEW_PER_SESSION):
        sidecar = _do(sidecar, "add", content=f"fact {number}")
    sidecar = _do(sidecar, "forget", ids=[sidecar.memories[0].id])
    assert len(_do(sidecar, "add", content="another").memories) == NEW_PER_SESSION


def test_the_same_said_again_reinforces_once_a_session_and_is_not_repeated() -> None:
    sidecar = _do(_new(), "add", content="Uses tabs")
    for text in ("uses  tabs.", "USES TABS", "Uses tabs"):
        sidecar = _do(sidecar, "add", "s2", content=text)
    assert [memory.content for memory in sidecar.memories] == ["Uses tabs"]
    assert sidecar.memories[0].confidence == 0.7
    assert _do(sidecar, "add", "s3", content="uses tabs", basis="explicit").memories[0].confidence == 1.0


def test_use_adds_a_tenth_and_ends_at_one() -> None:
    sidecar = _do(_new(), "add", content="x", basis="unchallenged")
    given_id = sidecar.memories[0].id
    for number in range(4):
        sidecar = _do(sidecar, "use", f"u{number}", id=given_id[:6])
    assert sidecar.memories[0].confidence == 1.0


def test_after_five_sessions_without_it_a_memory_fades_and_under_three_tenths_it_is_gone() -> None:
    sidecar = _do(_new(), "add", content="x", basis="observed")
    sidecar = _do(sidecar, "close")
    assert _after(sidecar, 4).memories[0].confidence == 0.6
    assert _after(sidecar, 5).memories[0].confidence == 0.5
    assert _after(sidecar, 7).memories[0].confidence == 0.3
    assert _after(sidecar, 8).memories == ()


def test_use_stops_the_fading() -> None:
    sidecar = _after(_do(_new(), "add", content="x"), 5)
    sidecar = _do(sidecar, "use", "again", id=sidecar.memories[0].id)
    assert _after(sidecar, 5).memories[0].confidence == sidecar.memories[0].confidence


def _full(confidence: float) -> Sidecar:
    memories = tuple(
        Memory(f"m{number}", "context", f"fact {number}", "old", confidence + number / 1000, _NOW, 0)
        for number in range(MEMORY_CAP)
    )
    return replace(_new(), memories=memories)


def test_at_the_cap_the_least_confident_goes_and_the_newest_is_safe() -> None:
    sidecar = _do(_full(0.9), "add", content="unsure but new", basis="inferred")
    ids = [memory.id for memory in sidecar.memories]
    assert len(ids) == MEMORY_CAP
    assert "m0" not in ids
    assert sidecar.memories[-1].content == "unsure but new"


def test_all_that_this_session_added_is_safe() -> None:
    sidecar = _full(0.9)
    for number in range(NEW_PER_SESSION):
        sidecar = _do(sidecar, "add", content=f"new {number}", basis="inferred")
    assert sum(memory.source_session == "s1" for memory in sidecar.memories) == NEW_PER_SESSION


@given(st.lists(st.floats(0, 1), max_size=70), st.sets(st.integers(0, 69), max_size=5))
def test_the_cap_keeps_the_most_confident_of_the_rest(confidences: list[float], newest: set[int]) -> None:
    memories = tuple(Memory(str(i), "context", str(i), "s", c, _NOW, 0) for i, c in enumerate(confidences))
    after = capped(replace(_new(), memories=memories), {str(i) for i in newest}, _NOW)
    kept = after.memories
    assert sorted(int(each.id) for each in (*kept, *(drop.memory for drop in after.dropped))) == [*range(len(memories))]
    assert len(kept) == min(len(memories), MEMORY_CAP)
    gone = [memory for memory in memories if memory not in kept]
    assert not any(int(memory.id) in newest for memory in gone)
    rest = [memory.confidence for memory in kept if int(memory.id) not in newest]
    assert all(memory.confidence <= min(rest) for memory in gone)
    assert [memory.id for memory in kept] == sorted((memory.id for memory in kept), key=int)


@pytest.mark.parametrize("content", ["", "  \n\u200b", "x" * 501, "the password is hunter2"])
def test_what_may_not_be_remembered_is_refused(content: str) -> None:
    with pytest.raises(RuleError):
        _do(_new(), "add", content=content)


def test_a_secret_in_the_evidence_or_a_tag_is_refused_and_not_repeated() -> None:
    for field in ({"evidence": "password=Tr0ub4dor&3"}, {"tags": ["token:Tr0ub4dor&3"]}):
        with pytest.raises(RuleError) as error:
            _do(_new(), "add", content="x", **field)
        assert "Tr0ub4dor" not in str(error.value)


def test_a_long_memory_is_taken_with_a_word_about_the_aim() -> None:
    applied = apply(_new(), Entry("a" * 32, _NOW, "s", "add", {"content": "x" * 101}))
    assert "100" in applied.note


@pytest.mark.parametrize(("kind", "basis"), [("wish", "observed"), ("context", "hearsay")])
def test_types_and_bases_are_those_of_the_protocol(kind: str, basis: str) -> None:
    with pytest.raises(RuleError):
        _do(_new(), "add", content="x", type=kind, basis=basis)


def test_a_relationship_needs_two_occurrences_of_the_same_kind() -> None:
    sidecar = _do(_new(), "relate", kind="agrees_with", other="bob")
    sidecar = _do(sidecar, "relate", kind="disagrees_with", other="bob")
    assert not any(sidecar.relationships.values())
    sidecar = _do(sidecar, "relate", "s2", kind="agrees_with", other="bob")
    assert sidecar.relationships["agrees_with"] == ("bob",)
    assert _do(sidecar, "relate", kind="agrees_with", other="bob").relationships["agrees_with"] == ("bob",)


@pytest.mark.parametrize("other", ["", "ada", "the one with the beard", "../x"])
def test_a_relationship_is_to_another(other: str) -> None:
    with pytest.raises(RuleError):
        _do(_new(), "relate", kind="agrees_with", other=other)


def test_a_decision_is_recorded_once_by_its_id() -> None:
    sidecar = _do(_new(), "decide", dr_id="DR-001", role="proponent", position="tabs", outcome="lost")
    sidecar = _do(sidecar, "decide", dr_id="DR-001", role="proponent", position="tabs", outcome="won")
    assert [(each.dr_id, each.outcome) for each in sidecar.decision_history] == [("DR-001", "won")]
    with pytest.raises(RuleError):
        _do(sidecar, "decide", dr_id="DR-002", role="boss", position="x", outcome="won")


def test_an_end_that_is_told_twice_counts_once() -> None:
    sidecar = _do(_do(_new(), "open", holder="r/p"), "close", holder="r/p")
    assert sidecar.sessions_participated == 1
    assert _do(sidecar, "close", holder="r/p").sessions_participated == 1


def test_the_next_start_of_a_holder_saves_the_session_that_ended_without_a_word() -> None:
    sidecar = _do(_new(), "open", "run-1", holder="r/p")
    sidecar = _do(sidecar, "open", "run-x", holder="r/other")
    sidecar = _do(sidecar, "open", "run-2", holder="r/p")
    assert sidecar.sessions_participated == 1
    assert sidecar.books.sessions["run-1"].crashed
    assert sidecar.books.sessions["run-x"].is_open
    assert _do(sidecar, "close", "run-1", holder="r/p").sessions_participated == 1


def test_forgotten_can_be_brought_back_and_purged_cannot() -> None:
    sidecar = _do(_do(_new(), "add", content="one"), "add", content="two")
    one, two = (memory.id for memory in sidecar.memories)
    gone = _do(_do(sidecar, "forget", ids=[one]), "forget", ids=[two], purge=True)
    assert gone.memories == ()
    assert "two" not in str(sidecar_to_json(gone))
    back = _do(gone, "restore")
    assert [memory.content for memory in back.memories] == ["one"]
    with pytest.raises(RuleError):
        _do(back, "restore")


def test_an_id_that_several_begin_with_names_none() -> None:
    sidecar = replace(_new(), memories=tuple(Memory(f"ab{i}", "context", f"{i}", "s", 1, _NOW, 0) for i in range(2)))
    with pytest.raises(NotFoundError):
        _do(sidecar, "use", id="ab")
    with pytest.raises(NotFoundError):
        _do(sidecar, "use", id="")


def test_a_merge_takes_in_what_it_can() -> None:
    sidecar = _do(_new(), "add", content="uses tabs", basis="inferred")
    given_memories = [
        {"content": "Uses tabs.", "type": "preference", "confidence": 0.9},
        {"content": "deploys on Fridays", "type": "context", "confidence": 0.7},
        {"content": "the password is hunter2", "type": "context", "confidence": 0.7},
        {"nothing": True},
    ]
    sidecar = _do(sidecar, "merge", memories=given_memories, relationships={"complements": ["ux"]})
    assert [(memory.content, memory.confidence) for memory in sidecar.memories] == [
        ("uses tabs", 0.9),
        ("deploys on Fridays", 0.7),
    ]
    assert sidecar.relationships["complements"] == ("ux",)


_words = st.sampled_from(
    ["tabs", "Tabs.", "spaces", "x" * 120, "password=hunter2!", "", "queue full", "api v2", "a b", "c"]
)
_sessions = st.sampled_from(["s1", "s2", "s3"])
_data = st.fixed_dictionaries(
    {},
    optional={
        "content": _words,
        "basis": st.sampled_from(["explicit", "inferred", "nonsense"]),
        "type": st.sampled_from(["context", "decision", 7]),
        "id": st.sampled_from(["0", "1", "ffffffff"]),
        "ids": st.lists(st.sampled_from(["0", "1"]), max_size=2),
        "kind": st.sampled_from(["agrees_with", "complements", "likes"]),
        "other": st.sampled_from(["bob", "ada", ""]),
        "dr_id": st.sampled_from(["DR-001", ""]),
        "role": st.sampled_from(["proponent", "boss"]),
        "outcome": st.sampled_from(["won", "drawn"]),
        "holder": st.sampled_from(["r/p", "manual"]),
        "gains": st.lists(
            st.sampled_from(
                [
                    ["add", {"content": "gained"}],
                    ["relate", {"kind": "complements", "other": "ux"}],
                    ["close", {}],
                    ["sing", {}],
                ]
            ),
            max_size=3,
        ),
        "memories": st.just([{"content": "merged", "type": "context", "confidence": 0.4}]),
    },
)
_journals = st.lists(st.tuples(st.sampled_from([*OPERATIONS, "sing"]), _sessions, _data), max_size=40)


def _journal(steps: list[tuple[str, str, dict[str, Any]]]) -> tuple[Entry, ...]:
    return tuple(
        Entry(f"{number % 16:x}{number:031x}", _NOW, session, op, data)
        for number, (op, session, data) in enumerate(steps)
    )


@settings(max_examples=50)
@given(_journals)
def test_after_any_journal_every_rule_holds(steps: list[tuple[str, str, dict[str, Any]]]) -> None:
    sidecar = _new()
    for entry in _journal(steps):
        before = sidecar
        try:
            sidecar = apply(sidecar, entry).sidecar
        except UsageError:
            assert sidecar is before
            continue
        assert len(sidecar.memories) <= MEMORY_CAP
        assert all(0 <= memory.confidence <= 1 for memory in sidecar.memories)
        assert len({sameness(memory.content) for memory in sidecar.memories}) == len(sidecar.memories)
        assert len({memory.id for memory in sidecar.memories}) == len(sidecar.memories)
        assert all(session.new <= NEW_PER_SESSION for session in sidecar.books.sessions.values())
        assert sidecar.sessions_participated - before.sessions_participated in (0, 1)
    _valid(sidecar_to_json(sidecar))
    assert "hunter2" not in str(sidecar_to_json(sidecar))


@settings(max_examples=50)
@given(_journals, st.integers(0, 40))
def test_a_journal_may_be_folded_at_any_point_and_twice(steps: list[tuple[str, str, dict[str, Any]]], at: int) -> None:
    journal = _journal(steps)
    whole, _ = replay(_new(), journal)
    half, _ = replay(_new(), journal[:at])
    # Through the file, as a crash between the fold and the end of the journal leaves it.
    reread = read_sidecar(sidecar_to_json(half), "ada", _NOW).sidecar
    rest, _ = replay(reread, journal)
    assert sidecar_to_json(rest) == sidecar_to_json(whole)


def test_a_torn_line_spoils_only_itself() -> None:
    one, two = (Entry(letter * 32, _NOW, "s", "add", {"content": letter}) for letter in "ab")
    data = entry_to_line(one)[:-9] + entry_to_line(two)
    assert entries_of(data) == (two,)
    assert entries_of(entry_to_line(one) + entry_to_line(two)) == (one, two)


# -- what is true now ------------------------------------------------------------------------------------------------


def test_a_contradiction_replaces_what_was_true_and_keeps_it_in_its_history() -> None:
    sidecar = _do(_new(), "add", content="the deploy branch is main", basis="explicit", tags=["git"])
    old = sidecar.memories[0]
    entry = Entry("f" * 32, _NOW, "s2", "add", {"content": "the deploy branch is release"})
    applied = apply(sidecar, entry)
    (now,) = applied.sidecar.memories
    assert applied.note == f"replaces {old.id}: the deploy branch is main"
    assert (now.content, now.confidence, now.tags) == ("the deploy branch is release", 0.6, ("git",))
    assert [(was["id"], was["content"], was["until"]) for was in now.history] == [(old.id, old.content, _NOW)]
    assert [(each.memory, each.why) for each in applied.sidecar.dropped] == [(old, f"replaced by {now.id}")]
    _valid(sidecar_to_json(applied.sidecar))
    reread = read_sidecar(sidecar_to_json(applied.sidecar), "ada", _NOW).sidecar
    assert reread.memories == applied.sidecar.memories


def test_a_correction_is_not_one_of_the_five() -> None:
    sidecar = _new()
    for number in range(NEW_PER_SESSION):
        sidecar = _do(sidecar, "add", content=f"new {number}")
    with pytest.raises(RuleError, match="has added its 5"):
        _do(sidecar, "add", content="a sixth")
    sidecar = replace(sidecar, memories=(*sidecar.memories, replace(sidecar.memories[0], id="x", content=_PORT)))
    assert _do(sidecar, "add", content=_PORT.replace("80", "81")).memories[-1].content.endswith("81")


_PORT = "the staging server runs on port 80"


def test_a_guess_does_not_replace_what_is_surer_and_says_so() -> None:
    sidecar = _do(_new(), "add", content=_PORT, basis="observed")
    entry = Entry("f" * 32, _NOW, "s2", "add", {"content": _PORT.replace("80", "81"), "basis": "inferred"})
    applied = apply(sidecar, entry)
    assert len(applied.sidecar.memories) == 2
    assert "both stand" in applied.note


def test_what_is_said_again_in_other_words_is_reinforced_and_the_fuller_words_stay() -> None:
    sidecar = _do(_new(), "add", content="the queue drops messages above 64 KB", basis="observed")
    again = _do(sidecar, "add", "s2", content="messages above 64 KB are dropped by the queue")
    assert [(each.content, each.confidence) for each in again.memories] == [
        ("messages above 64 KB are dropped by the queue", 0.7)
    ]
    assert again.memories[0].id == sidecar.memories[0].id
    assert again.memories[0].history[0]["content"] == "the queue drops messages above 64 KB"
    less = _do(again, "add", "s3", content="the queue drops messages")
    assert [each.content for each in less.memories] == ["messages above 64 KB are dropped by the queue"]


def test_what_a_purged_memory_said_leaves_no_history() -> None:
    sidecar = _do(_new(), "add", content=_PORT)
    old = sidecar.memories[0].id
    sidecar = _do(sidecar, "add", content=_PORT.replace("80", "81"))
    purged = _do(sidecar, "forget", ids=[], purge=True, archived=[old])
    assert purged.memories[0].history == ()


def test_what_was_used_stays_and_many_sessions_of_one_day_fade_nothing_twice() -> None:
    sidecar = _do(_new(), "add", content="only told", basis="inferred")
    sidecar = _do(sidecar, "add", content="was used", basis="inferred")
    used = sidecar.memories[1]
    sidecar = _do(sidecar, "use", id=used.id)
    busy = sidecar
    for number in range(40):
        busy = _do(busy, "close", f"same-day-{number}")
    assert {each.content for each in busy.memories} == {"only told", "was used"}
    assert [each.content for each in _after(sidecar, 40).memories] == ["was used"]


def test_a_session_that_is_taken_back_is_not_counted() -> None:
    sidecar = _do(_new(), "open", "p1", holder="party")
    sidecar = _do(sidecar, "cancel", "p1")
    assert sidecar.sessions_participated == 0
    assert "p1" not in sidecar.books.sessions
    assert _do(sidecar, "cancel", "p1") == sidecar
    assert _do(_do(sidecar, "close", "p2"), "cancel", "p2").sessions_participated == 1
