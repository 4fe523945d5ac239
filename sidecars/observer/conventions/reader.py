"""A guide → the rules that it makes, each with its line and its words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from sidecars.observer.context.files import read_text
from sidecars.observer.conventions.held import braces
from sidecars.observer.conventions.places import Places
from sidecars.observer.conventions.polarity import ALLOWS
from sidecars.observer.conventions.sentences import sentences
from sidecars.observer.conventions.statements import Said, said_in
from sidecars.type_reader.sidecar_type import Rule

# Where projects write down how they work.
_NAMES = ("CLAUDE.md", "AGENTS.md", "CONVENTIONS.md", "CONTRIBUTING.md", "STYLE.md", "STYLEGUIDE.md", "GEMINI.md")
GUIDES = (
    *_NAMES, *map(str.lower, _NAMES), *(f"docs/{name}" for name in (*_NAMES, *map(str.lower, _NAMES))),
    "AGENT.md", "CLAUDE.local.md", "QWEN.md", "WARP.md", "CODING_STYLE.md", "CODE_STYLE.md", "STYLE_GUIDE.md",
    "HACKING.md", "DEVELOPMENT.md", "GUIDELINES.md", "CODING_GUIDELINES.md", "docs/*style*.md", "docs/*conventions*.md",
    "docs/*guidelines*.md", ".claude/CLAUDE.md", ".claude/rules/**/*.md", ".github/CONTRIBUTING.md",
    ".github/copilot-instructions.md", ".github/instructions/*.md", ".cursorrules", ".cursor/rules/**/*.md*",
    ".windsurfrules", ".windsurf/rules/*.md", ".clinerules", ".clinerules/*.md", ".roo/rules/*.md",
    ".junie/guidelines.md", ".kiro/steering/*.md", "CONTRIBUTING.rst", "CONTRIBUTING", "*/CLAUDE.md", "*/AGENTS.md",
    "*/*/CLAUDE.md", "*/*/AGENTS.md",
)  # fmt: skip
# Clients take up a file that a guide of theirs names by @.
_IMPORT = re.compile(r"(?:^|(?<=\s))@((?:[\w.-]+/)*[\w.-]+\.(?:md|mdc|txt))\b", re.MULTILINE)
_MOST_IMPORTED = 30
_HEAD = re.compile(r"\A\ufeff?---[ \t]*\n((?:.*\n)*?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
# For which files clients give a guide to the agent.
_FOR_FILES = re.compile(
    r"^(?:globs|paths|applyTo|fileMatchPattern)[ \t]*:[ \t]*(.*(?:\n[ \t]*-[ \t]+.*)*)", re.MULTILINE
)
_QUOTE = 180
# Package managers by their names in the vocabulary.
_MANAGERS = frozenset(["no-npm", "no-yarn", "no-pnpm", "no-bun", "no-pip", "no-poetry", "no-pipenv"])


def guide_body(text: str) -> tuple[str, tuple[str, ...]]:
    """A guide without its front matter, and the globs of the files for which its front matter says that it is.

    The front matter is read by its lines: what clients take there (``globs: *.ts``) is often no YAML.
    """
    head = _HEAD.match(text)
    if head is None:
        return text, ()
    named = _FOR_FILES.search(head[1])
    words = re.findall(r"(?:\{[^}\n]*\}|[^\s,\[\]\"'{])+", named[1]) if named else []
    globs = tuple(each for word in words if word != "-" for each in braces(word))
    return text[head.end() :], () if "**" in globs or "**/*" in globs else globs


def with_imported(paths: Iterable[Path], workdir: Path) -> list[Path]:
    """Guides, and the project's files that they take up by ``@docs/style.md``."""
    found = dict.fromkeys(paths)
    waiting = list(found)
    while waiting and len(found) < len(GUIDES) + _MOST_IMPORTED:
        path = waiting.pop(0)
        if path.suffix.lower() != ".md":
            continue
        for named in _IMPORT.findall(read_text(path)):
            for place in (path.parent / named, workdir / named):
                if place not in found and place.is_file() and place.resolve().is_relative_to(workdir.resolve()):
                    found[place] = None
                    waiting.append(place)
    return list(found)


def read_guide(text: str, title: str, first: int = 1) -> tuple[Rule, ...]:
    """The rules that a guide makes, each with its line and its words.

    Args:
        text: the document.
        title: how it is named, from the workdir; a guide below it holds for its own folder.
        first: the number of its first line.
    """
    said = [each for sentence in sentences(text, first) for each in said_in(sentence)]
    # What is allowed somewhere in a guide without a place is not forbidden by it elsewhere.
    free = {each.name for each in said if each.polarity == ALLOWS and not each.places.given}
    flags = [
        run
        for each in said
        if each.polarity == ALLOWS
        for rule in each.rules
        for run in rule.runs
        if run.startswith("* ")
    ]
    programs = [each.name for each in said if each.polarity == ALLOWS and each.name in _MANAGERS]
    rules: list[Rule] = []
    for each in said:
        if each.name.startswith("only-") and programs:
            continue
        if each.polarity == ALLOWS or each.name in free:
            continue
        excepted = [
            other.places
            for other in said
            if other.polarity == ALLOWS and other.name == each.name and other.places.given
        ]
        rules += _worded(_spared(each, flags), title, excepted)
    folder = title.rpartition("/")[0]
    if folder and folder.split("/")[0] not in ("docs", ".github", ".claude", ".cursor"):
        rules = [replace(rule, within=rule.within or (f"{folder}/",)) for rule in rules]
    return distinct(rules)


def distinct(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules, each with a name of its own: the second of a name is ``name-2``."""
    counts: Counter[str] = Counter()
    named = []
    for rule in rules:
        counts[rule.name] += 1
        named.append(replace(rule, name=f"{rule.name}-{counts[rule.name]}") if counts[rule.name] > 1 else rule)
    return tuple(named)


def _spared(said: Said, flags: list[str]) -> Said:
    """What is said, but of commands with one of these flags."""
    spared = " ".join(f"!{flag.removeprefix('* ')}" for flag in flags)
    if not spared:
        return said
    return replace(
        said, rules=tuple(replace(rule, runs=tuple(f"{run} {spared}" for run in rule.runs)) for rule in said.rules)
    )


def _worded(said: Said, title: str, excepted: Iterable[Places]) -> Iterator[Rule]:
    quote = " ".join(said.sentence.text.split())
    if len(quote) < 25 and said.sentence.whole:
        quote = said.sentence.whole
    quote = (quote[: _QUOTE - 1] + "…" if len(quote) > _QUOTE else quote).replace("{", "(").replace("}", ")")
    source = f"{title}:{said.sentence.line}"
    for rule in said.rules:
        placed = said.places.put_on(rule)
        for places in excepted:
            placed = replace(placed, but_not=(*placed.but_not, *places.only, *places.files))
        subject = "{path}" if placed.writes or placed.creates or placed.changes or placed.adds_dependency else "'{ran}'"
        if subject == "'{ran}'" and not placed.runs:
            placed = replace(placed, writes=("**",))
            subject = "{path}"
        what = said.what
        yield replace(
            placed,
            name=said.name,
            say=f"{subject} {what}; {source} says: “{quote}”",
            source=source,
        )
