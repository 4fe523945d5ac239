"""Configurations of linters and formatters → rules, for what the vocabulary knows under their codes.

Only what is certainly switched on counts: a code that is selected and not ignored, a severity that is not off.
"""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from typing import Any

import yaml

from sidecars.observer.conventions.statements import rule_of
from sidecars.observer.conventions.vocabulary import by_linter
from sidecars.type_reader.sidecar_type import Confidence, Rule
from witness.errors import DeclarationError

CONFIGURATIONS = (
    "pyproject.toml", "ruff.toml", ".ruff.toml", "setup.cfg", "tox.ini", ".flake8", ".pylintrc", "pylintrc",
    ".eslintrc", ".eslintrc.json", ".eslintrc.yml", ".eslintrc.yaml", ".eslintrc.js", ".eslintrc.cjs",
    "eslint.config.js", "eslint.config.mjs", "eslint.config.cjs", "eslint.config.ts", "package.json", "biome.json",
    "biome.jsonc", ".oxlintrc.json", ".stylelintrc", ".stylelintrc.json", ".editorconfig", "Cargo.toml", ".rubocop.yml",
    "commitlint.config.js", ".commitlintrc.json", ".commitlintrc", "commitlint.config.mjs", "commitlint.config.ts",
)  # fmt: skip
_RUFF_DEFAULT = ("E4", "E7", "E9", "F")
_FLAKE8_DEFAULT = ("E", "F", "W", "C90")
# Where the line tells its linter to pass, the linter passes.
_SPARED = r"(?i)#\s*noqa\b|pylint:\s*disable|eslint-disable|biome-ignore|oxlint-disable|rubocop:disable|#\[allow\("
_PYTHON = ("*.py", "*.pyi")


@dataclass(frozen=True, slots=True)
class Held:
    """A code that a configuration switches on.

    Args:
        code: the linter's.
        key: to be searched for its line.
        but: globs of the files for which it is off.
        only: globs of those for which it is on; none means all.
        values: for the vocabulary's places, as the length of a line.
        rules: conditions in place of the vocabulary's.
        what: how a breach is said, in place of the vocabulary's.
    """

    code: str
    key: str = ""
    but: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    values: Mapping[str, str] | None = None
    rules: tuple[Rule, ...] = ()
    what: str = ""


def read_configuration(text: str, title: str) -> tuple[Rule, ...]:
    """The rules that a configuration makes; none when it cannot be read.

    Args:
        text: the file's.
        title: its name from the workdir.
    """
    reader = _reader_of(title)
    if reader is None:
        return ()
    try:
        held = list(reader(text))
    except (
        ValueError,
        TypeError,
        AttributeError,
        KeyError,
        configparser.Error,
        yaml.YAMLError,
        DeclarationError,
        RecursionError,
    ):
        return ()
    return tuple(
        _cited(each, made, what, f"{title}:{_line(text, each.key or each.code)}")
        for each in held
        for made, what in _made(each)
    )


def _made(held: Held) -> Iterator[tuple[Rule, str]]:
    """The rules of a code, each with how a breach is said."""
    for rule in held.rules:
        yield rule, held.what
    for concern in () if held.rules else by_linter().get(held.code, ()):
        what = concern.what
        for name, value in (held.values or {}).items():
            what = what.replace("{" + name + "}", value)
        for raw in concern.rules:
            yield rule_of(raw, held.values or {}), what


def _cited(held: Held, rule: Rule, what: str, source: str) -> Rule:
    anywhere = not (rule.writes or rule.creates or rule.runs)
    subject = "'{ran}'" if rule.runs else "{path}"
    return replace(
        rule,
        name=held.code.lower().replace("/", "-").lstrip("@"),
        writes=("**",) if anywhere else rule.writes,
        but_not=(*rule.but_not, *held.but),
        within=held.only or rule.within,
        unless=rule.unless or _SPARED,
        say=f"{subject} {what}; {source} asks its linter to refuse that ({held.code})",
        source=source,
    )


def _line(text: str, key: str) -> int:
    at = text.find(key)
    return text.count("\n", 0, at) + 1 if at >= 0 else 1


