"""The one reader of YAML: lines, double keys, and documents that are written to hurt."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from witness.config.yaml_document import load_yaml, parse_yaml, parse_yaml_value
from witness.errors import DeclarationError


def _bomb(levels: int, width: int) -> str:
    lines = ["l0: &l0 [x, x]"]
    lines += [f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * width)}]" for level in range(1, levels)]
    return "\n".join(lines)


HOSTILE: dict[str, tuple[str, str]] = {
    "an exponential of aliases": (_bomb(9, 9), "aliases counted"),
    "aliases of merged mappings": (
        "a: &a {" + ", ".join(f"k{n}: v" for n in range(300)) + "}\nb: [" + ", ".join(["{<<: *a}"] * 1000) + "]",
        "aliases counted",
    ),
    "a long text many times": (f"a: &a {'x' * 500_000}\nb: [{', '.join(['*a'] * 10)}]", "aliases counted"),
    "an alias within itself": ("a: &a\n  b: *a", "within what it stands for"),
    "a list within itself": ("a: &a [1, [*a]]", "within what it stands for"),
    "a key within itself": ("a: &a {? *a : 1}", "within what it stands for"),
    "deep lists": ("a: " + "[" * 50_000, "nest"),
    "deep mappings": ("{a: " * 50_000, "nest"),
    "deep blocks": ("\n".join(f"{' ' * n}a:" for n in range(500)), "nest"),
    "deep items": ("a:\n  " + "- " * 50_000 + "x", "nest"),
    "very many values": ("a: [" + "1, " * 200_000 + "]", "more than"),
    "very long": ("a: " + "x" * 2_000_000, "longer than"),
    "a number of base sixty": ("a: 1" + ":59" * 100_000, "digits"),
    "a number of many digits": ("a: " + "9" * 10_000, "digits"),
    "no date": ("a: 2001-99-99", "not YAML"),
    "an object of Python": ("a: !!python/object/apply:os.system [true]", "not YAML"),
    "a control character": ("a: \x00", "not YAML"),
    "an unknown alias": ("a: *b", "not YAML"),
    "two documents": ("a: 1\n---\nb: 2", "not YAML"),
    "an unhashable key": ("? [a]\n: 1", "not YAML"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_document_that_is_meant_to_hurt_is_one_line_at_once(kind: str) -> None:
    text, said = HOSTILE[kind]
    for read in (parse_yaml, parse_yaml_value):
        began = time.monotonic()
        with pytest.raises(DeclarationError, match=said) as caught:
            read(text, "sidecar.yaml")
        assert time.monotonic() - began < 2
        assert str(caught.value).startswith("sidecar.yaml:")
        assert len(str(caught.value)) < 500
        assert "\n" not in str(caught.value)


def test_every_key_is_found_by_its_line() -> None:
    text = "# first\nname: x\nrules:\n  - name: one\n    tools: [Edit,\n      Write]\n  - name: two\n"
    document = parse_yaml(text, "sidecar.yaml")
    assert document.values == yaml.safe_load(text)
    assert document.lines == {
        "name": 2, "rules": 3, "rules.0": 4, "rules.0.name": 4, "rules.0.tools": 5, "rules.0.tools.0": 5,
        "rules.0.tools.1": 6, "rules.1": 7, "rules.1.name": 7,
    }  # fmt: skip
    assert document.problem("wrong", "rules.1.tools.4").line == 7
    assert parse_yaml("\nname: x", "sidecar.yaml", first_line=10).lines == {"name": 11}


def test_a_key_that_stands_twice_is_named_at_any_depth() -> None:
    with pytest.raises(DeclarationError) as caught:
        parse_yaml("a: 1\nb:\n  c: 1\n  c: 2\na: 2\n", "f")
    assert [(each.line, each.key) for each in caught.value.problems] == [(4, "b.c"), (5, "a")]
    assert "first in line 1" in str(caught.value)


def test_aliases_and_merges_that_people_write_are_read() -> None:
    text = "base: &base {a: 1, b: 2}\nother:\n  <<: *base\n  b: 3\nlist: [*base, *base]\n"
    document = parse_yaml(text, "f")
    assert document.values == yaml.safe_load(text)
    assert document.lines["other.b"] == 4


def test_what_is_no_mapping_is_refused_and_an_empty_file_is_empty(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match="mapping"):
        parse_yaml("- a", "f")
    with pytest.raises(DeclarationError, match="mapping"):
        parse_yaml("1: a", "f")
    assert parse_yaml("# nothing", "f").values == {}
    assert load_yaml(tmp_path / "missing.yaml").values == {}
    assert parse_yaml_value("- a", "f") == ["a"]


def test_a_file_is_read_only_where_it_is_one(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("\ufeffa: 1")
    (tmp_path / "linked.yaml").symlink_to("kept")
    assert load_yaml(tmp_path / "linked.yaml").values == {"a": 1}
    os.mkfifo(tmp_path / "fifo.yaml")
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "bytes.yaml").write_bytes(b"\xff")
    with (tmp_path / "sparse.yaml").open("wb") as file:
        file.truncate(1 << 30)
    for name in ("fifo", "zero", "folder", "bytes", "sparse"):
        with pytest.raises(DeclarationError, match=f"{name}.yaml: cannot be read") as caught:
            load_yaml(tmp_path / f"{name}.yaml")
        assert "\n" not in str(caught.value)


_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(max_size=8), _PLAIN, max_size=5), st.booleans())
def test_what_is_read_is_what_yaml_reads(value: dict[str, Any], flow: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True)
    assert parse_yaml(text, "f").values == yaml.safe_load(text)


def test_a_key_is_a_name_whatever_yaml_takes_it_for() -> None:
    document = parse_yaml("on: {no: 1}\nyes: true\nvalue: on\n", "x")
    assert document.values == {"on": {"no": 1}, "yes": True, "value": True}
    assert document.lines["on.no"] == 1
