from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from witness.declare.source import Place, dotted, json_lines, line_of, toml_lines

TOML = '''# [not.a.table]
description = """
[vars.sidecars]
default = "no"  # still text
a quote "" inside, and four at the end""""
formula = "m"   # = not = keys
quoted = 'it''s'

[[steps]]
id = "one"
needs = [
  "zero", # [x]
  "minus = one",
]

[[steps]]
id = "two"
[steps.gate]
kind = "human"

[vars]
short = "x"
"dotted.key" = "y"
inline = { default = "z", required = true }
[vars . "sidecars"]  # spaced and quoted
default = """\\
  scope"""
required = false
'''.replace("'it''s'", "'it is'")


def test_toml_lines_point_at_the_keys() -> None:
    tomllib.loads(TOML)
    lines, text = toml_lines(TOML), TOML.split("\n")
    expected: dict[Place, str] = {
        ("formula",): 'formula = "m"',
        ("steps", 0): "[[steps]]",
        ("steps", 0, "id"): 'id = "one"',
        ("steps", 1, "id"): 'id = "two"',
        ("steps", 1, "gate", "kind"): 'kind = "human"',
        ("vars", "short"): 'short = "x"',
        ("vars", "dotted.key"): '"dotted.key"',
        ("vars", "inline"): "inline =",
        ("vars", "sidecars"): '[vars . "sidecars"]',
        ("vars", "sidecars", "default"): 'default = """',
        ("vars", "sidecars", "required"): "required = false",
    }
    for place, start in expected.items():
        assert text[lines[place] - 1].startswith(start), place
    assert ("not", "a", "table") not in lines
    # What has no line of its own has the line of what is around it.
    assert line_of(lines, ("vars", "inline", "default")) == lines["vars", "inline"]
    assert line_of(lines, ("nowhere",)) == 0


def test_the_same_lines_with_windows_line_ends() -> None:
    assert toml_lines(TOML.replace("\n", "\r\n")) == toml_lines(TOML)


def test_json_lines_point_at_the_keys() -> None:
    text = '{\n  "formula": "m",\n  "steps": [\n    {"id": "a: [b]"},\n    {\n      "id": "c"}\n  ],\n  '
    text += '"vars": {"x": {\n    "default": 3}}\n}'
    lines = json_lines(text)
    assert lines["formula",] == 2
    assert lines["steps", 0, "id"] == 4
    assert lines["steps", 1, "id"] == 6
    assert lines["vars", "x", "default"] == 9


def test_a_place_is_spoken_as_people_write_it() -> None:
    assert dotted(("steps", 2, "id")) == "steps[2].id"


def _paths(value: Any, place: Place = ()) -> list[Place]:
    if isinstance(value, dict):
        return [found for key, each in value.items() for found in [(*place, key), *_paths(each, (*place, key))]]
    return []


_key = st.from_regex(r"[a-z]{1,4}", fullmatch=True)
_value = st.sampled_from(['"x"', "'#'", '"""a\nb = 1\n[c]\n"""', "'''\n[z]'''", "[\n1, # ]\n2]", "{ q = 1 }", "3"])


@given(
    st.lists(
        st.tuples(_key, st.lists(st.tuples(_key, _value), max_size=3, unique_by=lambda pair: pair[0])),
        max_size=4,
        unique_by=lambda pair: pair[0],
    )
)
def test_every_key_of_any_document_has_the_line_it_stands_on(
    tables: list[tuple[str, list[tuple[str, str]]]],
) -> None:
    out = ""
    expected: dict[tuple[str, ...], int] = {}
    for table, pairs in tables:
        expected[(table,)] = out.count("\n") + 1
        out += f"[{table}]\n"
        for key, value in pairs:
            expected[(table, key)] = out.count("\n") + 1
            out += f"{key} = {value}\n"
    tomllib.loads(out)
    assert toml_lines(out) == expected
