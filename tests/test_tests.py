"""What holds for every test: it uses what the product gives everybody, and waits for facts instead of time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_PROGRAMS = sorted(path for path in _HERE.rglob("*.py"))
_PRODUCT = ("witness", "sidecars")
# Of Python itself, and of pytest, which has no other way to its folder at a session's end.
_NOT_OURS = {"os._exit", "_tmp_path_factory"}


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@cache
def _nodes(text: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(text)))


def _own_names(nodes: list[ast.AST]) -> set[str]:
    """The names that a module itself gives to what it defines or holds."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
            names.add(node.attr)
    return names


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _reached_into(text: str) -> Iterator[tuple[int, str]]:
    """Each place where a module uses a private name that is not its own, as (line, what)."""
    nodes = _nodes(text)
    own = _own_names(nodes)
    for node in nodes:
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
    assert [what for _, what in _reached_into(line)] == found


def test_no_private_name_of_the_product_is_used() -> None:
    found = [
        f"{path.relative_to(_HERE)}:{line}: {what}"
        for path in _PROGRAMS
        for line, what in _reached_into(path.read_text(encoding="utf-8"))
        if what not in _NOT_OURS
    ]
    assert not found, "give the product the public name that is missing:\n" + "\n".join(found)


# -- waiting --------------------------------------------------------------------------------------------------------

#: Where time has to pass, and why. All else waits with tests/waiting.py, or in the product for a descriptor.
_MAY_PAUSE = {
    "tests/waiting.py": "the one place that lets time pass where a limit of time is what is tested",
    "tests/bench": "it measures, and asks foreign programs that tell nothing",
    "tests/chaos": "its agents and faults come at moments that dice choose",
    "tests/programs/awkward.py": "a program that forks itself anew every 50 ms",
    "tests/sidecars/recordings/record.py": "a model that takes its time",
}


def _pauses(text: str) -> Iterator[tuple[int, str]]:
    """Each place where a module lets time pass instead of waiting for something, as (line, what)."""
    nodes = _nodes(text)
    for node in nodes:
        if isinstance(node, ast.While) and all(map(_does_nothing, node.body)):
            yield node.lineno, ast.unparse(node.test)
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if (
            (called in ("time.sleep", "sleep", "asyncio.sleep") and ast.unparse(node) != "asyncio.sleep(0)")
            or (
                called == "select.select"
                and all(isinstance(each, ast.List) and not each.elts for each in node.args[:3])
            )
            or (called.endswith("Event().wait") and (node.args or node.keywords))
        ):
            yield node.lineno, ast.unparse(node)
    loops = [node for node in nodes if isinstance(node, ast.While)]
    for node in {each for loop in loops for each in ast.walk(loop)}:
        if isinstance(node, ast.Call) and _named(node.func) == "wait" and any(map(_is_short, node.args)):
            yield node.lineno, ast.unparse(node)


def _does_nothing(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and ast.unparse(node) == "os.sched_yield()")


def _is_short(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value < 1


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("time.sleep(0.1)", True),
        ("asyncio.sleep(0)", False),
        ("select.select([], [], [], 0.05)", True),
        ("select.select([pipe], [], [], 0.05)", False),
        ("threading.Event().wait(0.1)", True),
        ("while not ready(): pass", True),
        ("while not ready():\n    os.sched_yield()", True),
        ("while not gate.wait(0.02): look()", True),
        ("while not gate.wait(20): look()", False),
        ("until(ready)", False),
    ],
)
def test_the_check_sees_a_pause(line: str, seen: bool) -> None:
    assert bool(list(_pauses(line))) is seen


def test_no_test_lets_time_pass_in_the_hope_that_something_has_happened() -> None:
    found = []
    for path in _PROGRAMS:
        name = f"tests/{path.relative_to(_HERE)}"
        if not any(name == place or name.startswith(f"{place}/") for place in _MAY_PAUSE):
            found += [f"{name}:{line}: {what}" for line, what in _pauses(path.read_text(encoding="utf-8"))]
    assert not found, "wait for the fact (tests/waiting.py):\n" + "\n".join(found)
