from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from witness.declare.sidecar_spec import SidecarSpec, format_specs, parse_specs
from witness.declare.source import Source
from witness.errors import DeclarationError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("   ", []),
        ("scope", [("scope", "scope", "")]),
        (
            "specs:docs/api-spec.md,tools,scope",
            [("specs", "specs", "docs/api-spec.md"), ("tools", "tools", ""), ("scope", "scope", "")],
        ),
        (" specs : docs/a b.md , tools ", [("specs", "specs", "docs/a b.md"), ("tools", "tools", "")]),
        (r"specs:a\,b.md,scope", [("specs", "specs", "a,b.md"), ("scope", "scope", "")]),
        (r"specs:a\:b.md", [("specs", "specs", "a:b.md")]),
        ("specs:http://x/y", [("specs", "specs", "http://x/y")]),
        (r"specs:dir\\", [("specs", "specs", "dir\\")]),
        (r"specs:dir\name", [("specs", "specs", r"dir\name")]),
        ("specs:a.md,specs:b.md", [("specs", "specs", "a.md"), ("specs-2", "specs", "b.md")]),
        ("specs-2,specs:a,specs:b", [("specs-2", "specs-2", ""), ("specs", "specs", "a"), ("specs-3", "specs", "b")]),
    ],
)
def test_a_spec_string_is_read(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert [(spec.name, spec.type, spec.argument) for spec in parse_specs(text, "--sidecars")] == expected


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("specs,specs", ["declared twice"]),
        ("specs:a,specs:a", ["specs:a is declared twice"]),
        ("specs,,tools", ["an empty entry"]),
        ("specs,", ["an empty entry"]),
        (":docs/a.md", ["without a type"]),
        ("specs:", ["nothing follows the colon"]),
        ("a.b,c/d", ["'a.b' is not a usable name", "'c/d' is not a usable name"]),
        ("['specs', 'tools']", ["\"['specs'\" is not a usable name", "\"'tools']\" is not a usable name"]),
    ],
)
def test_all_faults_come_at_once_with_their_place(text: str, faults: list[str]) -> None:
    with pytest.raises(DeclarationError) as caught:
        parse_specs(text, Source("mol.toml", 7, "vars.sidecars"))
    problems = caught.value.problems
    assert len(problems) == len(faults)
    for problem, fault in zip(problems, faults, strict=True):
        assert fault in problem.message
        assert str(problem).startswith("mol.toml:7: vars.sidecars: ")
    assert caught.value.exit_code == 2


_words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=20).map(str.strip)
_types = st.from_regex(r"[a-z][a-z0-9_-]{0,10}", fullmatch=True)


@given(st.lists(st.tuples(_types, _words), unique=True, max_size=6))
def test_what_is_written_is_read_back(entries: list[tuple[str, str]]) -> None:
    specs = tuple(SidecarSpec("", kind, argument) for kind, argument in entries)
    read = parse_specs(format_specs(specs), "test")
    assert [(spec.type, spec.argument) for spec in read] == entries
    assert len({spec.name for spec in read}) == len(entries)
