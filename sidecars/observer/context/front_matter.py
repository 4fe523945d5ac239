"""What the authors of issues, specs and conventions say to sidecars in a document's front matter.

``files:`` and ``not:`` are lists of globs; ``rules:`` are rules as in ``sidecar.yaml``, with their words in ``say``.
"""

from __future__ import annotations

from dataclasses import dataclass

from sidecars.type_reader.rule_reader import read_rules
from sidecars.type_reader.sidecar_type import Rule
from witness.config.yaml_document import Document, parse_yaml
from witness.errors import DeclarationError, Problem


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The part of a document that sidecars read.

    Args:
        sets: ``files`` and ``not``, as far as given.
        rules: the rules.
        body: the document without its front matter.
    """

    sets: dict[str, tuple[str, ...]]
    rules: tuple[Rule, ...]
    body: str


def read_front_matter(text: str, path: str) -> FrontMatter:
    """Split a document into what is said to sidecars and the rest. Other keys are somebody else's.

    Args:
        text: the document.
        path: named in errors.

    Raises:
        DeclarationError: the front matter is not YAML, or one of the keys is wrong.
    """
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    end = 0
    if lines and lines[0].strip() == "---":
        end = next((at for at, line in enumerate(lines[1:], 1) if line.strip() in ("---", "...")), 0)
    if not end:
        return FrontMatter({}, (), text)
    document = parse_yaml("".join(lines[1:end]), path, first_line=2)
    problems: list[Problem] = []
    rules: tuple[Rule, ...] = ()
    if "rules" in document.values:
        rules = read_rules(document, document.values["rules"], problems)
    sets = _sets(document, problems)
    if problems:
        raise DeclarationError(problems)
    return FrontMatter(sets, rules, "".join(lines[end + 1 :]))


def _sets(document: Document, problems: list[Problem]) -> dict[str, tuple[str, ...]]:
    sets = {}
    for key in ("files", "not"):
        value = document.values.get(key)
        if isinstance(value, str):
            value = value.split(",")
        if value is None:
            continue
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            problems.append(document.problem("must be a list of paths or globs", key))
            continue
        sets[key] = tuple(each.strip() for each in value if each.strip())
    return sets
