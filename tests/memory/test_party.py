"""A party from its start to what each agent takes home, and its record read strictly."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import fastjsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecars.memory.store import MemoryStore
from sidecars.party.party import end_party, find_party, start_party, write_record
from sidecars.party.reading import read_record
from sidecars.party.record import FOLDER, write_decision
from tests.memory.files import TEMPLATE, validator, write
from witness.clock import ManualClock
from witness.errors import DeclarationError, NotFoundError, UsageError

_valid_record = validator("party-record")
_valid_decision = validator("decision-record")

_AGENTS = ("ada", "bob", "eve")
RECORD: dict[str, Any] = {
    "topic": "one repository or many",
    "mode": "debate",
    "agents": list(_AGENTS),
    "contributions": [
        {"agent": "ada", "round": 1, "role": "proponent", "type": "proposition", "content": "One repository."},
        {
            "agent": "bob",
            "round": 1,
            "role": "opponent",
            "type": "proposition",
            "content": "Many.",
            "disagrees_with": ["ada"],
        },
        {"agent": "eve", "content": "Both have a point.", "complements": ["ada", "bob"]},
        {
            "agent": "bob",
            "round": 2,
            "role": "opponent",
            "type": "rebuttal",
            "content": "Still many.",
            "disagrees_with": ["ada"],
        },
    ],
    "decisions": [
        {
            "decision": "One repository for now",
            "outcome": "proponent",
            "proponent": "ada",
            "opponent": "bob",
            "arbitrator": "eve",
            "rationale": "Fewer moving parts.",
            "confidence": 0.7,
            "dissent": "Build times.",
            "positions": {"bob": "many repositories"},
        }
    ],
    "memories": [{"agent": "ada", "content": "bob fears long builds", "type": "observation", "basis": "unchallenged"}],
}


def _read(raw: Any) -> Any:
    return read_record(json.dumps(raw).encode(), "r.json")


def _start(store: MemoryStore, mode: str = "debate") -> Any:
    return start_party(store, _AGENTS, "one repository or many", mode)


def test_everybody_is_told_their_memory_their_part_and_the_style(store: MemoryStore) -> None:
    store.change("ada", "add", "s", {"content": "the repository split cost a week"})
    party, briefings = _start(store)
    assert "the repository split cost a week" in briefings["ada"]
    assert "Your part: proponent" in briefings["ada"]
    assert "bob (opponent), eve (arbitrator)" in briefings["ada"]
    assert "persistent memory" not in briefings["bob"]
    assert all("No filler" in text for text in briefings.values())
    assert find_party(store.root).id == party.id
    assert all(store.exists(agent) for agent in _AGENTS)


@pytest.mark.parametrize(
    ("agents", "mode"),
    [
        (("ada",), "discussion"),
        (("ada", "bob"), "debate"),
        (("ada", "ada"), "discussion"),
        (("ada", "../x"), "discussion"),
        (("a", "b"), "quarrel"),
    ],
)
def test_a_party_that_cannot_be_held_starts_nothing(store: MemoryStore, agents: tuple[str, ...], mode: str) -> None:
    with pytest.raises(UsageError):
        start_party(store, agents, "x", mode)
    assert list(store.root.iterdir()) == []


def test_the_end_saves_for_each(store: MemoryStore) -> None:
    party, _ = _start(store)
    ended, saved = end_party(store, party, _read(RECORD))
    assert ended.decisions == ("DR-001",)
    assert all(each.refused == () for each in saved.values())
    ada, bob, eve = (store.read(agent) for agent in _AGENTS)
    assert [each.sessions_participated for each in (ada, bob, eve)] == [1, 1, 1]
    assert [(d.dr_id, d.role, d.outcome) for d in ada.decision_history] == [("DR-001", "proponent", "won")]
    assert [(d.role, d.outcome, d.position) for d in bob.decision_history] == [
        ("opponent", "lost", "many repositories")
    ]
    assert [(d.role, d.outcome, d.position) for d in eve.decision_history] == [
        ("arbitrator", "won", "Both have a point.")
    ]
    assert bob.relationships["disagrees_with"] == ("ada",)
    assert eve.relationships["complements"] == ()
    assert {m.content: m.confidence for m in ada.memories} == {
        "DR-001: One repository for now": 1.0,
        "bob fears long builds": 0.8,
    }
    assert all(m.source_session == party.id for m in ada.memories)


def test_the_decision_record_is_in_its_published_form(store: MemoryStore) -> None:
    party, _ = _start(store)
    end_party(store, party, _read(RECORD))
    written = json.loads((store.root / FOLDER / "DR-001.json").read_text())
    _valid_decision(written)
    assert written["participants"]["opponent"]["name"] == "bob"
    assert written["rounds"][1]["content"] == "Many."
    assert written["decision"] == "One repository for now"


def test_an_end_that_is_told_again_changes_nothing(store: MemoryStore) -> None:
    party, _ = _start(store)
    end_party(store, party, _read(RECORD))
    before = {agent: store.read(agent) for agent in _AGENTS}
    # As after a crash that came before the party's state was written: it knows of no decision yet.
    ended, _ = end_party(store, party, _read(RECORD))
    assert ended.decisions == ("DR-001",)
    for agent in _AGENTS:
        after = store.read(agent)
        assert (after.memories, after.relationships, after.sessions_participated) == (
            before[agent].memories,
            before[agent].relationships,
            1,
        )


@pytest.mark.parametrize(
    ("outcome", "won"),
    [
        ("proponent", {"ada": "won", "bob": "lost", "eve": "won", "joe": "compromised"}),
        ("opponent", {"ada": "lost", "bob": "won", "eve": "won", "joe": "compromised"}),
        ("compromise", dict.fromkeys(["ada", "bob", "eve", "joe"], "compromised")),
        ("consensus", dict.fromkeys(["ada", "bob", "eve", "joe"], "won")),
    ],
)
def test_what_a_decision_was_for_each(outcome: str, won: dict[str, str]) -> None:
    record = _read({**RECORD, "decisions": [{**RECORD["decisions"][0], "outcome": outcome}]})
    decision = replace(record, agents=(*_AGENTS, "joe")).decisions[0]
    assert {agent: decision.outcome_for(agent) for agent in won} == won


def test_a_record_of_other_agents_is_refused(store: MemoryStore) -> None:
    party, _ = _start(store)
    with pytest.raises(UsageError, match="sat in"):
        end_party(store, party, _read({**RECORD, "agents": ["ada", "bob", "eve", "joe"]}))


def test_a_secret_in_a_party_is_left_out_and_told(store: MemoryStore) -> None:
    party, _ = _start(store)
    record = _read({**RECORD, "memories": [{"agent": "ada", "content": "the password is hunter2"}]})
    _, saved = end_party(store, party, record)
    assert "secret" in saved["ada"].refused[0]
    assert "hunter2" not in store.place("ada").file.read_text()


def test_a_secret_that_was_said_stands_in_no_decision_record(store: MemoryStore) -> None:
    party, _ = _start(store)
    said = {"agent": "ada", "content": "The password is hunter2."}
    decision = {**RECORD["decisions"][0], "rationale": "since the password is hunter2", "positions": {}}
    record = _read({**RECORD, "contributions": [said, *RECORD["contributions"][1:]], "decisions": [decision]})
    _, saved = end_party(store, party, record)
    assert "secret" in saved["ada"].refused[0]
    for path in store.root.rglob("*"):
        assert not path.is_file() or b"hunter2" not in path.read_bytes(), path
    assert "left out" in json.loads((store.root / FOLDER / "DR-001.json").read_text())["rounds"][0]["content"]


def test_numbers_follow_the_highest_and_an_id_is_never_overwritten(store: MemoryStore) -> None:
    folder = store.root / FOLDER
    folder.mkdir(parents=True)
    (folder / "DR-041.json").write_text("{}")
    (folder / "DR-9x.json").write_text("{}")
    assert write_decision(store.root, {"decision": "a"}) == "DR-042"
    assert write_decision(store.root, {"decision": "a"}) == "DR-042"
    assert write_decision(store.root, {"decision": "b"}) == "DR-043"
    with pytest.raises(UsageError, match="another decision"):
        write_decision(store.root, {"decision": "c"}, "DR-042")
    with pytest.raises(UsageError, match="DR-001"):
        write_decision(store.root, {"decision": "c"}, "../../DR-1")
    assert not list(folder.glob(".*"))


def test_which_party_is_meant(store: MemoryStore, clock: ManualClock) -> None:
    with pytest.raises(NotFoundError, match="none is on"):
        find_party(store.root)
    one, _ = _start(store, "discussion")
    write_record(store.root, one, _read(RECORD))
    assert find_party(store.root) == one
    clock.advance(1)
    two, _ = _start(store, "discussion")
    with pytest.raises(UsageError, match="several"):
        find_party(store.root)
    assert find_party(store.root, two.id) == two
    end_party(store, one, _read({**RECORD, "decisions": []}))
    assert find_party(store.root) == two
    with pytest.raises(NotFoundError):
        find_party(store.root, "party-x")


def test_a_party_that_crashed_is_no_session_until_its_record_is_found(store: MemoryStore) -> None:
    first, _ = _start(store)
    _start(store)
    assert store.read("ada").sessions_participated == 0
    # Told twice it counts once.
    end_party(store, first, _read(RECORD))
    end_party(store, first, _read(RECORD))
    assert store.read("ada").sessions_participated == 1
    assert len(store.read("ada").memories) == 2


def test_files_of_others_take_part(store: MemoryStore) -> None:
    write(store.root, "ada", {**TEMPLATE, "agent": "ada"})
    _, briefings = _start(store)
    assert "prefers a modular monolith" in briefings["ada"]
    assert briefings["ada"].startswith("You are Ada Architect")


# -- reading ----------------------------------------------------------------------------------------------------------


def test_a_record_is_read_and_written_back() -> None:
    _valid_record(RECORD)
    record = _read({**RECORD, "place": "room 3"})
    written = record.to_json()
    _valid_record(written)
    assert _read(written) == record
    assert written["place"] == "room 3"


_values: Any = st.sampled_from(
    [
        None,
        "",
        " ",
        "ada",
        "debate",
        0,
        1,
        -1,
        0.5,
        2.5,
        True,
        [],
        {},
        ["ada"],
        [""],
        [{}],
        ["ada", "ada"],
        {"x": 1},
        "DR-007",
        "DR-1",
        "won",
        "proponent",
        "consensus",
    ]
)


@given(
    st.dictionaries(st.sampled_from([*RECORD]), _values, max_size=1),
    st.dictionaries(st.sampled_from(["content", "round", "role", "type", "complements"]), _values, max_size=2),
    st.dictionaries(
        st.sampled_from(["id", "decision", "outcome", "rationale", "confidence", "dissent", "positions"]),
        _values,
        max_size=2,
    ),
    st.dictionaries(st.sampled_from(["content", "type", "basis"]), _values, max_size=2),
)
def test_it_is_refused_exactly_where_the_schema_refuses(
    top: dict[str, Any], turn: dict[str, Any], decision: dict[str, Any], memory: dict[str, Any]
) -> None:
    raw = {
        **RECORD,
        "contributions": [{**RECORD["contributions"][0], **turn}],
        "decisions": [{**RECORD["decisions"][0], **decision}],
        "memories": [{**RECORD["memories"][0], **memory}],
        **top,
    }
    if top.get("agents") == ["ada"]:
        return  # the others are then named but not there, which no schema can say
    try:
        _valid_record(raw)
        valid = True
    except fastjsonschema.JsonSchemaException:
        valid = False
    try:
        _read(raw)
        read = True
    except DeclarationError:
        read = False
    assert read is valid


def test_all_faults_are_named_with_file_and_key() -> None:
    with pytest.raises(DeclarationError) as error:
        _read({**RECORD, "mode": "quarrel", "contributions": [{"agent": "joe", "content": "x"}]})
    assert [str(problem) for problem in error.value.problems] == [
        "r.json: mode: must be one of discussion, debate, consensus",
        "r.json: contributions[0].agent: 'joe' is not one of the party's agents",
    ]


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff"])
def test_what_is_no_record_is_refused(data: bytes) -> None:
    with pytest.raises(DeclarationError):
        read_record(data, "r.json")
