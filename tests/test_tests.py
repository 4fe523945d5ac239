"""What holds for every test: it asks the product only for what the product gives everybody."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_PROGRAMS = sorted(path for path in _HERE.rglob("*.py"))
_PRODUCT = ("witness", "sidecars")
# Of Python itself, and of pytest, which has no other way to its folder at a session's end.
_NOT_OURS = {"os._exit", "_tmp_path_factory"}


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _own_names(tree: ast.AST) -> set[str]:
    """The names that a module itself gives to what it defines or holds."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
            names.add(node.attr)
    return names


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _reached_into(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Each place where a module uses a private name that is not its own, as (line, what)."""
    own = _own_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in _PRODUCT:
            parts = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            yield from ((node.lineno, part) for part in parts if _private(part))
        elif isinstance(node, ast.Import):
            parts = [part for alias in node.names for part in alias.name.split(".") if alias.name.startswith(_PRODUCT)]
            yield from ((node.lineno, part) for part in parts if _private(part))
        elif isinstance(node, ast.Attribute) and _private(node.attr) and not _is_self(node.value):
            if node.attr not in own or isinstance(node.ctx, ast.Store):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call) and _named(node.func) in _BY_NAME:
            texts = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            yield from (
                (node.lineno, text) for text in texts if any(map(_private, text.split("."))) and text not in own
            )


#: Functions that are given a name as text.
_BY_NAME = {"getattr", "setattr", "delattr", "hasattr", "attrgetter", "object"}


def _named(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("from witness.tmux import _exact", ["_exact"]),
        ("from witness._inner import x", ["_inner"]),
        ("import sidecars._inner", ["_inner"]),
        ("place.witness._reconciler.tmux", ["place.witness._reconciler"]),
        ("daemon._turn = lambda: None", ["daemon._turn"]),
        ("monkeypatch.setattr(module, '_LIMIT', 3)", ["_LIMIT"]),
        ("monkeypatch.setattr('witness.journal.database._BUSY', 1)", ["witness.journal.database._BUSY"]),
        ("getattr(watch, '_spool')", ["_spool"]),
        ("class A:\n    def __init__(self): self._own = 1\n    def x(self, other): return other._own", []),
        ("os.path.join(__file__)", []),
    ],
)
def test_the_check_sees_what_is_private(line: str, found: list[str]) -> None:
    assert [what for _, what in _reached_into(ast.parse(line))] == found


def test_no_private_name_of_the_product_is_used() -> None:
    found = [
        f"{path.relative_to(_HERE)}:{line}: {what}"
        for path in _PROGRAMS
        for line, what in _reached_into(ast.parse(path.read_text(encoding="utf-8")))
        if what not in _NOT_OURS
    ]
    assert not found, "give the product the public name that is missing:\n" + "\n".join(found)
