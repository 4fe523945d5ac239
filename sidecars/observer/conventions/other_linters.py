"""What EditorConfig, Cargo, Clippy, rustfmt, golangci-lint, RuboCop, commitlint and pre-commit ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sidecars.observer.conventions.held import (
    Held,
    braces,
    globs,
    indented,
    refused_import,
    shown,
    table,
    texts,
    too_long,
)
from sidecars.observer.conventions.literals import objects_in
from sidecars.observer.conventions.script_linters import given_in
from sidecars.observer.conventions.spans import rules_of_code
from sidecars.observer.conventions.vocabulary import rule_for
from witness.config.yaml_document import parse_yaml_value
from witness.files import parse_toml

_GO = ("*.go",)
_RUST = ("*.rs",)
# An expression that is a name and what may follow it; others may not be plain, and are nobody's to run.
_PLAIN = re.compile(r"\^?(?:\w|\\\.|\(\w*(?:\|\w+)*\)\??)+(?:\.\*)?\$?")


def editorconfig(text: str) -> Iterator[Held]:
    """``.editorconfig``: the sign of indentation, the length of lines, blanks at their ends."""
    styles: list[tuple[tuple[str, ...], dict[str, str]]] = []
    for whole in text.splitlines():
        line = re.sub(r"(?:^|\s)[#;].*", "", whole).strip()
        if line.startswith("[") and line.endswith("]"):
            styles.append((tuple(braces(line[1:-1])), {}))
        elif "=" in line and styles:
            key, _, value = line.partition("=")
            styles[-1][1][key.strip().lower()] = value.strip().lower()
    for index, (files, given) in enumerate(styles):

        def but(key: str, at: int = index, own: Mapping[str, str] = given) -> tuple[str, ...]:
            return tuple(
                glob for globs, more in styles[at + 1 :] if more.get(key, own[key]) != own[key] for glob in globs
            )

        if "indent_style" in given:
            yield from indented("indent_style", given["indent_style"], files, but("indent_style"))
        if (length := given.get("max_line_length", "")).isdecimal():
            yield from too_long("max_line_length", int(length), files, but("max_line_length"))
        if given.get("trim_trailing_whitespace") == "true":
            rule = rule_for(writes=files, text=r"[^\s][ \t]+$|^[ \t]+$")
            out = (*but("trim_trailing_whitespace"), "*.md", "*.patch", "*.diff", "*.snap")
            yield Held("trim_trailing_whitespace", but=out, rules=(rule,), what="has a line that ends in blanks")


def cargo(text: str) -> Iterator[Held]:
    """The lints of ``Cargo.toml``."""
    given = parse_toml(text)
    lints = table(given.get("lints")) or table(table(given.get("workspace")).get("lints"))
    for tool, rules in lints.items():
        for code, value in table(rules).items():
            level = table(value).get("level") if isinstance(value, Mapping) else value
            if level in ("deny", "forbid", "warn"):
                yield Held(f"clippy::{code}" if tool == "clippy" else code, code, only=_RUST)


def clippy(text: str) -> Iterator[Held]:
    """``clippy.toml``: what may not be called or used."""
    given = parse_toml(text)
    for key in ("disallowed-methods", "disallowed-types", "disallowed-macros"):
        listed = given.get(key)
        for each in listed if isinstance(listed, list) else ():
            path = each if isinstance(each, str) else table(each).get("path")
            if isinstance(path, str) and re.fullmatch(r"\w+(?:::\w+)*", path):
                # What is used is called by the last two of its names.
                name = "::".join(path.split("::")[-2:]) + ("!" if key.endswith("macros") else "")
                yield Held(key, path, only=_RUST, rules=rules_of_code(name), what=f"uses {shown(path)}")


def rustfmt(text: str) -> Iterator[Held]:
    """``rustfmt.toml``: the sign of indentation."""
    hard = parse_toml(text).get("hard_tabs")
    if isinstance(hard, bool):
        yield from indented("hard_tabs", "tab" if hard else "space", _RUST)


def golangci(text: str) -> Iterator[Held]:
    """``.golangci.yml`` of both versions: what is enabled. What is off in places that cannot be told is not held."""
    given = table(parse_yaml_value(text, ""))
    linters = table(given.get("linters"))
    settings = {**table(given.get("linters-settings")), **table(linters.get("settings"))}
    listed = [table(given.get("issues")).get("exclude-rules"), table(linters.get("exclusions")).get("rules")]
    excluded = [table(each) for part in listed if isinstance(part, list) for each in part]
    for code in dict.fromkeys(texts(linters.get("enable"))):
        paths = [str(each.get("path", "")) for each in excluded if code in texts(each.get("linters"))]
        plain = [path.replace("\\.", ".").rstrip("$") for path in paths]
        if code not in texts(linters.get("disable")) and all(re.fullmatch(r"[\w./-]+\.go", path) for path in plain):
            yield from _go_linter(code, table(settings.get(code)), tuple(f"**/*{path}" for path in plain))


def _go_linter(code: str, own: Mapping[str, object], but: tuple[str, ...]) -> Iterator[Held]:
    most = own.get("lines", 60)
    if code == "lll":
        yield from too_long(code, own.get("line-length", 120), _GO, but)
    elif code == "forbidigo":
        yield from _forbidigo(own.get("forbid"), but)
    elif code == "depguard":
        groups = [own, *map(table, table(own.get("rules")).values())]
        lists = [
            each.get(key) for each in groups for key in ("deny", "packages") if each.get("list-type") != "allowlist"
        ]
        for denied in [each for part in lists if isinstance(part, list) for each in part]:
            name = denied if isinstance(denied, str) else table(denied).get("pkg")
            if isinstance(name, str) and not name.endswith("$"):
                yield refused_import(code, name, _GO, but)
    elif code == "funlen" and isinstance(most, int) and most > 0:
        what = f"has a function of more than {most} lines ({{name}}, {{lines}} lines)"
        yield Held(code, but=but, rules=(rule_for(writes=_GO, function_over=most),), what=what)
    else:
        yield Held(code, but=but, only=_GO)


def _forbidigo(forbidden: object, but: tuple[str, ...]) -> Iterator[Held]:
    listed = forbidden if isinstance(forbidden, list) else [r"^(fmt\.Print(|f|ln)|print|println)$"]
    for each in listed:
        pattern = each if isinstance(each, str) else table(each).get("p") or table(each).get("pattern")
        if not isinstance(pattern, str) or not _PLAIN.fullmatch(pattern):
            continue
        expression = pattern.strip("^$").removesuffix(".*").replace(r"\b", "")
        end = r"\w*\s*\(" if pattern.rstrip("$").endswith(".*") else r"\s*\("
        rule = rule_for(writes=_GO, code=rf"(?<![\w.])(?:{expression}){end}")
        yield Held("forbidigo", pattern, but, rules=(rule,), what="calls what may not be called ({match})")


def rubocop(text: str) -> Iterator[Held]:
    """``.rubocop.yml``: the cops that it enables, and the length of a line."""
    given = table(parse_yaml_value(text, ""))
    excluded = globs(table(given.get("AllCops")).get("Exclude"))
    for code, value in given.items():
        own = table(value)
        but = (*excluded, *globs(own.get("Exclude")))
        if code == "Layout/LineLength" and own.get("Enabled") is not False:
            yield from too_long(code, own.get("Max"), ("*.rb",), but)
        elif own.get("Enabled") is True:
            yield Held(code, but=but, only=("*.rb", "*.rake", "Gemfile", "Rakefile"))


def commitlint(text: str) -> Iterator[Held]:
    """commitlint: the types of messages that it takes."""
    found = list(objects_in(text)) if "{" in text else [given_in(text)]
    for each in found:
        value = table(each.get("rules")).get("type-enum")
        if isinstance(value, list) and len(value) == 3 and value[0] in (1, 2) and value[1] == "always":
            types = [name for name in texts(value[2]) if re.fullmatch(r"[\w-]+", name)]
            allowed = "|".join(f"{name}:*|{name}(*|{name}!*" for name in types)
            rule = rule_for(runs=(f"git commit -m|--message !--amend|--fixup|--squash !@{allowed}",))
            if types:
                yield Held(
                    "type-enum", rules=(rule,), what="has a message of none of the types " + ", ".join(types[:12])
                )
                return
    if "config-conventional" in text:
        yield Held("@commitlint/config-conventional", "config-conventional")


def pre_commit(text: str) -> Iterator[Held]:
    """``.pre-commit-config.yaml``: the branches on which nobody commits."""
    repos = table(parse_yaml_value(text, "")).get("repos")
    for repo in repos if isinstance(repos, list) else ():
        hooks = table(repo).get("hooks")
        for hook in map(table, hooks if isinstance(hooks, list) else ()):
            if hook.get("id") == "no-commit-to-branch":
                words = texts(hook.get("args"))
                named = [word.rpartition("=")[2] for word in words if re.fullmatch(r"(?:--branch=|-b=)?[\w./-]+", word)]
                for branch in [name for name in named if not name.startswith("-")] or ["main", "master"]:
                    yield Held("no-commit-to-branch", values={"branch": branch})
