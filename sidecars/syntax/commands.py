"""One command of a shell line: what the shell's own commands do, and what a program does by the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from sidecars.syntax.arguments import Use, use_of
from sidecars.syntax.python_effects import effects_of
from sidecars.syntax.scope import Found, Scope
from sidecars.syntax.streams import Input
from sidecars.syntax.words import UNKNOWN, Word, literal
from witness.judging.observation import Ran

_DEEPEST = 12
_SHELLS = frozenset(["bash", "sh", "zsh", "dash", "ksh"])
# Programs of which nothing is told but what they run, as far as a line may begin with them.
_CARRIERS = frozenset(
    """
    sudo doas env nohup setsid chronic unbuffer fakeroot time gtime nice ionice timeout gtimeout stdbuf chrt taskset
    xvfb-run caffeinate flock exec command builtin coproc xargs gxargs npx bunx uvx uv poetry pipenv pdm rye bundle
    conda mamba micromamba direnv pnpm npm yarn pipx
    """.split()  # noqa: SIM905 - a list of words
)
_PYTHONS = frozenset(["python", "python2", "python3", "pypy", "pypy3", "py"])
# The shell's own commands: no program runs.
_BUILTINS = frozenset(
    """
    : . [ alias bg bind break builtin caller cd chdir command compgen complete continue declare dirs disown echo enable
    eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd
    read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask unalias
    unset wait
    """.split()  # noqa: SIM905
)
# Words that begin no command.
_RESERVED = frozenset("if then else elif fi for while until do done case esac select function { } ! [[ ]]".split())  # noqa: SIM905


class NotShellError(Exception):
    """The grammar took for a command what the shell refuses."""


class Shell(Protocol):
    """What reads whole lines."""

    def line(self, line: str, scope: Scope) -> None:
        """Read a text of the shell in ``scope``."""

    def call(self, name: str, scope: Scope, given: Input) -> str | None:
        """Run a function; what it puts out."""


class Commands:
    """Runs commands by their words, in thought. Each answers what it puts out, None when that is not known.

    Args:
        found: takes what they do.
        shell: reads the lines that they carry.
    """

    def __init__(self, found: Found, shell: Shell) -> None:
        self._found = found
        self._shell = shell
        # The wrappers and runners of the command that is being read.
        self._by: tuple[str, ...] = ()

    def run(self, words: list[Word], scope: Scope, given: Input, depth: int = 0) -> str | None:
        """Run one command.

        Raises:
            NotShellError: the line is no shell.
        """
        if not words or depth > _DEEPEST:
            return None if words else ""
        name = words[0].text
        if not name:
            scope.move(None)  # it may be anything, a change of folder too
            return None
        if name in _RESERVED and not words[0].quoted:
            raise NotShellError
        if name in scope.functions:
            return self._shell.call(name, scope, given)
        if name == "builtin" and len(words) > 1:
            return self.run(words[1:], scope, given, depth + 1)
        if special := _SPECIAL.get(name):
            return special(self, words[1:], scope)
        return self._program(name.rpartition("/")[2], words[1:], scope, given, depth)

    def _program(self, name: str, words: list[Word], scope: Scope, given: Input, depth: int) -> str | None:
        if scope.sure:
            whole = all(word.text is not None for word in words)
            told = (name, *(word.text or word.head for word in words))
            self._found.ran.append(Ran(told, self._by, given.text or "", whole))
        use = use_of(name, words)
        inner = scope.in_folder(use.folder) if use.folder is not None else replace(scope)
        if use.away:
            inner.folder = None
        inner.files(self._found, use.opened, use.written)
        if name in (".", "source"):
            scope.variables = dict.fromkeys(scope.variables)
        if use.takes_code and name in _SHELLS and given.code is not None:
            use.line = literal(given.code)
        if name in _PYTHONS and (code := given.code if use.takes_code else use.code):
            effects = effects_of(code)
            inner.files(self._found, map(literal, effects.opened), map(literal, effects.written))
            for path, text in effects.texts:
                inner.text(self._found, literal(path), text)
        if use.line is not None:
            own = inner.shell()
            if use.line.text is not None:
                self._shell.line(use.line.text, own)
            else:
                self._first_of(use.line, own)
            return None
        if use.command is not None:
            outer, self._by = self._by, (*self._by, name)
            try:
                return self._carried(name, use, inner, given, depth)
            finally:
                self._by = outer
        if scope.sure and name not in _BUILTINS:
            self._found.tools.append(name)
        return self._passed_on(name, words, use, inner, given)

    def _first_of(self, line: Word, scope: Scope) -> None:
        """A line that is known in part: its first program, if that is all there."""
        name, blank, _ = line.head.partition(" ")
        if blank and scope.sure and name.replace("-", "").isalnum() and name not in _BUILTINS | _CARRIERS | _RESERVED:
            self._found.tools.append(name)

    def _carried(self, name: str, use: Use, scope: Scope, given: Input, depth: int) -> str | None:
        command = list(use.command or ())
        own = scope.shell()
        own.sure = scope.sure and not use.unsure
        if name in ("xargs", "gxargs"):
            given = Input()
            if use.placeholder:
                sign = use.placeholder
                command = [Word(None) if sign in (word.text or word.head) else word for word in command]
            else:
                command.append(UNKNOWN)
        elif use.module:
            return self._module(command, own, given, depth)
        elif name in ("npx", "bunx", "uvx", "pipx", "pnpm", "npm", "yarn") and command[0].text:
            version = command[0].text.find("@", 1)  # prettier@3, @scope/name@3
            if version > 0:
                command[0] = literal(command[0].text[:version])
        return self.run(command, own, given, depth + 1)

    def _module(self, command: list[Word], scope: Scope, given: Input, depth: int) -> str | None:
        """``python -m``: some modules are programs that have the same name."""
        module = command[0].text
        if module is None:
            return None
        use = use_of(f"python/{module}", command[1:])
        scope.files(self._found, use.opened, use.written)
        if module in _MODULES:
            return self.run(command, scope, given, depth + 1)
        return None

    def _passed_on(self, name: str, words: list[Word], use: Use, scope: Scope, given: Input) -> str | None:
        """What a program puts out, when it only passes on what it was given."""
        if name == "cat" and not use.opened and all(word.is_flag or word.text == "-" for word in words):
            return given.text
        if name == "tee":
            for word in use.written:
                scope.text(self._found, word, given.text)
            return given.text
        return None

    def _cd(self, words: list[Word], scope: Scope) -> str | None:
        words = [word for word in words if not word.is_flag]
        if not words:
            scope.move("~")
        elif words[0].text == "-":
            scope.move(scope.before)
        else:
            scope.move(scope.folder_of(words[0]))
        return ""

    def _pushd(self, words: list[Word], scope: Scope) -> str | None:
        words = [word for word in words if not word.is_flag]
        if not words or words[0].head.startswith("+"):
            scope.stack = ()
            scope.move(None)
        else:
            scope.stack = (*scope.stack, scope.folder)
            scope.move(scope.folder_of(words[0]))
        return ""

    def _popd(self, words: list[Word], scope: Scope) -> str | None:
        if words or not scope.stack:
            scope.stack = ()
            scope.move(None)
        else:
            *stack, folder = scope.stack
            scope.stack = tuple(stack)
            scope.move(folder)
        return ""

    def _echo(self, words: list[Word], scope: Scope) -> str | None:
        end = "\n"
        while words and words[0].text and words[0].is_flag and set(words[0].text[1:]) <= set("neE"):
            end = "" if "n" in words[0].text else end
            words = words[1:]
        return " ".join(word.spelled for word in words) + end

    def _printf(self, words: list[Word], scope: Scope) -> str | None:
        if not words or words[0].text is None or words[0].is_flag:
            return self._set(words, scope) and None
        pattern = words[0].text.replace("\\n", "\n").replace("\\t", "\t").replace("%b", "%s")
        values = [word.spelled for word in words[1:]]
        pieces = pattern.split("%s")
        if len(pieces) == 1 or not values:
            return pattern.replace("%s", "").replace("%%", "%")
        said = ""
        while values:
            for piece in pieces[:-1]:
                said += piece + (values.pop(0) if values else "")
            said += pieces[-1]
        return said.replace("%%", "%")

    def _eval(self, words: list[Word], scope: Scope) -> str | None:
        if all(word.text is not None for word in words):
            self._shell.line(" ".join(word.text or "" for word in words), scope)
        else:
            scope.move(None)
            scope.variables = dict.fromkeys(scope.variables)
        return None

    def _exec(self, words: list[Word], scope: Scope) -> str | None:
        """``exec`` with a command ends the shell; with redirections alone it only sets them."""
        if not words:
            return ""
        own = scope.shell()
        if (command := use_of("exec", words).command) is not None:
            self.run(command, own, Input(), 1)
        scope.ended = True
        return None

    def _end(self, words: list[Word], scope: Scope) -> str | None:
        scope.ended = True
        return None

    def _quiet(self, words: list[Word], scope: Scope) -> str | None:
        return ""

    def _set(self, words: list[Word], scope: Scope) -> str | None:
        """``read``, ``unset`` and their like: the variables that they name are not known any more."""
        for word in words:
            if word.text is None:
                scope.functions = dict.fromkeys(scope.functions)
                scope.variables = dict.fromkeys(scope.variables)
            else:
                scope.variables[word.text.partition("=")[0].partition("[")[0]] = None
        return ""

    def _unset(self, words: list[Word], scope: Scope) -> str | None:
        for word in words:
            scope.functions.pop(word.text or "", None)
        return self._set(words, scope)


# Modules of Python that are programs of the same name.
_MODULES = frozenset(["pytest", "pip", "black", "ruff", "isort", "mypy", "flake8", "coverage", "pylint", "uv"])
_SPECIAL: dict[str, Callable[[Commands, list[Word], Scope], str | None]] = {
    "cd": Commands._cd,
    "chdir": Commands._cd,
    "pushd": Commands._pushd,
    "popd": Commands._popd,
    "echo": Commands._echo,
    "printf": Commands._printf,
    "eval": Commands._eval,
    "exec": Commands._exec,
    "exit": Commands._end,
    "return": Commands._end,
    "break": Commands._end,
    "continue": Commands._end,
    "unset": Commands._unset,
    **dict.fromkeys(["read", "mapfile", "readarray", "getopts", "let"], Commands._set),
    **dict.fromkeys([":", "true", "alias", "set", "trap", "shift", "wait"], Commands._quiet),
}
