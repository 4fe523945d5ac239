"""What stands in backquotes → the rules that find it: a command, a flag, a file, a directive, a name in code."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from sidecars.observer.conventions.vocabulary import rule_for
from sidecars.syntax.program_table import grammar
from sidecars.type_reader.sidecar_type import Rule

_WRITERS = ("Edit", "Write", "NotebookEdit")
_BY_HAND = re.compile(r"\bby\s+hand\b|\bmanual(?:ly)?\b|\bhand[- ]edit|\bdirectly\b|\bgenerated\b|\byourself\b", re.I)
_CHANGE = re.compile(
    r"\b(?:edit|chang|touch|modif|alter|writ|hand-edit|patch|overwrit|updat|rewrit|renam|delet|remov)\w*|"
    r"\bhands[- ]off\b",
    re.I,
)
_READ = re.compile(r"\b(?:read|open|look|print|cat|show|access)\w*\b", re.I)
_COMMIT = re.compile(r"\b(?:commit|check\w*\s+in|stage|git\s+add|version\s+control|push)\w*\b", re.I)
_RUN = re.compile(r"\b(?:run|running|execute|invoke|call|command|use|through|with|via|type|start|launch)\w*\b", re.I)
_NEW_FILES = re.compile(r"\b(?:new|any|no)\s+(?:new\s+)?files?\b", re.IGNORECASE)
_IMPORTING = re.compile(
    r"\bimport(?:s|ed|ing)?\s+(?:(?:anything|code|directly|things|modules?)\s+)*(?:from\s+)?(?:(?:the|our|any)\s+)?"
    r"(?:`[^`]+`\s*(?:,|or|and|,\s*or)\s*)*$|\bdepend(?:s|ing)?\s+(?:up)?on\s+$",
    re.IGNORECASE,
)
_IMPORTED = re.compile(r"\s+(?:may|must|can|should|is|are)\b[^.;,]{0,20}\bimported\b", re.IGNORECASE)
_MADE = re.compile(r"\b(?:new\s+)?(?:file|module|create|add|no|name)\w*\b", re.IGNORECASE)
_A_FOLDER = re.compile(r"\b(?:creat|add|mak|introduc)\w*\s+(?:an?\s+|new\s+|any\s+|another\s+)*`[^`]+/`", re.IGNORECASE)
_EXISTING = re.compile(r"\b(?:existing|old|applied|published|released|merged|committed)\b", re.I)
_DIRECTIVE = re.compile(
    r"(?:#(?!\[)|//|/\*|--|<!--)\s*\S.*|@ts-[\w-]+|eslint-[\w/-]+|(?:tslint|pylint|rubocop|"
    r"istanbul|c8|v8|prettier|biome|coverage|mypy|pyright|ruff|stylelint|nolint|nosec|"
    r"noinspection|NOSONAR|webpackIgnore|phpcs|swiftlint|shellcheck)\b[\w:/ -]*"
)
_PATH = re.compile(
    r"(?!process\.env|import\.meta\.env)(?:~?[\w.@*-]*/[\w./@*{}-]*|\.[\w.-]+|\*?[\w.-]*\.(?:py|pyi|js|jsx|mjs|ts|tsx|json|lock|toml|ya?ml|md|sql|css|scss|html|go|rs|rb|java|kt|sh|env|txt|cfg|ini|sum|mod|xml|proto|graphql|snap|pem|key|db|sqlite|csv|log|ipynb)|Makefile|Dockerfile|CHANGELOG|Gemfile|go\.mod)"
)
_NAME = re.compile(r"@?[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_$][\w$]*)*(?:!|\(\.{0,3}\))?|\.[A-Za-z_]\w*\(\)?\)?")
_IMPORT = re.compile(r"(?:from\s+([\w.]+)\s+)?import\s+([\w.*]+)")
_FLAG = re.compile(r"--[\w-]+|-\w")
# Words of languages: they stand in code as they are.
_KEYWORDS = frozenset(
    """
    var let goto with lambda global nonlocal eval exec del yield async await unsafe defer panic final static enum do
    namespace while switch default any null nil undefined None typeof instanceof delete void interface protected friend
    extern register volatile inline alert debugger
    """.split()  # noqa: SIM905 - a list of words
)
# What else a piece of code may begin with, where it is words alone.
_BEGIN = frozenset(
    "as new import from except catch raise throw return export class def func fn type const if for not is".split()  # noqa: SIM905
)
_SIGN = re.compile(r"\.\.\.|\w+|[^\w\s]")
_MOST_SIGNS = 16
_SQL = re.compile(r"(?i)(?:select|delete|insert|update|drop|truncate|alter|create|grant|union|order\s+by)\b")
# Where a short flag belongs, by what the sentence speaks of.
_SHORT_FLAGS = (
    (re.compile(r"snapshot", re.I), "jest|vitest|ava|react-scripts|playwright|npm|pnpm|yarn|bun"),
    (re.compile(r"\bcommit|hook", re.I), "git commit"),
    (re.compile(r"\bpush", re.I), "git push"),
    (re.compile(r"\badd\b|\bstag", re.I), "git add"),
    (re.compile(r"\brm\b|\bremov|\bdelet", re.I), "rm"),
)
_SAME_FLAGS = (
    ("-f", "--force"),
    ("-A", "--all"),
    ("-n", "--no-verify"),
    ("-r", "-R", "--recursive"),
    ("-i", "--interactive"),
)
_EDITORS = "sed|gsed|perl|awk|ed|tee|patch|ex|vim|cp|mv|truncate"


@dataclass(frozen=True, slots=True)
class Found:
    """What a span means: a name for its rules, the rules, and how a breach is said."""

    name: str
    rules: tuple[Rule, ...]
    what: str
    is_path: bool = False


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
    importing = _IMPORTING.search(sentence[:start]) or _IMPORTED.match(sentence[end:])
    if importing and re.fullmatch(r"@?[\w.-]*(?:[/.:]+[\w*.-]+)*/?\*{0,2}", text):
        return Found(name, imports_of(re.sub(r"/?\*{0,2}$", "", text) or text), f"imports {shown}")
    if _PATH.fullmatch(text) and not _DIRECTIVE.fullmatch(text):
        rules = _path(text, sentence)
        what = "{done}" if rules and not rules[0].runs else "names it"
        return Found(name, rules, what, is_path=True) if rules else None
    if _FLAG.fullmatch(text):
        rules = _of_flag(text, sentence)
        return Found(name, rules, f"has the flag {shown}") if rules else None
    rules = _in_a_file(text)
    return Found(name, rules, f"has {shown}") if rules else None


def _of_flag(text: str, sentence: str) -> tuple[Rule, ...]:
    program = next((each for expression, each in _SHORT_FLAGS if expression.search(sentence)), None)
    if text.startswith("--"):  # its short twin is another flag of other programs: `sed -n`, `rm -f`
        twin = program and _flags(text) != text and (program, text) != ("git push", "--no-verify")
        return (rule_for(runs=(f"* {text}", f"{program} {_flags(text)}") if twin else (f"* {text}",)),)
    return (rule_for(runs=(f"{program} {_flags(text)}",)),) if program else ()


def _in_a_file(text: str) -> tuple[Rule, ...]:
    """How a text stands in a file: as a comment, a name, an import, a sign."""
    if _DIRECTIVE.fullmatch(text):
        comment = re.escape(text.lstrip("#/*- ")).replace(r"\ ", r"\s*")
        return (rule_for(writes=("**",), comments=comment),)
    if _NAME.fullmatch(text):
        return rules_of_code(text)
    if found := _IMPORT.fullmatch(text):
        module = r"[\w.]+" if found[1] in ("x", "X", "module", "foo") else re.escape(found[1] or "")
        what = r"\*" if found[2] == "*" else r"\w" if found[2] in ("x", "X", "foo") else re.escape(found[2])
        start = rf"from[ \t]+{module}[ \t]+" if found[1] else ""
        return (rule_for(writes=("**",), code=rf"^[ \t]*{start}import[ \t]+{what}"),)
    if len(text) >= 2 and not re.search(r"\w", text):
        return (rule_for(writes=("**",), code=rf"(?<![=!<>&|+*/-]){re.escape(text)}(?![=<>&|+*/-])"),)
    return _piece(text)


def _piece(text: str) -> tuple[Rule, ...]:
    """A piece of code, as ``interface{}``, ``as any`` or ``catch (e) {}``: sign by sign, however it is set out."""
    signs = _SIGN.findall(text)
    if not 2 <= len(signs) <= _MOST_SIGNS or not any(each[0].isalpha() for each in signs):
        return ()
    known = signs[0] in _KEYWORDS | _BEGIN or _SQL.match(text) is not None
    worded = all(each.replace("_", "").isalnum() for each in signs)
    if not known and (worded or "/" in signs or text.startswith(("<", "-"))):
        return ()
    parts = []
    for before, sign, behind in zip(["", *signs], signs, [*signs[1:], ""], strict=False):
        if sign in ("...", "…"):
            parts.append(r"[^\n]*?")
        elif len(sign) == 1 and sign.isalpha() and (before in ("(", ",", "[") or behind in (")", ",", "]")):
            parts.append(r"\w+")  # a name that stands for any
        else:
            parts.append((r"\b" if sign[0].isalnum() else "") + re.escape(sign) + (r"\b" if sign[-1].isalnum() else ""))
    expression = r"\s*".join(parts)
    if _SQL.match(text):  # it stands in files of its own, and in the texts of all languages
        return (rule_for(writes=("**",), text=rf"(?i)^(?![ \t]*(?:#|//|--|\*))[^\n]*?{expression}"),)
    if "'" in text or '"' in text:
        return (rule_for(writes=("**",), text=expression),)
    return (rule_for(writes=("**",), code=expression),)


def imports_of(name: str, *, whole: bool = False) -> tuple[Rule, ...]:
    """The rules that find the import of a module, a package or what lies below it.

    Args:
        name: as it is imported; ``*`` stands for any part of it.
        whole: what lies below it is another.
    """
    escaped = re.escape(name).replace("/", "[/.]").replace(r"\*", r"[\w./@-]*")  # Python's path has dots
    below = "" if whole else r"(?:/[^'\"\n]*)?"
    imported = (
        rf"^[ \t]*from[ \t]+{escaped}(?![\w-])|"
        rf"^[ \t]*import[ \t]+(?:[\w.]+(?:[ \t]+as[ \t]+\w+)?,[ \t]*)*{escaped}(?![\w-])|"
        rf"^[ \t]*(?:pub[ \t]+)?use[ \t]+{escaped}\b|^[ \t]*import[ \t]+static[ \t]+{escaped}\b|"
        rf"\b(?:from|import|require)\b\s*\(?\s*['\"]{escaped}{below}['\"]"
    )
    of_go = rf'^[ \t]*(?:import[ \t]+)?(?:[\w.]+[ \t]+)?"(?:[^"\s]+/)?{escaped}(?:/[^"\s]*)?"[ \t]*$'
    return (
        rule_for(writes=("**",), text=imported, code=r"\b(?:import|from|require|use)\b"),
        rule_for(writes=("*.go",), text=of_go),
    )


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
        return (rule_for(runs=(words[0],)),)
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
    return (rule_for(runs=(" ".join(parts),)),)


def _path(text: str, sentence: str) -> tuple[Rule, ...]:
    path = text.removeprefix("./")
    if _CHANGE.search(sentence):
        return _not_changed(path, sentence)
    if _COMMIT.search(sentence):
        word = path.rstrip("/")
        return (
            rule_for(runs=(f"git add @{word}|*/{word}|./{word}|{word}/*", f"git commit @{word}|*/{word}|{word}/*")),
        )
    if re.search(r"\b(?:to|into|in|from)\s+`[^`]*" + re.escape(text), sentence):
        return (rule_for(creates=(path,)),) if _NEW_FILES.search(sentence) else ()
    if _MADE.search(sentence) and (not path.endswith("/") or _A_FOLDER.search(sentence)):
        return (rule_for(creates=(path,)),)
    return (rule_for(opens=(path,)),) if _READ.search(sentence) else ()


def _not_changed(path: str, sentence: str) -> tuple[Rule, ...]:
    if _BY_HAND.search(sentence):
        place = re.escape(re.split(r"[*?\[{]", path)[0])
        redirected = rf">\s*['\"]?(?:\./)?{place}"
        return (
            rule_for(tools=_WRITERS, writes=(path,)),
            rule_for(tools=("Bash",), writes=(path,), runs=(f"{_EDITORS} @*{path.rstrip('/*')}*",)),
            rule_for(tools=("Bash",), writes=(path,), command=redirected),
        )
    if _EXISTING.search(sentence):
        return (rule_for(changes=(path,)),)
    return (rule_for(writes=(path,)),)


def rules_of_code(text: str) -> tuple[Rule, ...]:
    """A name in code, however it comes in: imported, called, or as it stands."""
    base = text.strip().removesuffix("()").removesuffix("(...)").removesuffix("(")
    called = text != base
    parts = re.split(r"\.|::|->", base)
    escaped = re.escape(base)
    before = r"(?<![\w.$@])" if not base.startswith((".", "@")) else ""
    if base.endswith("!"):
        return (rule_for(writes=("**",), code=before + escaped),)
    if base.startswith("@"):
        return (rule_for(writes=("**",), code=escaped + r"(?![\w-])"),)
    if len(parts) == 1:
        if called:
            return (rule_for(writes=("**",), code=rf"{before}{escaped}\s*\("),)
        if base in _KEYWORDS or not base.islower():
            anywhere = r"(?<![\w$@])" if not base.islower() and not base[0].isupper() else before  # a method's, too
            return (rule_for(writes=("**",), code=rf"{anywhere}{escaped}\b(?!\s*[:=][^=])"),)
        return (*imports_of(base), rule_for(writes=("**",), code=rf"{before}{escaped}\s*\("))
    head, last = r"\.".join(map(re.escape, parts[:-1])), re.escape(parts[-1])
    end = r"\s*\(" if called else r"\b"
    alternatives = (
        rf"{before}{escaped}{end}|^[ \t]*from[ \t]+{head}[ \t]+import\b[^\n#]*\b{last}\b|"
        rf"^[ \t]*(?:import|from)[ \t]+{escaped}\b"
    )
    return (rule_for(writes=("**",), code=alternatives),)
