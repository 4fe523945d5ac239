"""What is public is documented whole, its examples run, and the page that is made of it names all of it."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import witness
import witness.testing

PUBLIC = {
    **{name: getattr(witness, name) for name in witness.__all__ if name != "__version__"},
    **{f"testing.{name}": getattr(witness.testing, name) for name in witness.testing.__all__},
}
EXAMPLES = [
    *("witness.testing", "witness.api.witness", "witness.api.async_witness", "witness.testing.messages_server"),
    "witness.judging.functions",
]


def callables() -> Iterator[tuple[str, Any]]:
    for name, public in PUBLIC.items():
        if inspect.isfunction(public):
            yield name, public
        elif inspect.isclass(public):
            for key, member in vars(public).items():
                found = member.fget if isinstance(member, property) else getattr(public, key)
                if not key.startswith("_") and inspect.isroutine(found) and not issubclass(public, Enum):
                    yield f"{name}.{key}", found


@pytest.mark.parametrize("name", [name for name, public in PUBLIC.items() if inspect.isclass(public)])
def test_every_class_says_what_it_is_made_of(name: str) -> None:
    public = PUBLIC[name]
    text = public.__doc__ or ""
    assert text
    for field in getattr(public, "__dataclass_fields__", ()):
        assert re.search(rf"^ +(?:\w+, )*{field}\b(?:, \w+)*: ", text, re.MULTILINE) or field in text, field


@pytest.mark.parametrize(("name", "function"), [pytest.param(*each, id=each[0]) for each in callables()])
def test_every_argument_is_told(name: str, function: Any) -> None:
    text = inspect.getdoc(function) or ""
    assert text, "no docstring"
    if text.startswith("As ``Witness."):
        return
    for argument in inspect.signature(function).parameters:
        if argument not in ("self", "cls", "args", "kwargs"):
            assert re.search(rf"^ +(?:\w+, )*{argument}\b(?:, \w+)*: ", text, re.MULTILINE), argument


@pytest.mark.parametrize("module", EXAMPLES)
def test_every_example_runs(module: str) -> None:
    found = importlib.import_module(module)
    parts = doctest.DocTestFinder(exclude_empty=True).find(found)
    ran = [doctest.DocTestRunner().run(part) for part in parts if part.examples]
    assert ran
    assert sum(each.attempted for each in ran) >= 2
    assert not any(each.failed for each in ran)


def test_the_page_names_everything() -> None:
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    missing = [name for name in PUBLIC if f"### `{name.removeprefix('testing.')}`" not in page]
    assert missing == []
