"""What stands in backquotes → the rules that find it: a command, a flag, a file, a directive, a name in code."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from sidecars.definition.sidecar_type import Confidence, Rule
from sidecars.syntax.programs import grammar

_WRITERS = ("Edit", "Write", "NotebookEdit")
_BY_HAND = re.compile(r"\bby\s+hand\b|\bmanual(?:ly)?\b|\bhand[- ]edit|\bdirectly\b|\bgenerated\b|\byourself\b", re.I)
_CHANGE = re.compile(r"\b(?:edit|chang|touch|modif|alter|writ|hand-edit|patch|overwrit|updat|rewrit|renam|delet|remov)\w*", re.I)
_READ = re.compile(r"\b(?:read|open|look|print|cat|show|access)\w*\b", re.I)
_COMMIT = re.compile(r"\b(?:commit|check\w*\s+in|stage|git\s+add|version\s+control|push)\w*\b", re.I)
_RUN = re.compile(r"\b(?:run|running|execute|invoke|call|command|use|through|with|via|type|start|launch)\w*\b", re.I)
_EXISTING = re.compile(r"\b(?:existing|old|applied|published|released|merged|committed)\b", re.I)
_DIRECTIVE = re.compile(
    r"(?:#|//|/\*|--|<!--)\s*\S.*|@ts-[\w-]+|eslint-[\w/-]+|(?:tslint|pylint|rubocop|istanbul|c8|v8|prettier|biome|coverage|mypy|pyright|ruff|stylelint|nolint|nosec|noinspection|NOSONAR|webpackIgnore|phpcs|swiftlint|shellcheck)\b[\w:/ -]*"
)
_PATH = re.compile(r"~?[\w.@*-]*/[\w./@*{}-]*|\.[\w.-]+|\*?[\w.-]*\.(?:py|pyi|js|jsx|mjs|ts|tsx|json|lock|toml|ya?ml|md|sql|css|scss|html|go|rs|rb|java|kt|sh|env|txt|cfg|ini|sum|mod|xml|proto|graphql|snap|pem|key|db|sqlite|csv|log|ipynb)|Makefile|Dockerfile|CHANGELOG|Gemfile|go\.mod")
_NAME = re.compile(r"@?[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_$][\w$]*)*(?:!|\(\.{0,3}\))?|\.[A-Za-z_]\w*\(\)?\)?")
_FLAG = re.compile(r"--[\w-]+|-\w")
# Words of languages: they stand in code as they are.
_KEYWORDS = frozenset(
    "var let goto with lambda global nonlocal eval exec del yield async await unsafe defer panic final static enum namespace do while switch default "
    "any null nil undefined None typeof instanceof delete void interface protected friend extern register volatile inline alert debugger".split()  # noqa: SIM905
)
# Where a short flag belongs, by what the sentence speaks of.
_SHORT_FLAGS = (
    (re.compile(r"snapshot", re.I), "jest|vitest|ava|react-scripts|playwright|npm|pnpm|yarn|bun"),
    (re.compile(r"\bcommit|hook", re.I), "git commit"),
    (re.compile(r"\bpush", re.I), "git push"),
    (re.compile(r"\badd\b|\bstag", re.I), "git add"),
    (re.compile(r"\brm\b|\bremov|\bdelet", re.I), "rm"),
)
_SAME_FLAGS = (("-f", "--force"), ("-A", "--all"), ("-n", "--no-verify"), ("-r", "-R", "--recursive"), ("-i", "--interactive"))
_EDITORS = "sed|gsed|perl|awk|ed|tee|cat|echo|printf|patch|ex|vim|python*|node|ruby|cp|mv|truncate"


@dataclass(frozen=True, slots=True)
class Found:
    """What a span means: a name for its rules, the rules, and how a breach is said."""

    name: str
    rules: tuple[Rule, ...]
    what: str
    is_path: bool = False


def _rule(**given: object) -> Rule:
    return Rule(name="x", say="x", confidence=Confidence.HIGH, shipped=True, **given)  # type: ignore[arg-type]


def rules_of_span(inner: str, sentence: str, start: int, end: int) -> Found | None:
    """The rules by which a span's thing is found; None when it is not known what it is.

    Args:
        inner: the span's text.
        sentence: it stands in.
        start, end: where, backquotes included.
    """
    text = inner.strip().removeprefix("$ ").rstrip(",;")
    shown = text.replace("{", "(").replace("}", ")")
    name = re.sub(r"\W+", "-", text).strip("-").lower() or "sign"
    if found := _command(text, sentence):
        return Found(name, found, "ran")
    if _FLAG.fullmatch(text):
        flags = _flags(text)
        if text.startswith("--"):
            return Found(name, (_rule(runs=(f"* {flags}",)),), f"has the flag {shown}")
        program = next((each for expression, each in _SHORT_FLAGS if expression.search(sentence)), None)
        return Found(name, (_rule(runs=(f"{program} {flags}",)),), f"has the flag {shown}") if program else None
    if _DIRECTIVE.fullmatch(text):
        return Found(name, (_rule(writes=("**",), comments=re.escape(text.lstrip("#/*- ")).replace(r"\ ", r"\s*")),), f"has {shown}")
    if _PATH.fullmatch(text):
        rules = _path(text, sentence)
        return Found(name, rules, "{done}" if rules and not rules[0].runs else "names it", is_path=True) if rules else None
    if _NAME.fullmatch(text):
        return Found(name, _code(text), f"has {shown}")
    if re.fullmatch(r"(?:from\s+\S+\s+)?import\s+.+", text):
        expression = re.escape(text).replace(r"\ ", r"[ \t]+").replace("X", r"[\w.]+")
        return Found(name, (_rule(writes=("**",), code=r"^[ \t]*" + re.sub(r"import\[ \\t\]\+x$", r"import[ \\t]+\\w", expression)),), f"has {shown}")
    if len(text) >= 2 and not re.search(r"\w", text):
        return Found(name, (_rule(writes=("**",), code=rf"(?<![=!<>&|+*/-]){re.escape(text)}(?![=<>&|+*/-])"),), f"has {shown}")
    return None


def _flags(flag: str) -> str:
    return "|".join(next((same for same in _SAME_FLAGS if flag in same), (flag,)))


def _command(text: str, sentence: str) -> tuple[Rule, ...]:
    try:
        words = shlex.split(text)
    except ValueError:
        return ()
    if not words or not re.fullmatch(r"[a-z][\w.+-]*", words[0]):
        return ()
    known = grammar(words[0]) is not None or words[0] in ("sudo", "prisma", "flask", "rails", "make", "just", "task")
    if len(words) == 1:
        if not known or words[0] in _KEYWORDS or not _RUN.search(sentence):
            return ()
        return (_rule(runs=(words[0],)),)
    if not known and not (_RUN.search(sentence) and all(re.fullmatch(r"[\w.:@/=-]+", word) for word in words)):
        return ()
    parts = [words[0]]
    plain = True
    for word in words[1:]:
        if word.startswith("<") or word in ("...", "…"):
            continue
        if word.startswith("-"):
            parts.append(_flags(word) if _FLAG.fullmatch(word) else "|".join(_flags("-" + each) for each in word[1:]))
        elif plain and re.fullmatch(r"[a-z][\w:-]*", word) and len(parts) < 4:
            parts.append(word)
        else:
            plain = False
            parts.append("@" + shlex.quote(word).strip("'"))
    return (_rule(runs=(" ".join(parts),)),)


def _path(text: str, sentence: str) -> tuple[Rule, ...]:
    text = text.removeprefix("./")
    glob = text if "/" in text.rstrip("/") or text.startswith("*") or text.endswith("/") else text
    if _COMMIT.search(sentence) and not _CHANGE.search(sentence):
        word = text.rstrip("/")
        return (_rule(runs=(f"git add @{word}|*/{word}|./{word}|{word}/*", f"git commit @{word}|*/{word}|{word}/*")),)
    if _CHANGE.search(sentence):
        if _BY_HAND.search(sentence):
            return (
                _rule(tools=_WRITERS, writes=(glob,)),
                _rule(tools=("Bash",), writes=(glob,), runs=(_EDITORS,)),
            )
        if _EXISTING.search(sentence):
            return (_rule(changes=(glob,)),)
        return (_rule(writes=(glob,)),)
    if re.search(r"\b(?:new\s+)?(?:file|module|create|add|no)\b", sentence, re.I) and not text.endswith("/"):
        return (_rule(creates=(glob,)),)
    if re.search(r"\b(?:new\s+files?|create|add|put|place)\b", sentence, re.I):
        return (_rule(creates=(glob,)),)
    if _READ.search(sentence):
        return (_rule(opens=(glob,)),)
    return ()


def _code(text: str) -> tuple[Rule, ...]:
    """A name in code, however it comes in: imported, called, or as it stands."""
    base = text.strip().removesuffix("()").removesuffix("(...)").removesuffix("(")
    called = text != base
    parts = re.split(r"\.|::|->", base)
    escaped = re.escape(base)
    before = r"(?<![\w.$@])" if not base.startswith((".", "@")) else ""
    if base.endswith("!"):
        return (_rule(writes=("**",), code=before + escaped),)
    if base.startswith("@"):
        return (_rule(writes=("**",), code=escaped + r"(?![\w-])"),)
    if len(parts) == 1:
        if called:
            return (_rule(writes=("**",), code=rf"{before}{escaped}\s*\("),)
        if base in _KEYWORDS or not base.islower():
            return (_rule(writes=("**",), code=rf"{before}{escaped}\b(?!\s*[:=][^=])"),)
        imported = rf"^[ \t]*(?:import|from)[ \t]+{escaped}\b|^[ \t]*(?:import\b[^\n]*|[^\n]*\brequire\s*\(\s*)['\"]{escaped}(?:/[^'\"]*)?['\"]|^[ \t]*use[ \t]+{escaped}\b"
        return (_rule(writes=("**",), text=imported, code=r"\b(?:import|from|require|use)\b"), _rule(writes=("**",), code=rf"{before}{escaped}\s*\("))
    head, last = r"\.".join(map(re.escape, parts[:-1])), re.escape(parts[-1])
    end = r"\s*\(" if called else r"\b"
    alternatives = rf"{before}{escaped}{end}|^[ \t]*from[ \t]+{head}[ \t]+import\b[^\n#]*\b{last}\b|^[ \t]*(?:import|from)[ \t]+{escaped}\b"
    return (_rule(writes=("**",), code=alternatives),)
