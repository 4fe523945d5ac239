"""Pointers of places in JSON texts, and places of pointers, against the standard library's parser."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecars.distill import pointer as pointer_module
from sidecars.distill.answer import Pointer
from sidecars.distill.pointer import JsonMap, NotJsonError, is_json
from sidecars.distill.text import Text

Opened = Callable[..., Text]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
DOCUMENTS = st.lists(VALUES, max_size=5) | st.dictionaries(st.text(), VALUES, max_size=5)


def leaves(value: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield keys, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*keys, key))
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*keys, str(index)))


def in_object(document: Any, keys: tuple[str, ...]) -> bool:
    for key in keys[:-1]:
        document = document[key if isinstance(document, dict) else int(key)]
    return bool(keys) and isinstance(document, dict)


@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    document=DOCUMENTS,
    indent=st.sampled_from([None, 1]),
    ascii_only=st.booleans(),
    piece=st.sampled_from([48, 1 << 20]),
)
def test_every_value_is_found_by_its_pointer_and_its_pointer_by_its_place(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, document: Any, indent: int | None, ascii_only: bool, piece: int
) -> None:
    monkeypatch.setattr(pointer_module, "PIECE", piece)
    monkeypatch.setattr(pointer_module, "BLOCK", min(piece, 1 << 16))
    raw = json.dumps(document, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    text = opened(raw)
    found = JsonMap(text)
    for keys, value in leaves(document):
        span = found.span(Pointer(keys))
        assert span is not None
        part = raw[span[0] : span[1]].decode("utf-8", "surrogatepass")
        assert (json.loads(f"{{{part}}}")[keys[-1]] if in_object(document, keys) else json.loads(part)) == value
        assert found.at(span[0]) == found.at(span[1] - 1) == found.around(*span) == Pointer(keys)
        assert JsonMap(text).span(Pointer(keys)) == span


def test_a_pointer_to_nothing_is_none(opened: Opened) -> None:
    text = opened(b'{"a": [1, 2]}')
    for keys in (("b",), ("a", "2"), ("a", "0", "x")):
        assert JsonMap(text).span(Pointer(keys)) is None


def test_the_place_of_a_key_is_that_of_its_member(opened: Opened) -> None:
    raw = b'{"a": [1, {"key": "value"}]}'
    assert str(JsonMap(opened(raw)).at(raw.index(b"key"))) == "/a/1/key"


@pytest.mark.parametrize(
    ("raw", "judged"),
    [
        (b'{"a": 1}', True),
        (b" [1, 2]\n", True),
        (b"\xef\xbb\xbf[]", True),
        (b'{"a": 1}\n{"a": 2}\n', False),
        (b"[2026-05-14 09:00:01] started\n", False),
        (b"[info] hello\n", False),
        (b"{not json}", False),
        (b'{"a": 1', False),
        (b'{"a": "never ends', False),
        (b'"a string"', False),
        (b"plain", False),
        (b"", False),
        (b"[1}", False),
        (b"]", False),
    ],
)
def test_json_is_told_from_what_only_begins_like_it(opened: Opened, raw: bytes, judged: bool) -> None:
    assert is_json(opened(raw)) is judged


def test_what_is_no_json_raises_and_does_not_guess(opened: Opened) -> None:
    with pytest.raises(NotJsonError):
        JsonMap(opened(b'{"a": 1}{"b": 2}')).span(Pointer(("b",)))


def test_a_string_longer_than_any_piece_is_passed_over(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pointer_module, "PIECE", 64)
    raw = json.dumps({"blob": 'x\\"y' * 500, "after": [True]}).encode()
    text = opened(raw)
    span = JsonMap(text).span(Pointer(("after", "0")))
    assert span is not None
    assert raw[span[0] : span[1]] == b"true"
    blob = JsonMap(text).span(Pointer(("blob",)))
    assert blob is not None
    assert json.loads(raw[blob[0] : blob[1]].removeprefix(b'"blob": ')) == 'x\\"y' * 500
