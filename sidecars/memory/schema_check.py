"""Holding an answer against its form, for answers that come from a shell instead of a model's API.

Only as much of JSON Schema as our own forms use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_KINDS: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
}


def faults(value: Any, schema: Mapping[str, Any], where: str = "answer") -> Iterator[str]:
    """What is wrong with a value, one line each.

    Args:
        value: the value, from JSON.
        schema: its form.
        where: how it is named in the lines.
    """
    kind = schema.get("type", "")
    wrong_number = kind == "number" and isinstance(value, bool)
    if kind in _KINDS and (not isinstance(value, _KINDS[kind]) or wrong_number):
        yield f"{where} must be {'an' if kind[0] in 'ao' else 'a'} {kind}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} must be one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, dict):
        yield from (f"{where}.{key} is missing" for key in schema.get("required", ()) if key not in value)
        for key, inner in schema.get("properties", {}).items():
            if key in value:
                yield from faults(value[key], inner, f"{where}.{key}")
    if isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            yield f"{where} has {len(value)} entries, at most {schema['maxItems']}"
        for index, each in enumerate(value):
            yield from faults(each, schema.get("items", {}), f"{where}[{index}]")


def described(schema: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """An object's keys in words, one line each."""
    required = schema.get("required", ())
    for key, inner in schema.get("properties", {}).items():
        notes = [_kind(inner), *(["required"] if key in required else []), *filter(None, [inner.get("description")])]
        yield f"{indent}{key}: {', '.join(notes)}"
        items = inner.get("items", {})
        if items.get("type") == "object":
            yield from described(items, indent + "  each ")


def _kind(schema: Mapping[str, Any]) -> str:
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}"
    if "enum" in schema:
        return "one of " + " | ".join(map(str, schema["enum"]))
    return str(schema.get("type", "anything"))
