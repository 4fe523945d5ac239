"""What a shell line surely does: the files that it opens, those that it writes, the programs that run.

Nothing is expanded or run. What depends on more than the line's own text is not told: a variable, a pattern, a branch,
a program that the table does not know, a text that is no shell. The line is read as if its commands succeed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sidecars.syntax.commands import Commands, NotShellError
from sidecars.syntax.grammars import parse
from sidecars.syntax.scope import Found, Scope
from sidecars.syntax.streams import Input, Redirects, is_herestring, read_redirects
from sidecars.syntax.words import Word, literal, read_word, text_of
from witness.judging.observation import Ran

if TYPE_CHECKING:
    from tree_sitter import Node

# A line longer than this is a program in disguise; what it does is seen by its effects.
LONGEST_LINE = 50_000
_DEEPEST = 40
_DEEPEST_LINE = 8
_BACKSLASH_BODY = re.compile(rb"(<<-?[^\n<][^\n]*\n[ \t]*)\\")
_MOST_COMMANDS = 2_000
# Their failure is an answer, so that ``A && B`` may well leave out B.
_ASKS = frozenset("[ test false grep egrep fgrep rg ag diff cmp which type command hash pgrep kill ping".split())  # noqa: SIM905
_ANSWERS = frozenset("grep egrep fgrep zgrep rg ag diff cmp colordiff".split())  # noqa: SIM905
_COMPOSED = frozenset(["list", "pipeline", "negated_command"])
_NESTS = frozenset(["list", "compound_statement", "subshell", "if_statement", "case_statement"])


@dataclass(frozen=True, slots=True)
class ShellReading:
    """What a shell line surely does when its commands succeed.

    Args:
        opened: files that are read, joined to the folder that the line had changed to; ``~`` is left as it is.
        may_write: files that are made, changed or removed, likewise.
        ran: the programs that run with what they are given, wrappers and runners too.
        tools: the programs that run, by base name; wrappers, runners and the shell's own commands left out.
        texts: what is written out in the line itself and goes into a file: (path, text).
        folder: where the shell stands at the end, seen from where it began; None when that is not known.
    """

    opened: tuple[str, ...] = ()
    may_write: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
    folder: str | None = field(default="", compare=False)
    ran: tuple[Ran, ...] = field(default=(), compare=False)


def read_shell(line: str) -> ShellReading:
    """Read a shell line, or several.

    Args:
        line: as the shell was given it; paths in the answer are relative to where it began.
    """
    found, scope = Found(), Scope()
    if len(line) <= LONGEST_LINE:
        _Walk(found).line(line, scope)
    return ShellReading(
        tuple(dict.fromkeys(found.opened)),
        tuple(dict.fromkeys(found.written)),
        tuple(dict.fromkeys(found.tools)),
        tuple(found.texts),
        scope.folder,
        tuple(found.ran),
    )


def read_answered(line: str) -> ShellReading:
    """What a line has surely done that ended with status 1: with ``diff`` or ``grep`` that is an answer, no failure."""
    reading = read_shell(line)
    return reading if len(reading.ran) == 1 and _ANSWERS.issuperset(reading.tools) else ShellReading()


class _Walk:
    """Goes through a line as the shell would. Each method answers what its node puts out, None when not known."""

    def __init__(self, found: Found) -> None:
        self._found = found
        self._commands = Commands(found, self)
        self._source = b""
        self._depth = 0
        self._lines = 0
        # Redirections that the grammar hangs on a whole list, and the shell on its last command: by the command's node.
        self._pending: dict[int, list[Node]] = {}

    def line(self, line: str, scope: Scope) -> None:
        """Read a text of the shell in ``scope``."""
        source = line.encode("utf-8", "replace")
        # The grammar takes the first line of a here-document that begins with a backslash for words of the command.
        shown = _BACKSLASH_BODY.sub(rb"\1_", source)
        root = parse("bash", shown) if self._lines < _DEEPEST_LINE else None
        if root is None:
            return
        outer, self._source = self._source, source
        known = self._found.copy()
        self._lines += 1
        try:
            self._statements(_sound(root, source) if root.has_error else root.children, scope, succeeds=True)
        except NotShellError:
            self._found.put_back(known)
            scope.ended = True
        finally:
            self._source = outer
            self._lines -= 1

    def call(self, name: str, scope: Scope, given: Input) -> str | None:
        """Run a function; what it puts out."""
        defined = scope.functions[name]
        if defined is None:
            scope.move(None)
            return None
        function, source = defined
        outer, self._source = self._source, source
        before = dict(scope.variables)
        try:
            redirects = function.children_by_field_name("redirect")
            said = self._with_redirects(function.child_by_field_name("body"), redirects, scope, given, succeeds=False)
        finally:
            self._source = outer
        scope.ended = False  # ``return`` ends the function only
        scope.forget_changes(before)  # what is local is gone, and the rest is not told apart
        return said

    def _statements(self, nodes: Sequence[Node], scope: Scope, *, succeeds: bool) -> str | None:
        said: list[str | None] = []
        real = [node for node in nodes if node.is_named and node.type not in ("comment", "heredoc_body")]
        for node in real:
            if scope.ended:
                break
            following = node.next_sibling
            if following is not None and following.type == "&":
                said.append(self._node(node, scope.copy(), Input(), succeeds=False))
            else:
                said.append(self._node(node, scope, Input(), succeeds=succeeds and node is real[-1]))
        return None if None in said else "".join(text for text in said if text)

    def _node(self, node: Node, scope: Scope, given: Input, *, succeeds: bool) -> str | None:
        visit = _VISITS.get(node.type)
        if visit is None or scope.ended or self._depth >= _DEEPEST:
            return None
        self._depth += 1
        try:
            if redirects := self._pending.pop(node.id, None):
                return self._with_redirects(node, redirects, scope, given, succeeds)
            return visit(self, node, scope, given, succeeds)
        finally:
            self._depth -= 1

    def _group(self, node: Node, scope: Scope, given: Input, succeeds: bool) -> str | None:
        if node.children and node.children[0].type == "((":
            scope.variables = dict.fromkeys(scope.variables)
            return ""
        return self._statements(node.children, scope, succeeds=succeeds)

    def _subshell(self, node: Node, scope: Scope, given: Input, succeeds: bool) -> str | None:
        return self._statements(node.children, scope.copy(), succeeds=succeeds)

    def _list(self, node: Node, scope: Scope, given: Input, succeeds: bool) -> str | None:
        if len(node.named_children) != 2:
            return None
        left, right = node.named_children
        if node.children[1].type == "&&":
            return self._both(left, right, scope, succeeds)
        failed = scope.copy(sure=_name_of(left, self._source) == "false")
        self._node(left, scope, Input(), succeeds=False)
        self._node(right, failed, Input(), succeeds=False)
        if failed.ended:
            # ``A || exit 1``: who goes on knows that A succeeded; ``A || exit 0`` may be all there was.
            scope.sure = scope.sure and _fails(right, self._source)
        else:
            scope.join(failed)
        return None

    def _both(self, left: Node, right: Node, scope: Scope, succeeds: bool) -> str | None:
        said = self._node(left, scope, Input(), succeeds=succeeds)
        if scope.ended:
            return said
        never = _name_of(left, self._source) == "false"
        if not never and (succeeds or not _may_fail(left, self._source)):
            more = self._node(right, scope, Input(), succeeds=succeeds)
            return None if said is None or more is None else said + more
        without, way = scope.copy(), scope.copy(sure=False)
        self._node(right, way, Input(), succeeds=False)
        scope.one_of([without, way])
        return None

    def _pipeline(self, node: Node, scope: Scope, given: Input, succeeds: bool) -> str | None:
        said: str | None = None
        for part in node.named_children:
            if part.type != "comment":
                said = self._node(part, scope.copy(), given, succeeds=False)
                given = Input(said, said)
        return said

    def _negated(self, node: Node, scope: Scope, given: Input, succeeds: bool) -> str | None:
        for part in node.named_children:
            self._node(part, scope, given, succeeds=False)
        return None

    def _if(self, node: Node, scope: Scope, given: Input, succeeds: bool) -> str | None:
        parts: dict[str, list[Node]] = {"if": [], "then": []}
        others: list[Node] = []
        at = "if"
        for child in node.children:
            at = "then" if child.type == "then" else at
            if child.type in ("elif_clause", "else_clause"):
                others.append(child)
            else:
                parts[at].append(child)
        self._statements(parts["if"], scope, succeeds=False)
        ways = []
        for nodes in [parts["then"], *(other.children for other in others)]:
            ways.append(scope.copy(sure=False))
            self._statements(nodes, ways[-1], succeeds=False)
        scope.one_of([*ways, scope.copy()])
        return None

    def _loop(self, node: Node, scope: Scope, given: Input, succeeds: bool) -> str | None:
        bodies = [child for child in node.named_children if child.type in ("do_group", "compound_statement")]
        tests = [child for child in node.named_children if child not in bodies]
        if node.type == "while_statement":
            self._statements(tests, scope, succeeds=False)
        else:
            for test in tests:
                self._within(test, scope)
                if test.type == "variable_name":
                    scope.variables[text_of(test, self._source)] = None
        way = scope.copy(sure=False)
        for body in bodies:
            self._statements(body.children, way, succeeds=False)
        way.ended = False  # ``break`` ends the loop only
        scope.one_of([way, scope.copy()])
        return None

    def _case(self, node: Node, scope: Scope, given: Input, succeeds: bool) -> str | None:
        ways = [scope.copy()]
        for child in node.named_children:
            if child.type == "case_item":
                ways.append(scope.copy(sure=False))
                patterns = child.children_by_field_name("value")
                self._statements([each for each in child.children if each not in patterns], ways[-1], succeeds=False)
            else:
                self._within(child, scope)
        scope.one_of(ways)
        return None

    def _function(self, node: Node, scope: Scope, given: Input, succeeds: bool) -> str | None:
        if (name := node.child_by_field_name("name")) is not None:
            scope.functions[text_of(name, self._source)] = (node, self._source)
        return ""

    def _assignment(self, node: Node, scope: Scope, given: Input, succeeds: bool) -> str | None:
        for part in [node] if node.type == "variable_assignment" else node.named_children:
            self._within(part, scope)
            if part.type != "variable_assignment":
                continue
            name, value = part.child_by_field_name("name"), part.child_by_field_name("value")
            if name is None:
                continue
            known = self._word(value, scope).text if value is not None else ""
            if any(child.type == "+=" for child in part.children) and known is not None:
                before = scope.variables.get(text_of(name, self._source))
                known = None if before is None else before + known
            scope.variables[text_of(name, self._source)] = known
            scope.searched |= text_of(name, self._source) == "CDPATH"
        return ""

    def _word(self, node: Node, scope: Scope) -> Word:
        return read_word(node, self._source, scope.variables)

    def _test(self, node: Node, scope: Scope, given: Input, succeeds: bool) -> str | None:
        self._within(node, scope)
        return ""

    def _unset(self, node: Node, scope: Scope, given: Input, succeeds: bool) -> str | None:
        words = [self._word(child, scope) for child in node.named_children]
        return self._commands.run([literal("unset"), *words], scope, given)

    def _redirected(self, node: Node, scope: Scope, given: Input, succeeds: bool) -> str | None:
        body = node.child_by_field_name("body")
        redirects = node.children_by_field_name("redirect")
        if body is None or body.type not in _COMPOSED:
            return self._with_redirects(body, redirects, scope, given, succeeds)
        last = body
        while last.type in _COMPOSED:
            last = last.named_children[-1]
        self._pending[last.id] = redirects
        return self._node(body, scope, given, succeeds=succeeds)

    def _with_redirects(
        self, body: Node | None, redirects: Sequence[Node], scope: Scope, given: Input, succeeds: bool
    ) -> str | None:
        if body is not None and body.type == "command":
            return self._simple(body, redirects, scope, given, succeeds)
        streams = self._streams(redirects, scope)
        said: str | None = ""
        if body is not None:
            said = self._node(body, scope, streams.given or given, succeeds=succeeds)
        return self._put(said, streams, scope, succeeds)

    def _command(self, node: Node, scope: Scope, given: Input, succeeds: bool) -> str | None:
        return self._simple(node, (), scope, given, succeeds)

    def _simple(self, node: Node, redirects: Sequence[Node], scope: Scope, given: Input, succeeds: bool) -> str | None:
        self._found.commands += 1
        if self._found.commands > _MOST_COMMANDS:
            return None
        words: list[Word] = []
        own: list[Node] = []
        for child in node.children:
            if child.type.endswith("redirect"):
                own.append(child)
            elif child.type == "variable_assignment":
                self._within(child, scope)  # for this command alone
                scope.searched |= self._source.startswith(b"CDPATH=", child.start_byte)
            elif child.type == "number" and self._source[child.end_byte : child.end_byte + 1] in (b"<", b">"):
                continue  # ``0<file``: a descriptor
            elif child.is_named:
                self._within(child, scope)
                words.append(self._word(child, scope))
        streams = self._streams([*own, *redirects], scope)
        said = self._commands.run(words + streams.words, scope, streams.given or given)
        return self._put(said, streams, scope, succeeds)

    def _streams(self, redirects: Sequence[Node], scope: Scope) -> Redirects:
        streams = read_redirects(redirects, self._source, scope.variables)
        for node in streams.substitutions:
            self._within(node, scope)
        scope.files(self._found, streams.inputs, streams.outputs)
        return streams

    def _put(self, said: str | None, streams: Redirects, scope: Scope, succeeds: bool) -> str | None:
        """What a command put out goes to where its streams lead, and what stands behind a here-document is read."""
        if streams.stdout:
            scope.text(self._found, streams.stdout[-1], said)
            said = ""
        for node in streams.behind:
            if node.type == "pipeline":
                said = self._pipeline(node, scope, Input(said, said), succeeds)
            else:
                said = self._node(node, scope, Input(), succeeds=succeeds)
        return said

    def _substitution(self, node: Node, scope: Scope, given: Input, succeeds: bool) -> str | None:
        """``$(…)``, `` `…` ``, ``<(…)``: a shell of its own."""
        own = scope.copy()
        redirects = [child for child in node.named_children if child.type.endswith("redirect")]
        self._streams(redirects, own)
        return self._statements([child for child in node.children if child not in redirects], own, succeeds=True)

    def _within(self, node: Node, scope: Scope) -> None:
        """The commands within a word."""
        source = self._source[node.start_byte : node.end_byte]
        if b"(" not in source and b"`" not in source:
            return
        waiting = [node]
        while waiting:
            each = waiting.pop()
            if each.type in ("command_substitution", "process_substitution"):
                self._node(each, scope, Input(), succeeds=False)
            else:
                waiting += reversed(each.named_children)


_VISITS: dict[str, Callable[[_Walk, Node, Scope, Input, bool], str | None]] = {
    "compound_statement": _Walk._group,
    "do_group": _Walk._group,
    "subshell": _Walk._subshell,
    "list": _Walk._list,
    "pipeline": _Walk._pipeline,
    "negated_command": _Walk._negated,
    "if_statement": _Walk._if,
    "while_statement": _Walk._loop,
    "for_statement": _Walk._loop,
    "c_style_for_statement": _Walk._loop,
    "case_statement": _Walk._case,
    "function_definition": _Walk._function,
    "variable_assignment": _Walk._assignment,
    "variable_assignments": _Walk._assignment,
    "declaration_command": _Walk._assignment,
    "redirected_statement": _Walk._redirected,
    "command_substitution": _Walk._substitution,
    "process_substitution": _Walk._substitution,
    "test_command": _Walk._test,
    "unset_command": _Walk._unset,
    "command": _Walk._command,
}


def _sound(root: Node, source: bytes) -> list[Node]:
    """The statements before the first fault, as far as a line's end stands between: the shell runs those."""
    kept: list[Node] = []
    waiting: list[Node] = []
    for child in root.children:
        if waiting and b"\n" in source[waiting[-1].end_byte : child.start_byte]:
            kept += waiting
            waiting = []
        if _is_faulty(child):
            break
        waiting.append(child)
    else:
        return kept + waiting
    return kept


