"""Memory files of any origin are understood, and what we write is in the published format."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecars.memory.lenient_reader import parse, read_sidecar
from sidecars.memory.record import BOOKKEEPING_KEY, dump, iso, one_line, sidecar_to_json
from tests.memory.files import MDAN, TEMPLATE, validator

_NOW = iso(1_800_000_000.0)
_valid = validator("agent-sidecar")

_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 10**6)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_KEYS = [*TEMPLATE, BOOKKEEPING_KEY]
_ITEM = [
    "id",
    "type",
    "content",
    "confidence",
    "tags",
    "created_at",
    "last_reinforced_session",
    "dr_id",
    "role",
    "applied",
]


def _reread(raw: dict[str, Any]) -> dict[str, Any]:
    return sidecar_to_json(read_sidecar(raw, "architect", _NOW).sidecar)


@pytest.mark.parametrize("raw", [TEMPLATE, MDAN], ids=["template", "mdan"])
def test_a_file_of_another_writer_needs_no_repair_and_loses_nothing(raw: dict[str, Any]) -> None:
    reading = read_sidecar(raw, "architect", _NOW)
    assert reading.repairs == ()
    written = sidecar_to_json(reading.sidecar)
    for key, value in raw.items():
        if key != "memories":
            assert written[key] == value
    for before, after in zip(raw["memories"], written["memories"], strict=True):
        assert before.items() <= after.items()
    _valid(written)


def test_what_mdans_program_sorts_and_decays_by_is_always_written() -> None:
    for memory in _reread(TEMPLATE)["memories"]:
        assert memory["id"]
        assert isinstance(memory["created_at"], str)
        assert isinstance(memory["tags"], list)
        # A file without counts must not age at once: its memories start from the sessions that it has.
        assert memory["last_reinforced_session"] == TEMPLATE["sessions_participated"]


def test_unknown_keys_survive_everywhere() -> None:
    raw = json.loads(json.dumps(MDAN))
    raw["mood"] = {"level": 3}
    raw["memories"][0]["embedding"] = [0.1, 0.2]
    raw["decision_history"][0]["weight"] = 2
    raw["relationships"]["mentors"] = ["dev"]
    raw[BOOKKEEPING_KEY] = {"later": True}
    written = _reread(raw)
    assert written["mood"] == {"level": 3}
    assert written["memories"][0]["embedding"] == [0.1, 0.2]
    assert written["decision_history"][0]["weight"] == 2
    assert written["relationships"]["mentors"] == ["dev"]
    assert written[BOOKKEEPING_KEY]["later"] is True


@pytest.mark.parametrize(
    ("change", "repair"),
    [
        ({"memories": ["likes tabs"]}, "plain text"),
        ({"memories": [{"content": ""}]}, "no content"),
        ({"memories": [{"content": "x", "type": "wish", "confidence": 0.5}]}, "not one of"),
        ({"memories": [{"content": "x", "type": "context", "confidence": 80}]}, "percentage"),
        ({"memories": [{"content": "x", "type": "context", "confidence": True}]}, "between 0 and 1"),
        ({"memories": [{"content": "x" * 900, "type": "context", "confidence": 1}]}, "cut to 500"),
        ({"memories": {"a": 1}}, "not a list"),
        ({"memories": [{"content": "x", "type": "context", "last_reinforced_session": 10**9}]}, "more than the file's"),
        ({"sessions_participated": -1}, "not a count"),
        ({"sessions_participated": "many"}, "not a count"),
        ({"relationships": ["dev"]}, "not an object"),
        ({"relationships": {"agrees_with": [1]}}, "no names"),
        ({"decision_history": [{"role": "proponent"}]}, "no dr_id"),
        (
            {
                "memories": [
                    {"id": "a", "content": "x", "type": "context"},
                    {"id": "a", "content": "y", "type": "context"},
                ]
            },
            "twice",
        ),
    ],
)
def test_a_fault_is_repaired_and_told(change: dict[str, Any], repair: str) -> None:
    reading = read_sidecar({**TEMPLATE, **change}, "architect", _NOW)
    assert any(repair in line for line in reading.repairs), reading.repairs
    _valid(sidecar_to_json(reading.sidecar))


@pytest.mark.parametrize(
    "raw",
    [{}, {"agent": "x"}, {"memories": None}, {"sessions_participated": "4"}, {"relationships": {"agrees_with": "dev"}}],
)
def test_a_partial_or_older_file_is_filled_in_silence(raw: dict[str, Any]) -> None:
    reading = read_sidecar(raw, "architect", _NOW)
    assert reading.repairs == ()
    _valid(sidecar_to_json(reading.sidecar))


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.sampled_from(_KEYS), _json | st.lists(st.dictionaries(st.sampled_from(_ITEM), _json), max_size=3)
    )
)
def test_any_object_is_read_into_the_published_format_and_stays_so(raw: dict[str, Any]) -> None:
    once = _reread(raw)
    _valid(json.loads(json.dumps(once)))
    again = read_sidecar(once, "architect", _NOW)
    assert again.repairs == ()
    assert sidecar_to_json(again.sidecar) == once
    assert parse(dump(again.sidecar)) == once


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{", b"\xff\xfe{\x00}\x00", b'{"a": 1} {}', b"[" * 100_000, b"null", b"\x00" * 10]
)
def test_what_is_no_object_is_corrupt(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse(data)


def test_a_byte_order_mark_is_no_fault() -> None:
    assert parse(b"\xef\xbb\xbf{}") == {}


def test_what_cannot_be_seen_is_removed_and_joiners_stay() -> None:
    assert one_line("a\u202eb\x1b[31mc\U000e0041\nd\te\u200d") == "ab[31mc d e\u200d"
