"""Whatever stands in a formula: it is read, or refused with its faults named. Nothing else happens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from witness.declare.compose import compose
from witness.declare.molecule import Molecule
from witness.errors import DeclarationError

_leaf = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.just(1.5),
    st.sampled_from(["", "a", "b", "{{a}}", "{{", "workflow"]),
)
_KEYS = """
formula type version pour agent steps legs template aspects advice vars extends compose expand target with synthesis
depends_on inputs required_unless prompts output id title description needs default required enum pattern sidecars a b
1.x é
"""
_key = st.sampled_from(_KEYS.split())
_value = st.recursive(
    _leaf, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_key, inner, max_size=4), max_leaves=12
)


def _read(path: Path) -> None:
    faults: list[DeclarationError] = []
    for strict in (False, True):
        try:
            molecule = Molecule.load(path, strict=strict)
            molecule.undefined_placeholders()
            molecule.variables({"issue": "x"})
            molecule.sidecars({})
            compose(molecule)
        except DeclarationError as error:
            faults.append(error)
    for fault in faults:
        assert fault.problems
        assert all(problem.message and problem.file for problem in fault.problems)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(_key, _value, max_size=6))
def test_any_json_document(tmp_path: Path, document: dict[str, Any]) -> None:
    path = tmp_path / "m.formula.json"
    path.write_text(json.dumps(document, indent=1))
    _read(path)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.dictionaries(_key, _value, max_size=4),
    st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=40),
)
def test_any_toml_document(tmp_path: Path, document: dict[str, Any], tail: str) -> None:
    lines = [f"{json.dumps(key)} = {_toml(value)}" for key, value in document.items()]
    path = tmp_path / "m.toml"
    path.write_bytes(("\n".join(lines) + f"\n{tail}\n").encode())
    _read(path)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps("" if value is None else value)