def _reader_of(title: str) -> Callable[[str], Iterator[Held]] | None:
    name = title.rpartition("/")[2]
    return next((reader for glob, reader in _readers() if fnmatch(name, glob)), None)


def _readers() -> tuple[tuple[str, Callable[[str], Iterator[Held]]], ...]:
    return (
        ("pyproject.toml", _pyproject),
        ("*ruff.toml", lambda text: _ruff(tomllib.loads(text))),
        ("setup.cfg", _flake8),
        ("tox.ini", _flake8),
        (".flake8", _flake8),
        ("*pylintrc", _pylintrc),
        ("package.json", lambda text: _eslint(_json(text).get("eslintConfig") or {})),
        (".eslintrc.*js", _eslint_script),
        ("eslint.config.*", _eslint_script),
        (".eslintrc*", lambda text: _eslint(_json(text) if text.lstrip().startswith("{") else yaml.safe_load(text))),
        (".oxlintrc.json", lambda text: _eslint(_json(text))),
        (".stylelintrc*", lambda text: _eslint(_json(text))),
        ("biome.json*", lambda text: _biome(_json(text))),
        (".editorconfig", _editorconfig),
        ("Cargo.toml", _cargo),
        (".rubocop.yml", lambda text: _rubocop(yaml.safe_load(text))),
        (".commitlintrc*", _commitlint),
        ("commitlint.config.*", _commitlint),
    )


# -- Python ---------------------------------------------------------------------------------------------------------


def _pyproject(text: str) -> Iterator[Held]:
    tools = tomllib.loads(text).get("tool", {})
    if "ruff" in tools:
        yield from _ruff(tools["ruff"])
    if "flake8" in tools:
        yield from _selected(
            _codes(tools["flake8"].get("select")) or _FLAKE8_DEFAULT, _codes(tools["flake8"].get("ignore")), {}
        )
    pylint = tools.get("pylint", {})
    if pylint:
        control = pylint.get("messages_control") or pylint.get("messages control") or {}
        yield from _pylint(_codes(control.get("disable")), _codes(control.get("enable")))


def _ruff(given: Mapping[str, Any]) -> Iterator[Held]:
    lint = {**given, **given.get("lint", {})}
    selected = _codes(lint.get("select")) if "select" in lint else list(_RUFF_DEFAULT)
    selected += _codes(lint.get("extend-select"))
    ignored = _codes(lint.get("ignore")) + _codes(lint.get("extend-ignore"))
    per_file = {**lint.get("per-file-ignores", {}), **lint.get("extend-per-file-ignores", {})}
    excluded = [*_texts(given.get("exclude")), *_texts(given.get("extend-exclude")), *_texts(lint.get("exclude"))]
    length = lint.get("pycodestyle", {}).get("max-line-length") or given.get("line-length", 88)
    yield from _selected(selected, ignored, per_file, excluded, length)


def _selected(
    selected: Iterable[str],
    ignored: Iterable[str],
    per_file: Mapping[str, Any],
    excluded: Iterable[str] = (),
    length: object = 79,
) -> Iterator[Held]:
    """The known codes that the longest prefix selects."""
    for code in by_linter():
        if not re.fullmatch(r"[A-Z]{1,4}\d+", code) or re.fullmatch(r"[WCR]\d{4}", code):  # those are Pylint's
            continue
        chosen = max((len(each) for each in selected if _covers(each, code)), default=-1)
        refused = max((len(each) for each in ignored if _covers(each, code)), default=-1)
        if chosen < 0 or refused >= chosen:
            continue
        but = tuple(glob for glob, codes in per_file.items() if any(_covers(each, code) for each in _codes(codes)))
        if any(glob.startswith("!") for glob in but):
            continue
        values = {"length": str(length), "more": str(int(str(length)) + 1)} if code == "E501" else None
        key = next((each for each in selected if _covers(each, code)), code)
        yield Held(code, key, (*but, *excluded), _PYTHON if code == "E501" else (), values)


def _covers(prefix: str, code: str) -> bool:
    return prefix == "ALL" or code.startswith(prefix)


