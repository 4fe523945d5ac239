"""Languages that tree-sitter reads: which nodes define something, which are text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sidecars.syntax.grammars import parse
from sidecars.syntax.source_parts import CODE, COMMENT, STRING, Definition, Kind
from sidecars.syntax.words import text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_SECONDS = 0.2
_DEEPEST = 100
_STRINGS = frozenset(
    [
        "string", "template_string", "string_literal", "raw_string_literal", "interpreted_string_literal",
        "rune_literal", "char_literal", "character_literal", "raw_string", "ansi_c_string", "heredoc_body",
        "heredoc_content", "regex", "jsx_text", "string_array", "symbol_array", "system_lib_string",
    ]
)  # fmt: skip
_COMMENTS = frozenset(["comment", "line_comment", "block_comment", "html_comment", "hash_bang_line"])
_INSERTED = frozenset(["template_substitution", "interpolation", "command_substitution"])


@dataclass(frozen=True, slots=True)
class _Language:
    """Which nodes define something.

    Args:
        kinds: node → kind.
        owners: nodes in which a function is a method.
        around: what a piece of a class wants around it to be read.
    """

    kinds: Mapping[str, Kind]
    owners: frozenset[str] = frozenset()
    around: tuple[str, str] | None = None


_SCRIPT: dict[str, Kind] = {
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "method_definition": "method",
    "class_declaration": "class",
    "abstract_class_declaration": "class",
    "interface_declaration": "class",
    "type_alias_declaration": "class",
    "enum_declaration": "class",
    "variable_declarator": "constant",
    "assignment_expression": "function",
}
_JS = _Language(_SCRIPT, frozenset(["class_body"]), ("class _ {\n", "\n}"))
_LANGUAGES: Mapping[str, _Language] = {
    "javascript": _JS,
    "typescript": _JS,
    "tsx": _JS,
    "go": _Language(
        {
            "function_declaration": "function",
            "method_declaration": "method",
            "type_spec": "class",
            "const_spec": "constant",
        }
    ),
    "rust": _Language(
        {
            "function_item": "function",
            "macro_definition": "function",
            "struct_item": "class",
            "enum_item": "class",
            "union_item": "class",
            "trait_item": "class",
            "type_item": "class",
            "const_item": "constant",
            "static_item": "constant",
        },
        frozenset(["impl_item", "trait_item"]),
        ("impl X {\n", "\n}"),
    ),
    "java": _Language(
        {
            "method_declaration": "method",
            "class_declaration": "class",
            "interface_declaration": "class",
            "enum_declaration": "class",
            "record_declaration": "class",
        },
        frozenset(["class_body"]),
        ("class X {\n", "\n}"),
    ),
    "ruby": _Language(
        {"method": "function", "singleton_method": "function", "class": "class"},
        frozenset(["class"]),
    ),
    "bash": _Language({"function_definition": "function"}),
    "c": _Language(
        {
            "function_definition": "function",
            "preproc_function_def": "function",
            "struct_specifier": "class",
            "union_specifier": "class",
            "enum_specifier": "class",
            "preproc_def": "constant",
        }
    ),
}
_EXPORTS = ("module.exports.", "exports.")
_FUNCTION_VALUES = frozenset(["arrow_function", "function_expression", "generator_function"])


def _read(language: str, text: str) -> tuple[Node, bytes, int] | None:
    """The tree of a text, its source, and the number of lines put before it."""
    source = text.encode("utf-8", "replace")
    root = parse(language, source, _SECONDS)
    around = _LANGUAGES[language].around
    if root is not None and root.has_error and around:
        inner = around[0].encode() + source + around[1].encode()
        other = parse(language, inner, _SECONDS)
        if other is not None and not other.has_error:
            return other, inner, 1
    return None if root is None else (root, source, 0)


def _nodes(root: Node) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Every node with those around it, in the order of the text; what the grammar could not read is left out."""
    waiting: list[tuple[Node, tuple[Node, ...]]] = [(root, ())]
    while waiting:
        node, above = waiting.pop()
        yield node, above
        if node.type != "ERROR" and len(above) < _DEEPEST:
            waiting += [(child, (*above, node)) for child in reversed(node.named_children)]


def kinds(language: str, text: str) -> bytearray | None:
    """The kind of each character, None when it is not known: no grammar, or a text that is not of the language."""
    source = text.encode("utf-8", "replace")
    root = parse(language, source, _SECONDS)
    if root is None:
        return None
    painted = bytearray(len(source))
    for node, _ in _nodes(root):
        kind = _kind(node.type)
        if kind is not None:
            painted[node.start_byte : node.end_byte] = bytes([kind]) * (node.end_byte - node.start_byte)
    if root.has_error:
        _paint_lost(source, painted)
    # One byte for each character: those that continue one are left out.
    return bytearray(kind for kind, byte in zip(painted, source, strict=True) if byte & 0xC0 != 0x80)


def _kind(name: str) -> int | None:
    if name in _COMMENTS:
        return COMMENT
    if name in _STRINGS:
        return STRING
    return CODE if name in _INSERTED else None


def _paint_lost(source: bytes, painted: bytearray) -> None:
    """A piece of a file may begin inside of a comment: up to its end, and lines that begin with a star, are comment."""
    close, start = source.find(b"*/"), source.find(b"/*")
    if close >= 0 and (start < 0 or close < start):
        painted[: close + 2] = bytes([COMMENT]) * (close + 2)
    place = 0
    for line in source.split(b"\n"):
        bare = line.lstrip()
        if bare.startswith((b"* ", b"*/")) or bare == b"*":
            painted[place : place + len(line)] = bytes([COMMENT]) * len(line)
        place += len(line) + 1


