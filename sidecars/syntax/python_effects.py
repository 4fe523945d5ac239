"""A Python program that stands in a shell line → the files that it surely opens and writes, and what it puts there.

Only what is said in so many words counts: a literal name, in a statement of the top level that nothing before it can
have kept from being reached. Nothing is run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from warnings import catch_warnings, simplefilter

_LONGEST = 20_000
_READS = frozenset(["read_text", "read_bytes"])
_WRITES = frozenset(["write_text", "write_bytes"])
_ENDS = frozenset(["exit", "quit", "_exit", "abort", "execv", "execvp"])
# Statements behind which it is not sure that the program goes on, or that name what is not done at once.
_STRAIGHT = (ast.Import, ast.ImportFrom, ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.With, ast.Pass)
_LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MAYBE = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(slots=True)
class PythonEffects:
    """What a program surely does.

    Args:
        opened: files that it reads.
        written: files that it makes or changes.
        texts: (path, text) that it puts into files.
    """

    opened: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)


def effects_of(code: str) -> PythonEffects:
    """What a program surely does to files; nothing for what is no Python."""
    found = PythonEffects()
    if len(code) <= _LONGEST:
        try:
            with catch_warnings():
                simplefilter("ignore")
                tree = ast.parse(code)
            _Run(found).statements(tree.body)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return PythonEffects()
    return found


class _Run:
    """Goes through the statements in their order."""

    def __init__(self, found: PythonEffects) -> None:
        self._found = found
        # Names of texts, of paths and of open files, with the path that they stand for; None where it is not known.
        self._names: dict[str, str | None] = {}

    def statements(self, body: list[ast.stmt]) -> bool:
        """Read statements; False where it is not sure that the program goes on behind them."""
        for each in body:
            if isinstance(each, _LATER):
                continue
            if not isinstance(each, _STRAIGHT):
                return False
            if isinstance(each, ast.With):
                if not self._with(each):
                    return False
                continue
            for child in ast.iter_child_nodes(each):
                self._expression(child)
            if isinstance(each, ast.Assign):
                names = [target.id for target in each.targets if isinstance(target, ast.Name)]
                self._names |= dict.fromkeys(names, self._path(each.value))
            if any(_name(call.func) in _ENDS for call in _calls(each)):
                return False
        return True

    def _with(self, node: ast.With) -> bool:
        for item in node.items:
            self._expression(item.context_expr)
            if isinstance(item.optional_vars, ast.Name):
                self._names[item.optional_vars.id] = self._path(item.context_expr)
        return self.statements(node.body)

    def _expression(self, node: ast.AST) -> None:
        for call in _calls(node):
            self._call(call)

    def _call(self, call: ast.Call) -> None:
        name = _name(call.func)
        if name == "open":
            path = self._path(call)
            mode = self._mode(call)
            if path and mode is not None:
                (self._found.written if set(mode) & set("wax+") else self._found.opened).append(path)
        elif isinstance(call.func, ast.Attribute):
            path = self._path(call.func.value)
            text = call.args[0] if call.args else None
            if path and name in _READS:
                self._found.opened.append(path)
            elif path and name in _WRITES:
                self._found.written.append(path)
            if (
                path
                and name in ("write", "write_text")
                and isinstance(text, ast.Constant)
                and isinstance(text.value, str)
            ):
                self._found.texts.append((path, text.value))

    def _mode(self, call: ast.Call) -> str | None:
        """How a file is opened; None when that is not known."""
        place = 0 if isinstance(call.func, ast.Attribute) and _name(call.func.value) != "io" else 1
        named = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
        given = named or call.args[place : place + 1]
        if not given:
            return "r"
        return given[0].value if isinstance(given[0], ast.Constant) and isinstance(given[0].value, str) else None

    def _path(self, node: ast.AST) -> str | None:
        """The file that an expression names or holds open."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Name):
            return self._names.get(node.id)
        if not isinstance(node, ast.Call):
            return None
        name = _name(node.func)
        if isinstance(node.func, ast.Attribute) and name == "open" and _name(node.func.value) != "io":
            return self._path(node.func.value)
        if name in ("open", "Path", "PurePath") and len(node.args) >= 1:
            return self._path(node.args[0])
        return None


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """The calls that are surely made when a statement or an expression is reached."""
    if isinstance(node, (*_MAYBE, *_LATER)):
        return
    if isinstance(node, ast.Call):
        yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.With) and child in node.body):
            yield from _calls(child)


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
