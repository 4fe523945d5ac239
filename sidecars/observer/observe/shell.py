"""Which files a shell command names, and which of them it writes.

Nothing is expanded or run. What is only said is not named: the words of ``echo``, a search pattern, a comment, the text
of a here-document, a commit message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

# A command longer than this is a program in disguise; its beginning tells enough.
_LONGEST = 20_000
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)([A-Za-z_]\w*)\1([^\n]*)\n(.*?)(?:^\s*\2\s*$|\Z)", re.DOTALL | re.MULTILINE)
_SAYS = frozenset(["echo", "printf", "true", "false", ":", "export", "alias"])
# The first bare argument of these is a pattern or a program, not a file.
_PATTERN_FIRST = frozenset(["grep", "egrep", "fgrep", "rg", "ag", "ack", "sed", "awk", "gawk", "jq", "yq", "perl"])
_WRITES_ALL = frozenset(
    ["rm", "rmdir", "unlink", "shred", "touch", "truncate", "mkdir", "chmod", "chown", "tee", "patch", "mv"]
)
_WRITES_LAST = frozenset(["cp", "ln", "install", "rsync"])
_IN_PLACE = frozenset(["sed", "perl", "ruff", "black", "prettier", "gofmt", "isort"])
_IN_PLACE_FLAG = re.compile(r"(?:-i.*|-pi.*|--in-place.*|--write|-w|--fix.*)")
_INTERPRETERS = re.compile(r"(?:python[\d.]*|node|ruby|perl|bash|sh|zsh)")
_PREFIXES = frozenset(["sudo", "env", "command", "nohup", "time", "exec", "nice", "timeout", "xargs", "builtin"])
# The shell's own words that stand before a command.
_WORDS_BEFORE = frozenset(["do", "then", "else", "elif", "if", "while", "until"])
# Flags of those that take a value of their own.
_PREFIX_FLAGS = frozenset(["-u", "-g", "-n", "-s", "-k", "-I", "-P", "-L", "-S"])
_MESSAGE_FLAGS = frozenset(
    ["-m", "--message", "-am", "--title", "--body", "-b", "-t", "--author", "--grep", "-S", "-G"]
)
_QUOTED_PATH = re.compile(r"""['"]([^'"\s]*[./][^'"\s]*)['"]""")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=(.*)", re.DOTALL)
# A command within a command, also within double quotes; what stands in single quotes is text.
_SINGLE_QUOTED = re.compile(r"'[^']*'")
_SUBSTITUTION = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
_OPERATORS = frozenset([";", "&", "&&", "||", "|", "|&", "(", ")", "{", "}", "\n", ";;", "!"])
_REDIRECTS = frozenset([">", ">>", ">|", "&>", "&>>", "<>"])


@dataclass(slots=True)
class NamedFiles:
    """Files that a command names, as it spells them, each joined to the folder it had changed to.

    Args:
        read: those that it opens or passes on.
        written: those that it changes, makes or removes.
        text: the text of its here-documents, which goes into files more often than not.
    """

    read: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    text: str = ""


def _tokens(command: str) -> list[str]:
    import shlex

    lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # an open quote: a cut or wrong command, read as plainly as can be
        return command.split()


def _without_comments(command: str) -> str:
    """A comment reaches to the end of its line, and may hold what looks like an open quote."""
    kept: list[str] = []
    quote, comment, before = "", False, "\n"
    for sign in command:
        if comment:
            comment = sign != "\n"
        elif quote:
            quote = "" if sign == quote and before != "\\" else quote
        elif sign in "'\"" and before != "\\":
            quote = sign
        elif sign == "#" and before in " \t\n;&|(":
            comment = True
        if not comment:
            kept.append(sign)
        before = sign
    return "".join(kept)


def _simple_commands(tokens: list[str]) -> Iterator[list[str]]:
    words: list[str] = []
    for token in tokens:
        if token in _OPERATORS or (token and set(token) <= set(";&|()\n")):
            if words:
                yield words
            words = []
        else:
            words.append(token)
    if words:
        yield words


def _without_prefixes(words: list[str]) -> list[str]:
    """The command itself, without ``sudo``, ``timeout 5s``, ``VARIABLE=value`` and their like in front."""
    while words and (words[0] in _PREFIXES | _WORDS_BEFORE or _ASSIGNMENT.fullmatch(words[0])):
        words = words[1:]
        while words and words[0].startswith("-"):
            words = words[2 if words[0] in _PREFIX_FLAGS else 1 :]
        if words and re.fullmatch(r"\d+[smhd]?", words[0]):
            words = words[1:]
    return words


def _pathlike(word: str) -> bool:
    return bool(word) and not word.startswith("-") and "://" not in word and "\n" not in word and len(word) < 1024


class _Reader:
    def __init__(self) -> None:
        self.found = NamedFiles()
        self.folder = ""

    def _join(self, word: str) -> str:
        if word.startswith(("/", "~")) or not self.folder:
            return word
        return f"{self.folder}/{word}"

    def opened(self, word: str) -> None:
        if _pathlike(word):
            self.found.read.append(self._join(word))

    def wrote(self, word: str) -> None:
        if _pathlike(word) and word not in ("/dev/null", "/dev/stdout", "/dev/stderr"):
            self.found.written.append(self._join(word))

    def command(self, words: list[str]) -> None:
        words = self._redirections(words)
        assigned = [found[1] for word in words if (found := _ASSIGNMENT.fullmatch(word))]
        if len(assigned) == len(words):
            for value in assigned:
                self.opened(value)  # f=src/a.py, to be used further on
            return
        words = _without_prefixes(words)
        if not words:
            return
        program = words[0].rsplit("/", 1)[-1]
        if program == "cd" and len(words) > 1:
            self.folder = self._join(words[1])
        elif program == "git":
            self._git(words[1:])
        elif program not in _SAYS:
            self._arguments(program, words[1:])
            if "/" in words[0] and not words[0].startswith("/"):
                self.opened(words[0])  # ./script of the project itself

    def _redirections(self, words: list[str]) -> list[str]:
        rest: list[str] = []
        waiting = ""
        for word in words:
            if waiting:
                if waiting in _REDIRECTS:
                    self.wrote(word)
                elif waiting == "<":
                    self.opened(word)
                waiting = ""
            elif word and set(word) <= set("<>&|") and ("<" in word or ">" in word):
                waiting = word
                if rest and rest[-1].isdigit():
                    rest.pop()
            else:
                rest.append(word)
        return rest

    def _arguments(self, program: str, arguments: list[str]) -> None:
        if _INTERPRETERS.fullmatch(program):
            arguments = self._inline_code(arguments)
        bare = self._bare(program, arguments)
        if program in _PATTERN_FIRST and bare:
            bare = bare[1:]
        in_place = program in _IN_PLACE and any(_IN_PLACE_FLAG.fullmatch(word) for word in arguments)
        files, targets = bare, []
        if program in _WRITES_ALL or in_place:
            files, targets = [], bare
        elif program in _WRITES_LAST and len(bare) > 1:
            files, targets = bare[:-1], bare[-1:]
        elif program == "dd":
            files = [word[3:] for word in bare if word.startswith("if=")]
            targets = [word[3:] for word in bare if word.startswith("of=")]
        for word in files:
            self.opened(word)
        for word in targets:
            self.wrote(word)

    def _bare(self, program: str, arguments: list[str]) -> list[str]:
        """The arguments that are no flags and no flag's value."""
        bare: list[str] = []
        skip = False
        for word in arguments:
            if skip:
                skip = False
            elif word in ("-e", "-f", "--regexp") and program in _PATTERN_FIRST:
                bare.append("")  # the pattern came by its flag
                skip = True
            elif word in _MESSAGE_FLAGS and program in ("gh", "bd", "gt"):
                skip = True
            elif word.startswith("--") and "=" in word:
                self.opened(word.partition("=")[2])
            elif not word.startswith("-"):
                bare.append(word)
        return bare

    def _inline_code(self, arguments: list[str]) -> list[str]:
        for index, word in enumerate(arguments):
            if word in ("-c", "-e", "-p", "--eval") and index + 1 < len(arguments):
                for path in _QUOTED_PATH.findall(arguments[index + 1]):
                    self.opened(path)
                return arguments[:index] + arguments[index + 2 :]
        return arguments

    def _git(self, arguments: list[str]) -> None:
        while arguments and arguments[0].startswith("-"):
            arguments = arguments[2 if arguments[0] == "-C" else 1 :]
        if not arguments:
            return
        verb, rest = arguments[0], arguments[1:]
        skip = False
        for word in rest:
            if skip:
                skip = False
            elif word in _MESSAGE_FLAGS:
                skip = True
            elif verb in ("rm", "mv", "restore", "apply") or (verb == "checkout" and "--" in rest):
                self.wrote(word)
            elif verb in ("show", "cat-file") and ":" in word:
                self.opened(word.partition(":")[2])
            elif verb not in ("commit", "branch", "push", "pull", "fetch", "clone", "tag", "grep"):
                self.opened(word)


def named_files(command: str) -> NamedFiles:
    """The files that ``command`` names.

    Args:
        command: a shell command line, or several.
    """
    reader = _Reader()
    command = command[:_LONGEST]
    reader.found.text = "".join(found[4] for found in _HEREDOC.finditer(command))
    text = _without_comments(_HEREDOC.sub(r"\3\n", command).replace("\\\n", " "))
    inner = [first or second for first, second in _SUBSTITUTION.findall(_SINGLE_QUOTED.sub("", text))]
    for part in [text, *inner]:
        for words in _simple_commands(_tokens(part)):
            reader.command(words)
    return reader.found
