"""A guide → the rules that it makes, each with its line and its words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from sidecars.observer.conventions.places import Places
from sidecars.observer.conventions.polarity import ALLOWS
from sidecars.observer.conventions.sentences import sentences
from sidecars.observer.conventions.statements import Said, said_in
from sidecars.type_reader.sidecar_type import Rule

# Where projects write down how they work.
GUIDES = (
    "CONVENTIONS.md", "CONTRIBUTING.md", "CLAUDE.md", "AGENTS.md", "GEMINI.md", "STYLE.md", "STYLEGUIDE.md",
    ".claude/CLAUDE.md", "docs/CONVENTIONS.md", "docs/conventions.md", "docs/CONTRIBUTING.md", "docs/contributing.md",
    "docs/style.md", "docs/STYLE.md", ".github/CONTRIBUTING.md", ".github/copilot-instructions.md", ".cursorrules",
    ".cursor/rules/*.md*", ".windsurfrules", "CONTRIBUTING.rst", "CONTRIBUTING", "HACKING.md",
)  # fmt: skip
_QUOTE = 180
# Package managers by their names in the vocabulary.
_MANAGERS = frozenset(["no-npm", "no-yarn", "no-pnpm", "no-bun", "no-pip", "no-poetry", "no-pipenv"])


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