def _codes(value: object) -> list[str]:
    if isinstance(value, str):
        return [each for each in re.split(r"[\s,]+", re.sub(r"#.*", "", value)) if each]
    return [str(each) for each in value] if isinstance(value, list | tuple) else []


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _ini(text: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    return parser


def _flake8(text: str) -> Iterator[Held]:
    parser = _ini(text)
    if not parser.has_section("flake8"):
        return
    given = parser["flake8"]
    selected = _codes(given.get("select", "")) or list(_FLAKE8_DEFAULT)
    selected += _codes(given.get("extend-select", given.get("extend_select", "")))
    ignored = _codes(given.get("ignore", "E121,E123,E126,E226,E24,E704,W503,W504"))
    ignored += _codes(given.get("extend-ignore", given.get("extend_ignore", "")))
    per_file: dict[str, list[str]] = {}
    for line in given.get("per-file-ignores", given.get("per_file_ignores", "")).splitlines():
        glob, _, codes = line.partition(":")
        for each in glob.split(","):
            if each.strip():
                per_file[each.strip()] = _codes(codes)
    length = given.get("max-line-length", given.get("max_line_length", "79"))
    yield from _selected(selected, ignored, per_file, _codes(given.get("exclude", "")), int(length))


def _pylintrc(text: str) -> Iterator[Held]:
    parser = _ini(text)
    disabled = [code for name in parser.sections() for code in _codes(parser[name].get("disable", ""))]
    enabled = [code for name in parser.sections() for code in _codes(parser[name].get("enable", ""))]
    yield from _pylint(disabled, enabled)


def _pylint(disabled: list[str], enabled: list[str]) -> Iterator[Held]:
    for code, concerns in by_linter().items():
        names = {code, *(each for concern in concerns for each in concern.linters)}
        if not re.fullmatch(r"[a-z]+(?:-[a-z]+)+", code) or not any(
            re.fullmatch(r"[WCR]\d{4}", each) for each in names
        ):
            continue
        off = "all" in disabled or not names.isdisjoint(disabled)
        if not off or not names.isdisjoint(enabled):
            yield Held(code, only=_PYTHON)


# -- JavaScript -----------------------------------------------------------------------------------------------------


def _json(text: str) -> Mapping[str, Any]:
    """JSON with comments and trailing commas, as these tools read it."""
    try:
        value = json.loads(text)
    except ValueError:
        bare = re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', lambda found: found[1] or "", text, flags=re.DOTALL)
        value = json.loads(re.sub(r",(\s*[}\]])", r"\1", bare))
    return value if isinstance(value, dict) else {}


def _on(value: object) -> bool:
    if isinstance(value, list) and value:
        value = value[0]
    return value in (1, 2, "1", "2", "error", "warn", True)


def _eslint(given: Mapping[str, Any]) -> Iterator[Held]:
    rules = given.get("rules") or {}
    overrides = [each for each in given.get("overrides") or [] if isinstance(each, dict)]
    ignored = tuple(_texts(given.get("ignorePatterns")))
    for code, value in rules.items():
        off = [each for each in overrides if code in (each.get("rules") or {}) and not _on(each["rules"][code])]
        but = tuple(glob for each in off for glob in _globs(each.get("files")))
        if _on(value):
            yield from _eslint_rule(code, value, (*ignored, *but), ())
    for each in overrides:
        for code, value in (each.get("rules") or {}).items():
            if _on(value) and not _on(rules.get(code)):
                yield from _eslint_rule(
                    code, value, (*ignored, *_globs(each.get("excludedFiles"))), tuple(_globs(each.get("files")))
                )


def _globs(value: object) -> list[str]:
    found = [value] if isinstance(value, str) else _texts(value)
    return [expanded for glob in found for expanded in _braces(glob)]


def _braces(glob: str) -> list[str]:
    found = re.search(r"\{([^{}]*)\}", glob)
    if found is None:
        return [glob]
    return [
        each for part in found[1].split(",") for each in _braces(glob[: found.start()] + part + glob[found.end() :])
    ]


_SCRIPTS = ("*.js", "*.jsx", "*.mjs", "*.cjs", "*.ts", "*.tsx", "*.mts", "*.cts", "*.vue", "*.svelte")


def _eslint_rule(code: str, value: object, but: tuple[str, ...], only: tuple[str, ...]) -> Iterator[Held]:
    options = value[1:] if isinstance(value, list) else []
    if code == "eqeqeq" and options and options[0] in ("smart", "allow-null"):
        rule = Rule(
            "x",
            writes=_SCRIPTS,
            code=r"[^=!<>]==[^=]|!=[^=]",
            unless=r"[!=]=\s*null\b|typeof",
            say="x",
            shipped=True,
            confidence=Confidence.HIGH,
        )
        yield Held(code, but=but, only=only, rules=(rule,), what="compares by == or !=")
    elif code == "no-console" and options and isinstance(options[0], dict):
        allowed = set(_texts(options[0].get("allow")))
        methods = [
            each for each in ("log", "debug", "info", "trace", "dir", "table", "warn", "error") if each not in allowed
        ]
        yield _restricted(code, rf"\bconsole\s*\.\s*(?:{'|'.join(methods)})\s*\(", but, only, "writes to the console")
    elif code == "no-console":
        yield _restricted(code, r"\bconsole\s*\.\s*\w+\s*\(", but, only, "writes to the console")
    elif code in ("no-restricted-imports", "@typescript-eslint/no-restricted-imports", "no-restricted-modules"):
        for name in _restricted_names(options, "paths", "name"):
            yield _imported(code, name, but, only)
    elif code in ("no-restricted-globals", "no-restricted-properties"):
        for option in options:
            name = (
                option
                if isinstance(option, str)
                else ".".join(filter(None, (option.get("object", ""), option.get("property", option.get("name", "")))))
            )
            if name:
                yield _restricted(code, rf"(?<![\w.$]){re.escape(name)}\b(?!\s*:)", but, only, f"uses {name}")
    elif code == "max-len":
        found = next(
            (each if isinstance(each, int) else each.get("code") for each in options if isinstance(each, int | dict)),
            None,
        )
        if found:
            rule = Rule(
                "x",
                writes=_SCRIPTS,
                text=rf"^(?!.*https?://).{{{int(found) + 1},}}$",
                say="x",
                shipped=True,
                confidence=Confidence.HIGH,
            )
            yield Held(code, but=but, only=only, rules=(rule,), what=f"has a line of more than {found} characters")
    elif code == "camelcase":
        rule = Rule(
            "x",
            writes=_SCRIPTS,
            named=r"^_*[a-z]+[a-z0-9]*_[a-z0-9_]+$",
            say="x",
            shipped=True,
            confidence=Confidence.HIGH,
        )
        yield Held(code, but=but, only=only, rules=(rule,), what="names a function in snake_case ({name})")
    else:
        yield Held(code, but=but, only=only)


def _restricted_names(options: Iterable[object], listed: str, key: str) -> Iterator[str]:
    for option in options:
        if isinstance(option, str):
            yield option
        elif isinstance(option, dict):
            if key in option and not option.get("importNames"):
                yield str(option[key])
            yield from _restricted_names(option.get(listed) or (), listed, key)


def _restricted(code: str, expression: str, but: tuple[str, ...], only: tuple[str, ...], what: str) -> Held:
    rule = Rule("x", writes=_SCRIPTS, code=expression, say="x", shipped=True, confidence=Confidence.HIGH)
    return Held(code, but=but, only=only, rules=(rule,), what=what)


def _imported(code: str, name: str, but: tuple[str, ...], only: tuple[str, ...]) -> Held:
    expression = rf"\b(?:from|import|require\s*\()\s*\(?['\"]{re.escape(name)}['\"]"
    rule = Rule("x", writes=_SCRIPTS, text=expression, say="x", shipped=True, confidence=Confidence.HIGH)
    return Held(code, name, but, only, rules=(rule,), what=f"imports {name}")


_SCRIPT_RULE = re.compile(
    r"""["']?([@\w/-]+)["']?\s*:\s*(?:\[\s*)?["']?(error|warn|off|0|1|2)\b["']?(?:\s*,\s*["']([\w@/.-]+)["'])?"""
)


def _eslint_script(text: str) -> Iterator[Held]:
    """A configuration that is a program: what stands in it once, on, and nowhere off."""
    found: dict[str, list[tuple[bool, str]]] = {}
    for each in _SCRIPT_RULE.finditer(re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)):
        found.setdefault(each[1], []).append((each[2] not in ("off", "0"), each[3] or ""))
    for code, states in found.items():
        if len(states) == 1 and states[0][0]:
            yield from _eslint_rule(code, ["error", *filter(None, [states[0][1]])], (), ())