def _is_faulty(node: Node) -> bool:
    """Whether a statement has a fault. One form that the grammar does not know can be read."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each.is_missing or (each.type == "ERROR" and not is_herestring(each)):
            return True
        if each.has_error:
            waiting += each.children
    return False


def _bare(node: Node) -> Node:
    """A statement without its redirections."""
    while node.type == "redirected_statement" and (body := node.child_by_field_name("body")) is not None:
        node = body
    return node


def _name_of(node: Node, source: bytes) -> str:
    """The program that a node begins with, empty when it is no simple command."""
    node = _bare(node)
    name = node.child_by_field_name("name") if node.type == "command" else None
    return text_of(name, source) if name is not None else ""


def _may_fail(node: Node, source: bytes) -> bool:
    """Whether a command's failure is one of its ordinary answers."""
    node = _bare(node)
    if node.type in ("test_command", "negated_command"):
        return True
    if node.type == "pipeline":
        return _may_fail(node.named_children[-1], source)
    if node.type in _NESTS:
        return any(_may_fail(part, source) for part in node.named_children)
    return _name_of(node, source) in _ASKS


def _fails(node: Node, source: bytes) -> bool:
    """Whether the right side of ``||`` ends the line as a failure: ``exit``, ``exit 1``, ``{ echo no; exit 2; }``."""
    node = last = _bare(node)
    while last.type in ("compound_statement", "subshell", "list") and last.named_children:
        last = _bare(last.named_children[-1])
    words = text_of(last, source).split()
    if words in (["exit"], ["return"]):
        return last is node
    return len(words) > 1 and words[0] in ("exit", "return") and words[1].isdigit() and words[1] != "0"
