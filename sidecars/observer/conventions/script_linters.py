"""What ESLint, oxlint, Biome, Prettier, stylelint and ``package.json`` ask of scripts and of who installs packages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sidecars.observer.conventions.held import (
    SCRIPTS,
    Held,
    globs,
    refused_import,
    set_out,
    shown,
    table,
    texts,
    too_long,
)
from sidecars.observer.conventions.literals import objects_in, read_json
from sidecars.observer.conventions.vocabulary import rule_for
from witness.config.yaml_document import parse_yaml_value

_METHODS = ("log", "debug", "info", "trace", "dir", "table", "warn", "error")
# ESLint's rules of how code is set out, as Prettier has them: rule, its options → the setting.
_LAYOUT: Mapping[str, Mapping[str, tuple[str, object]]] = {
    "semi": {"never": ("semi", False), "always": ("semi", True), "": ("semi", True)},
    "quotes": {"single": ("singleQuote", True), "double": ("singleQuote", False)},
    "indent": {"tab": ("indent", "tab"), "2": ("indent", "space"), "4": ("indent", "space")},
    "no-tabs": {"": ("indent", "space")},
}
_OF_AN_OBJECT = ("object", "property", "name")


def given_in(text: str) -> Mapping[str, object]:
    """A configuration in JSON, with comments too, or in YAML."""
    if text.lstrip()[:1] in ("{", "/", ""):
        return read_json(text)
    return table(parse_yaml_value(text, ""))


def eslint(text: str) -> Iterator[Held]:
    """``.eslintrc`` in JSON or YAML, and oxlint's and stylelint's, which have its form."""
    yield from _eslint([given_in(text)])


def eslint_script(text: str) -> Iterator[Held]:
    """A configuration that is a program: its literals; of what else it takes up nothing is known."""
    found = list(objects_in(text))
    if any("rules" in each or "overrides" in each for each in found):
        yield from _eslint([each for each in found if isinstance(each.get("rules"), dict) or each.get("overrides")])


def _eslint(blocks: Sequence[Mapping[str, object]]) -> Iterator[Held]:
    """Rules of blocks, the later of which hold for their own files in place of the earlier."""
    flat = [each for block in blocks for each in (block, *map(table, _listed(block.get("overrides"))))]
    ignored = tuple(
        glob
        for each in flat
        for key in ("ignorePatterns", "ignores")
        if key == "ignorePatterns" or not each.get("rules")
        for glob in globs(each.get(key))
    )
    for at, block in enumerate(flat):
        only = globs(block.get("files"))
        own = (*ignored, *globs(block.get("excludedFiles")), *globs(block.get("ignores")))
        for code, value in table(block.get("rules")).items():
            later = [each for each in flat[at + 1 :] if code in table(each.get("rules"))]
            if not _on(value) or any(not each.get("files") for each in later):
                continue
            but = tuple(glob for each in later for glob in globs(each.get("files")))
            yield from _eslint_rule(code, value, (*own, *but), only)


def _listed(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else ()


def _on(value: object) -> bool:
    if isinstance(value, list) and value:
        value = value[0]
    return value in (1, 2, "1", "2", "error", "warn", "deny", True)


def _eslint_rule(code: str, value: object, but: tuple[str, ...], only: tuple[str, ...]) -> Iterator[Held]:
    options = value[1:] if isinstance(value, list) else []
    name = code.rpartition("/")[2]
    if name in _LAYOUT:
        if setting := _LAYOUT[name].get(str(options[0]) if options else ""):
            yield from set_out(code, {setting[0]: setting[1]}, but, only)
    elif name in ("no-restricted-imports", "no-restricted-modules"):
        yield from (refused_import(code, each, SCRIPTS, but, only) for each in dict.fromkeys(_restricted(options)))
    elif name == "max-len":
        yield from too_long(code, _number(options, "code"), SCRIPTS, but)
    elif (told := _told(name, options)) is not None:
        for what, conditions in told:
            yield Held(code, but=but, only=only, rules=(rule_for(writes=SCRIPTS, **conditions),), what=what)
    else:
        yield Held(code, but=but, only=only)


def _told(name: str, options: Sequence[object]) -> Sequence[tuple[str, dict[str, object]]] | None:
    """How breaches of a rule with options are said and found; None for one that the vocabulary knows better."""
    if name == "eqeqeq" and options and options[0] in ("smart", "allow-null"):
        return [("compares by == or !=", {"code": r"[^=!<>]==[^=]|!=[^=]", "unless": r"[!=]=\s*null\b|typeof"})]
    if name == "no-console":
        allowed = {each for option in options for each in texts(table(option).get("allow"))}
        methods = "|".join(each for each in _METHODS if each not in allowed) if allowed else r"\w+"
        return [("writes to the console", {"code": rf"\bconsole\s*\.\s*(?:{methods})\s*\("})]
    if name in ("no-restricted-globals", "no-restricted-properties"):
        given = [[each] if isinstance(each, str) else [*map(table(each).get, _OF_AN_OBJECT)] for each in options]
        names = [".".join(part for part in parts if isinstance(part, str) and part) for parts in given]
        return [(f"uses {shown(each)}", {"code": rf"(?<![\w.$]){re.escape(each)}\b(?!\s*:)"}) for each in names if each]
    if name == "max-lines-per-function" and (most := _number(options, "max")):
        what = f"has a function of more than {most} lines ({{name}}, {{lines}} lines)"
        return [(what, {"function_over": most})]
    if name == "camelcase":
        return [("names a function in snake_case ({name})", {"named": r"^_*[a-z]+[a-z0-9]*_[a-z0-9_]+$"})]
    return None


def _number(options: Sequence[object], key: str) -> int | None:
    found = (each if isinstance(each, int) else table(each).get(key) for each in options)
    return next((each for each in found if isinstance(each, int)), None)


def _restricted(options: Iterable[object]) -> Iterator[str]:
    """The modules that ``no-restricted-imports`` names, by name or by pattern."""
    for option in options:
        given = table(option)
        if isinstance(option, str):
            yield option.replace("**", "*")
        elif not given.get("importNames"):
            yield from texts([given.get("name")])
            for key in ("paths", "patterns", "group"):
                yield from _restricted(each for each in _listed(given.get(key)) if not str(each).startswith("!"))


def biome(text: str) -> Iterator[Held]:
    """``biome.json``: its linter and its formatter."""
    given = read_json(text)
    overrides = [table(each) for each in _listed(given.get("overrides"))]
    linter = table(given.get("linter"))
    for group, rules in table(linter.get("rules")).items():
        for code, value in table(rules).items() if linter.get("enabled") is not False else ():
            if _level(value) not in ("error", "warn", "on"):
                continue
            off = [each for each in overrides if _level(_below(each, "linter", "rules", group, code)) == "off"]
            but = tuple(glob for each in off for glob in globs(each.get("includes") or each.get("include")))
            yield from _eslint_rule("no-console" if code in ("noConsole", "noConsoleLog") else code, "error", but, ())
    form = {**table(given.get("formatter")), **table(_below(given, "javascript", "formatter"))}
    if form.get("enabled") is not False:
        style = {
            "indent": form.get("indentStyle"),
            "semi": {"asNeeded": False, "always": True}.get(str(form.get("semicolons"))),
            "singleQuote": {"single": True, "double": False}.get(str(form.get("quoteStyle"))),
        }
        yield from set_out("formatter {}", style)


def _below(given: object, *keys: str) -> object:
    for key in keys:
        given = table(given).get(key)
    return given


def _level(value: object) -> object:
    return table(value).get("level") if isinstance(value, Mapping) else value


def prettier(text: str) -> Iterator[Held]:
    """``.prettierrc`` in any of its forms."""
    script = next((each for each in objects_in(text)), {}) if re.search(r"\bexport\b|\bmodule\b", text) else {}
    yield from _prettier(script or given_in(text))


def _prettier(given: Mapping[str, object]) -> Iterator[Held]:
    overrides = [table(each) for each in _listed(given.get("overrides"))]
    elsewhere = tuple(glob for each in overrides for glob in globs(each.get("files")))
    for each in (given, *overrides):
        style = given if each is given else table(each.get("options"))
        but, only = (elsewhere, ()) if each is given else ((), globs(each.get("files")))
        indent = {True: "tab", False: "space"}.get(tabs) if isinstance(tabs := style.get("useTabs"), bool) else None
        yield from set_out("{}", {**style, "indent": indent}, but, only)


def package(text: str) -> Iterator[Held]:
    """``package.json``: the package manager that it asks for, and what tools keep there."""
    given = read_json(text)
    asked = re.match(r"(npm|pnpm|yarn|bun)@", str(given.get("packageManager", "")))
    only = re.search(r"\bonly-allow (npm|pnpm|yarn|bun)\b", str(table(given.get("scripts")).get("preinstall", "")))
    if manager := asked or only:
        yield Held(f"packageManager:{manager[1]}", manager[0])
    yield from _eslint([table(given.get("eslintConfig"))])
    yield from _prettier(table(given.get("prettier")))
    if "config-conventional" in str(table(given.get("commitlint")).get("extends", "")):
        yield Held("@commitlint/config-conventional", "config-conventional")