def _biome(given: Mapping[str, Any]) -> Iterator[Held]:
    linter = given.get("linter") or {}
    if linter.get("enabled") is False:
        return
    groups = linter.get("rules") or {}
    overrides = [each for each in given.get("overrides") or [] if isinstance(each, dict)]
    for group, rules in groups.items():
        for code, value in rules.items() if isinstance(rules, dict) else ():
            level = value.get("level") if isinstance(value, dict) else value
            but = []
            for each in overrides:
                other = (((each.get("linter") or {}).get("rules") or {}).get(group) or {}).get(code)
                if other in ("off",) or (isinstance(other, dict) and other.get("level") == "off"):
                    but += _globs(each.get("includes") or each.get("include"))
            if level in ("error", "warn", "on"):
                yield from _eslint_rule(
                    "no-console" if code in ("noConsole", "noConsoleLog") else code, "error", tuple(but), ()
                )


# -- others ---------------------------------------------------------------------------------------------------------


def _editorconfig(text: str) -> Iterator[Held]:
    section: tuple[str, ...] = ()
    styles: list[tuple[tuple[str, ...], dict[str, str]]] = []
    for whole in text.splitlines():
        line = re.sub(r"(?:^|\s)[#;].*", "", whole).strip()
        if line.startswith("[") and line.endswith("]"):
            section = tuple(each for each in _braces(line[1:-1]))
            styles.append((section, {}))
        elif "=" in line and styles:
            key, _, value = line.partition("=")
            styles[-1][1][key.strip().lower()] = value.strip().lower()
    for index, (globs, given) in enumerate(styles):
        later = styles[index + 1 :]
        if given.get("indent_style") in ("space", "tab"):
            but = tuple(
                glob
                for other, more in later
                if more.get("indent_style") not in (None, given["indent_style"])
                for glob in other
            )
            space = given["indent_style"] == "space"
            expression = r"^\t+\S" if space else r"^ {2,}[^\s*]"
            rule = Rule("x", text=expression, writes=globs, say="x", shipped=True, confidence=Confidence.HIGH)
            yield Held(
                "indent_style",
                but=(*but, "*.md", "Makefile", "*.mk", "*.go") if space and "*" in globs else but,
                rules=(rule,),
                what=f"is indented by {'tabs' if space else 'spaces'}",
            )
        if (length := given.get("max_line_length", "")).isdigit():
            but = tuple(glob for other, more in later if "max_line_length" in more for glob in other)
            rule = Rule(
                "x",
                text=rf"^(?!.*https?://).{{{int(length) + 1},}}$",
                writes=globs,
                say="x",
                shipped=True,
                confidence=Confidence.HIGH,
            )
            yield Held(
                "max_line_length",
                but=(*but, "*.md", "*.json", "*.lock", "*.svg", "*.csv", "*.txt"),
                rules=(rule,),
                what=f"has a line of more than {length} characters",
            )


def _cargo(text: str) -> Iterator[Held]:
    given = tomllib.loads(text)
    lints = given.get("lints") or (given.get("workspace") or {}).get("lints") or {}
    for tool, rules in lints.items():
        for code, value in rules.items() if isinstance(rules, dict) else ():
            level = value.get("level") if isinstance(value, dict) else value
            if level in ("deny", "forbid", "warn"):
                yield Held(f"clippy::{code}" if tool == "clippy" else code, code)


def _rubocop(given: Mapping[str, Any]) -> Iterator[Held]:
    for code, value in given.items():
        if isinstance(value, dict) and value.get("Enabled") is True:
            yield Held(code, but=tuple(_texts(value.get("Exclude"))))


def _commitlint(text: str) -> Iterator[Held]:
    if "config-conventional" in text:
        yield Held("@commitlint/config-conventional", "config-conventional")
