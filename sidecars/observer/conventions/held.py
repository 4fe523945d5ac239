"""What a configuration holds → rules: codes that the vocabulary knows, and what formatters set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sidecars.observer.conventions.spans import imports_of
from sidecars.observer.conventions.vocabulary import by_linter, rule_for, rules_for
from sidecars.type_reader.sidecar_type import Rule

# Where the line tells its linter to pass, the linter passes.
_SPARED = (
    r"(?i)#\s*noqa\b|pylint:\s*disable|eslint-disable|biome-ignore|oxlint-disable|rubocop:disable|#\[allow\(|"
    r"prettier-ignore|rustfmt::skip|//\s*nolint"
)
# No program indents these by what a project's code is indented by, and no line of theirs is too long.
_NO_CODE = ("*.md", "*.json", "*.lock", "*.svg", "*.csv", "*.txt", "*.snap", "*.html", "*.po")
SCRIPTS = ("*.js", "*.jsx", "*.mjs", "*.cjs", "*.ts", "*.tsx", "*.mts", "*.cts", "*.vue", "*.svelte")


@dataclass(frozen=True, slots=True)
class Held:
    """One thing that a configuration switches on.

    Args:
        code: the linter's, or the setting's.
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


def rules_of(held: Held, text: str, title: str) -> Iterator[Rule]:
    """The rules of what is held, with its line.

    Args:
        held: it.
        text: the configuration's.
        title: its name from the workdir.
    """
    made = [(rule, held.what) for rule in held.rules]
    for concern in () if held.rules else by_linter().get(held.code, ()):
        what = concern.what
        for name, value in (held.values or {}).items():
            what = what.replace("{" + name + "}", value)
        made += [(rule, what) for rule in rules_for(concern, held.values or {})]
    at = text.find(held.key or held.code)
    source = f"{title}:{text.count(chr(10), 0, max(at, 0)) + 1}"
    for rule, what in made:
        anywhere = not (rule.writes or rule.creates or rule.runs)
        subject = "'{ran}'" if rule.runs else "{path}"
        yield replace(
            rule,
            name=held.code.lower().replace("/", "-").lstrip("@"),
            writes=("**",) if anywhere else rule.writes,
            but_not=(*rule.but_not, *held.but),
            within=held.only or rule.within,
            unless=rule.unless or _SPARED,
            say=f"{subject} {what}; {source} asks for the opposite ({held.code})",
            source=source,
        )


def indented(
    code: str, style: object, files: tuple[str, ...], but: tuple[str, ...] = (), key: str = ""
) -> Iterator[Held]:
    """What is indented by the wrong sign.

    Args:
        code: the setting's.
        style: ``tab`` or ``space``; else nothing is asked for.
        files: globs of the files that it is about.
        but: those that it is not about.
        key: to be searched for its line.
    """
    if style not in ("tab", "space"):
        return
    if style == "space" and "*" in files:
        but = (*but, "*.md", "Makefile", "*.mk", "*.go")
    expression = r"^\t+\S" if style == "space" else r"^ {2,}[^\s*]"
    wrong = "tabs" if style == "space" else "spaces"
    yield Held(code, key, but, rules=(rule_for(writes=files, text=expression),), what=f"is indented by {wrong}")


def too_long(
    code: str, length: object, files: tuple[str, ...], but: tuple[str, ...] = (), key: str = ""
) -> Iterator[Held]:
    """Lines that are longer than a configuration allows; an address may be."""
    if not isinstance(length, int) or not 0 < length < 10_000:
        return
    rule = rule_for(writes=files, text=rf"^(?!.*https?://).{{{length + 1},}}$")
    yield Held(code, key, (*but, *_NO_CODE), rules=(rule,), what=f"has a line of more than {length} characters")


def refused_import(
    code: str, name: str, files: tuple[str, ...], but: tuple[str, ...] = (), only: tuple[str, ...] = ()
) -> Held:
    """A module that must not be imported; ``*`` stands for any part of its name."""
    whole = files == SCRIPTS and "*" not in name
    rules = tuple(
        replace(rule, writes=files) for rule in imports_of(name, whole=whole) if files == ("*.go",) or rule.code
    )
    if files == ("*.go",):
        rules = rules[1:]
    return Held(code, name, but, only, rules=rules, what=f"imports {shown(name)}")


def set_out(
    code: str, style: Mapping[str, object], but: tuple[str, ...] = (), only: tuple[str, ...] = ()
) -> Iterator[Held]:
    """What a formatter of scripts sets.

    Args:
        code: how the setting is named; ``{}`` stands for the single one.
        style: ``semi`` and ``singleQuote`` as Prettier has them, and ``indent`` (tab, space), as far as given.
        but, only: globs.
    """
    files = only or SCRIPTS
    yield from indented(code.format("useTabs"), style.get("indent"), files, but, "abs")
    if style.get("semi") is False:
        rule = rule_for(writes=files, code=r"^[ \t]*[^;\s].*;[ \t]*$")
        yield Held(code.format("semi"), "emi", but, rules=(rule,), what="ends a line with a semicolon")
    elif style.get("semi") is True:
        rule = rule_for(writes=files, text=r"^(?:import|export)\b[^;\n]*\bfrom[ \t]+['\"][^'\"\n]+['\"][ \t]*$")
        yield Held(code.format("semi"), "emi", but, rules=(rule,), what="leaves out a semicolon")
    if isinstance(style.get("singleQuote"), bool):
        wrong, name = ('"', "double") if style["singleQuote"] else ("'", "single")
        other = "'\"".replace(wrong, "")
        quoted = rf"{wrong}[^{wrong}{other}\\\n]*{wrong}"
        before = r"(?:\b(?:from|import)\s*|[ \t]=[ \t]|[(\[,][ \t]*|[:?][ \t]+|\b(?:return|case)[ \t]+)"
        rule = rule_for(writes=files, text=rf"^(?![ \t]*(?:\*|/\*))(?:(?!//)[^\n])*?{before}{quoted}")
        yield Held(code.format("singleQuote"), "uote", but, rules=(rule,), what=f"quotes a text by {name} quotes")


def texts(value: object) -> list[str]:
    """The texts of a list; nothing where it is none."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list | tuple) else []


def table(value: object) -> Mapping[str, object]:
    """A mapping with texts as keys; an empty one where it is none."""
    return {key: each for key, each in value.items() if isinstance(key, str)} if isinstance(value, Mapping) else {}


def globs(value: object) -> tuple[str, ...]:
    """Globs, one or several, with ``{a,b}`` told apart."""
    found = [value] if isinstance(value, str) else texts(value)
    return tuple(expanded for glob in found for expanded in braces(glob)[:64])


def braces(glob: str, left: int = 8) -> list[str]:
    """A glob for each alternative in its braces."""
    found = re.search(r"\{([^{}]*)\}", glob)
    if found is None or left == 0:
        return [glob]
    start, end = glob[: found.start()], glob[found.end() :]
    return [each for part in found[1].split(",")[:32] for each in braces(start + part + end, left - 1)][:256]


def shown(name: str) -> str:
    """A foreign name as it may stand in what is said: its braces are no places."""
    return name.replace("{", "(").replace("}", ")")[:80]