def definitions(language: str, text: str) -> tuple[Definition, ...] | None:
    """What a text defines, None when there is no grammar for it."""
    read = _read(language, text)
    if read is None:
        return None
    root, source, shift = read
    rules = _LANGUAGES[language]
    exported = _exported(root, source) if rules.kinds is _SCRIPT else frozenset()
    found: list[Definition] = []
    for node, above in _nodes(root):
        name = _name(node, source) if node.type in rules.kinds and not node.has_error else ""
        kind = _kind_here(language, node, above, source) if name else None
        first = node.start_point[0] + 1 - shift
        if kind is not None and first > 0:  # what stands before the text was put around it
            public = name in exported or _is_public(language, node, name, above, source)
            owner = _owner(above[2:] if shift else above, rules, source)
            found.append(Definition(name, kind, first, _last_line(node) - shift, public, owner))
    return tuple(found)


def _last_line(node: Node) -> int:
    """The number of a node's last line; one that ends with a line's end does not reach into the next."""
    row, column = node.end_point
    return row + (column > 0 or row == node.start_point[0])


def _owner(above: tuple[Node, ...], rules: _Language, source: bytes) -> str:
    around = (each for each in reversed(above) if each.type in rules.kinds or each.type == "module")
    return next((name for each in around if (name := _name(each, source))), "")


def _name(node: Node, source: bytes) -> str:
    """What a node defines; in C the name stands inside of declarators."""
    named = node.child_by_field_name("name")
    inner = node.child_by_field_name("declarator")
    if node.type == "assignment_expression" and (left := node.child_by_field_name("left")) is not None:
        target = text_of(left, source)  # "exports.debounce = …"
        return target.rpartition(".")[2] if target.startswith(_EXPORTS) else ""
    while named is None and inner is not None:
        if inner.type in ("identifier", "field_identifier"):
            named = inner
        inner = inner.child_by_field_name("declarator")
    return text_of(named, source) if named is not None else ""


def _kind_here(language: str, node: Node, above: tuple[Node, ...], source: bytes) -> Kind | None:
    """The kind of a definition at its place, None when it defines nothing that others see."""
    rules = _LANGUAGES[language]
    kind = rules.kinds[node.type]
    outer = above[-2].type if len(above) > 1 else ""
    if node.type in ("variable_declarator", "assignment_expression"):
        return _kind_of_variable(node, above[-1], outer, source)
    if node.type == "const_spec":
        return kind if outer == "source_file" else None
    if language == "c" and node.type.endswith("_specifier"):
        return kind if node.child_by_field_name("body") is not None else None
    if kind == "method":
        return "function" if _has(node, source, "static") else "method"
    if kind == "function" and node.type != "singleton_method":
        parameters = node.child_by_field_name("parameters")
        bound = parameters is not None and any(each.type == "self_parameter" for each in parameters.named_children)
        return "method" if bound or any(each.type in rules.owners for each in above) else "function"
    return kind


def _kind_of_variable(node: Node, declaration: Node, outer: str, source: bytes) -> Kind | None:
    """``const f = () => …`` is a function; other values count when they are constants of the whole file."""
    value = node.child_by_field_name("value") or node.child_by_field_name("right")
    if value is not None and value.type in _FUNCTION_VALUES:
        return "function"
    constant = source.startswith(b"const", declaration.start_byte) and outer in ("program", "export_statement")
    return "constant" if constant and value is not None else None


def _has(node: Node, source: bytes, word: str) -> bool:
    """Whether a modifier stands before a definition's name."""
    named = node.child_by_field_name("name")
    end = named.start_byte if named is not None else node.end_byte
    return word in source[node.start_byte : end].decode("utf-8", "replace").replace("(", " ").split()


def _is_public(language: str, node: Node, name: str, above: tuple[Node, ...], source: bytes) -> bool:
    if language in ("javascript", "typescript", "tsx"):
        shared = node.type == "assignment_expression" or any(each.type == "export_statement" for each in above)
        return shared and node.type != "method_definition"
    if language == "go":
        return name[:1].isupper()
    if language == "rust":
        return source[node.start_byte : node.start_byte + 3] == b"pub"
    if language == "java":
        return _has(node, source, "public")
    if language == "c":
        return not source[node.start_byte : node.end_byte].startswith(b"static")
    return not name.startswith("_")


def _exported(root: Node, source: bytes) -> frozenset[str]:
    """The names in ``export { … }``, ``export default NAME`` and ``module.exports = { … }``."""
    found: set[str] = set()
    for node, above in _nodes(root):
        if node.type == "export_specifier":
            found.add(text_of(node, source).split(" as ")[0].strip())
        elif node.type == "export_statement":
            value = node.child_by_field_name("value")
            if value is not None and value.type == "identifier":
                found.add(text_of(value, source))
        elif node.type == "assignment_expression" and len(above) <= 2:
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            target = text_of(left, source) if left is not None else ""
            if right is None or not target.startswith(("module.exports", "exports.")):
                continue
            found |= {
                text_of(each, source)
                for each, _ in _nodes(right)
                if each.type in ("identifier", "shorthand_property_identifier")
            }
    return frozenset(found)
