"""For a rule an action at which it speaks, and a near one at which it does not: both tried on the rule itself."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any

from sidecars.observer.context import Context
from sidecars.observer.judge.rules import RulesJudge
from sidecars.observer.observe.events import EventReader
from sidecars.tuning.evaluate import payload_of
from sidecars.type_reader.sidecar_type import Rule
from witness.events.effects import Effects

# How a function and a comment look, by the end of a file's name.
_FUNCTIONS = {
    ".py": "def {name}():\n{body}    return 1\n", ".pyi": "def {name}():\n{body}    return 1\n",
    ".rb": "def {name}\n{body}  1\nend\n", ".go": "func {name}() int {{\n{body}\treturn 1\n}}\n",
    ".rs": "fn {name}() -> i32 {{\n{body}    1\n}}\n",
}  # fmt: skip
_BRACED = "function {name}() {{\n{body}  return 1;\n}}\n"
_COMMENTS = ("# {}", "// {}", "{}", "/* {} */")
# What a class of characters is sampled by, the most readable first.
_SIGNS = "ax1_ -.A/"
_LONGEST = 4_000
_MANIFEST = '{"dependencies": {"left-pad": "1.3.0"}}'
_CLOSING = {"(": ")", "[": "]", "{": "}"}

Action = Mapping[str, Any]


def speaks_at(rule: Rule, action: Action) -> bool:
    """Whether a rule says anything of an action, spelled as an event of a case."""
    effects = Effects(changed=tuple(action["changed"])) if "changed" in action else None
    seen = EventReader("/project").read(payload_of(action), "e", effects=effects)
    return seen is not None and any(each.signal for each in RulesJudge((rule,), Context()).judge([seen]))


def sampled(rule: Rule) -> tuple[Action, Action] | None:
    """(an action at which the rule speaks, a near one at which it does not); None where none of either is found."""
    breach = next((each for each in _breaches(rule) if speaks_at(rule, each)), None)
    if breach is None:
        return None
    near = next((each for each in _near(breach) if not speaks_at(rule, each)), None)
    return None if near is None else (breach, near)


def _near(breach: Action) -> Iterator[Action]:
    if command := breach.get("command"):
        yield {"tool": "Bash", "command": f"echo {shlex.quote(command)}"}
        yield {"tool": "Bash", "command": f"grep -rn -e {shlex.quote(command)} docs"}
        return
    path, text = breach["file_path"], breach.get("content", breach.get("new_string", ""))
    yield {"tool": "Edit", "file_path": path, "old_string": text, "new_string": f"{text}\n"}
    yield {"tool": "Write", "file_path": "docs/notes.md", "content": text}
    yield {"tool": "Read", "file_path": path}


def _breaches(rule: Rule) -> Iterator[Action]:
    answers = list(_matching(rule.output)) if rule.output else [""]
    shown = [f"echo x {each}a" for each in _matching(rule.command)] if rule.command else []
    for command in (*(each for pattern in rule.runs for each in _commands(pattern)), *shown):
        for answer in answers:
            yield {"tool": "Bash", "command": command, **({"response": f"{answer}\n"} if answer else {})}
        if rule.writes:
            yield from ({"tool": "Bash", "command": command, "changed": [path]} for path in _paths(rule))
    if rule.adds_dependency:
        yield {"tool": "Edit", "file_path": "package.json", "old_string": "{}", "new_string": _MANIFEST}
    texts = list(_texts(rule))
    for path in _paths(rule):
        for make in texts:
            text = make(path) if callable(make) else make
            if rule.creates or not rule.changes:
                yield {"tool": "Write", "file_path": path, "content": text}
            yield {"tool": "Edit", "file_path": path, "old_string": "before", "new_string": text}


def _commands(pattern: str) -> Iterator[str]:
    """Commands that a pattern may mean, the plainest first."""
    plain, needed = [], []
    for word in shlex.split(pattern):
        if word.startswith("!") or word.startswith("by:"):
            continue
        first = word.split("|")[0]
        if first.startswith("-"):
            needed.append(first)
        elif first.startswith("@"):
            needed.append(first[1:].replace("*", "x"))
        elif first == "+":
            needed.append("thing")
        else:
            plain.append(first.replace("*", ""))
    for program in plain[:1] if plain[0] else ["git commit", "git push", "npm install", "pip install", "make"]:
        command = " ".join([program, *plain[1:], *(shlex.quote(each) if " " in each else each for each in needed)])
        yield command
        yield f"{command} -m 'a change'"


def _paths(rule: Rule) -> Iterator[str]:
    globs = rule.writes or rule.creates or rule.changes or rule.touches
    names = [_of_glob(glob) for glob in globs if not glob.startswith("@")] or ["src/a.py", "src/a.ts"]
    if any(name.endswith("x") and "." not in name for name in names):
        names += ["src/a.py", "src/a.ts"]
    for name in names:
        yield name
        for glob in rule.within:
            yield f"{_of_glob(glob).removesuffix('x').removesuffix('/')}/{PurePosixPath(name).name}".lstrip("/")


def _of_glob(glob: str) -> str:
    name = glob.removeprefix("**/").removeprefix("/")
    for mark, sample in (("**", "x"), ("[A-Z_]", "B"), ("[A-Z-]", "B"), ("*", "a"), ("?", "a")):
        name = name.replace(mark, sample)
    return f"{name}x" if name.endswith("/") else name


def _texts(rule: Rule) -> Iterator[Any]:
    """Texts that a rule may mean, or functions that make one for a path."""
    if rule.function_over or rule.named:
        names = list(_matching(rule.named)) or ["long"]
        for name in names:
            yield lambda path, name=name: _function(path, name, rule.function_over)
    for pattern in filter(None, (rule.code, rule.text)):
        yield from _matching(pattern)
        yield from (f"x = 1\n{text}\n" for text in _matching(pattern))
    for text in _matching(rule.comments) if rule.comments else ():
        yield from (form.format(text) + "\n" for form in _COMMENTS)
    if rule.lines_over >= 0:
        yield "x = 1\n" * (rule.lines_over + 1)
    yield "x\n"


def _function(path: str, name: str, lines: int) -> str:
    form = _FUNCTIONS.get(PurePosixPath(path).suffix, _BRACED)
    return form.format(name=name, body="    step()\n" * lines)


def _matching(pattern: str) -> Iterator[str]:
    """A few texts that an expression finds, as far as it can be seen from its form; short and readable ones first."""
    parser = import_module("re._parser")
    try:
        tree = parser.parse(pattern)
    except Exception:  # noqa: BLE001 - what cannot be read has no sample
        return
    for extra in (0, 1):
        text = _text(tree, extra)
        yield text
        if missing := [closing for sign, closing in _CLOSING.items() if text.count(sign) > text.count(closing)]:
            yield text + "".join(missing)


def _text(tree: Iterable[tuple[Any, Any]], extra: int) -> str:
    """What the parts of a parsed expression match, optional ones taken ``extra`` times."""
    found = ""
    for kind, value in tree:
        name = str(kind)
        if name == "LITERAL":
            found += chr(value)
        elif name == "NOT_LITERAL":
            found += next(sign for sign in _SIGNS if ord(sign) != value)
        elif name == "ANY":
            found += "x"
        elif name == "IN":
            found += _sign(value)
        elif name == "BRANCH":
            found += _text(value[1][0], extra)
        elif name == "SUBPATTERN":
            found += _text(value[-1], extra)
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, inner = value
            found += _text(inner, 0) * min(max(least, extra), int(most), _LONGEST)
        found = found[:_LONGEST]
    return found


def _sign(members: list[tuple[Any, Any]]) -> str:
    negated = str(members[0][0]) == "NEGATE"
    for sign in _SIGNS + "".join(chr(value) for kind, value in members if str(kind) == "LITERAL"):
        if any(_is_member(sign, each) for each in members[negated:]) is not negated:
            return sign
    kind, value = members[-1]
    return chr(value[0]) if str(kind) == "RANGE" else " "


def _is_member(sign: str, member: tuple[Any, Any]) -> bool:
    kind, value = str(member[0]), member[1]
    if kind == "LITERAL":
        return ord(sign) == int(value)
    if kind == "RANGE":
        return bool(value[0] <= ord(sign) <= value[1])
    told = str(value)
    tests: dict[str, bool] = {"WORD": sign.isalnum() or sign == "_", "SPACE": sign.isspace(), "DIGIT": sign.isdigit()}
    test = tests[told.rpartition("_")[2]]
    return test is not ("_NOT_" in told)
