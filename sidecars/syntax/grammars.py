"""tree-sitter's parsers, each loaded when it is first asked for and then kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Tree

# Language → (module, function in it that gives the grammar). Only bash comes with the base; the others are the extra
# ``[languages]``.
MODULES = {
    "bash": ("tree_sitter_bash", "language"),
    "c": ("tree_sitter_c", "language"),
    "go": ("tree_sitter_go", "language"),
    "java": ("tree_sitter_java", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
}


@cache
def parser_of(language: str) -> Parser | None:
    """The parser of a language; None when its grammar is not installed."""
    from tree_sitter import Language, Parser

    module, function = MODULES[language]
    try:
        grammar: Callable[[], Any] = getattr(import_module(module), function)
    except ImportError:
        return None
    return Parser(Language(grammar()))


def parse(language: str, source: bytes, seconds: float = 0.05) -> Node | None:
    """The root of a text's syntax tree.

    Args:
        language: a key of the table above.
        source: the text; its size is for the caller to bound.
        seconds: the parser gives up after this time.

    Returns:
        None when the grammar is not installed or the text took too long.
    """
    parser = parser_of(language)
    if parser is None:
        return None
    until = monotonic() + seconds
    view = memoryview(source)

    def rest(offset: int, _: object) -> bytes:
        return bytes(view[offset : offset + 65_536])

    try:
        tree: Tree = parser.parse(rest, progress_callback=lambda *_: monotonic() > until)
    except ValueError:  # "Parsing failed": cancelled
        parser.reset()
        return None
    return tree.root_node
