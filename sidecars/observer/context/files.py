"""Reading the project's files for a sidecar's context."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sidecars.observer.context.fixed_texts import found, text_of
from sidecars.type_reader.rule_reader import read_rules
from sidecars.type_reader.sidecar_type import Rule
from witness.config.yaml_document import Document, parse_yaml
from witness.errors import DeclarationError, Problem
from witness.files import files_below, files_matching, is_glob, read_project

LONGEST_FILE = 200_000
_MOST_FILES = 50
# What is read of a folder.
_DOCUMENTS = frozenset([".md", ".txt", ".rst", ".adoc", ".yaml", ".json", ".toml"])


def read_text(path: Path) -> str:
    """Read a file of the project, at most 200,000 bytes of it; in a sidecar's context as it was at its first start.

    Raises:
        DeclarationError: it is missing, no regular file, a link that leads out of the repository, or cannot be read.
    """
    return text_of(path, read_now)


def read_now(path: Path) -> str:
    """``read_text`` of what stands there now."""
    try:
        return read_project(path, LONGEST_FILE, cut=True).decode("utf-8", "replace").removeprefix("\ufeff")
    except FileNotFoundError as error:
        raise DeclarationError([Problem("no such file", str(path))]) from error
    except OSError as error:
        raise DeclarationError([Problem(f"cannot be read: {error.strerror}", str(path))]) from error


def find(patterns: Iterable[str], workdir: Path, *, wanted: bool) -> list[Path]:
    """The files that paths and globs mean, in their order, each once.

    Args:
        patterns: paths or globs (``**`` for any depth), relative to ``workdir``.
        workdir: where they begin.
        wanted: a pattern that means nothing is a fault; else it is passed over.

    Raises:
        DeclarationError: a wanted pattern means no file.
    """
    patterns = list(patterns)
    paths = found(f"find {patterns} in {workdir}", lambda: [str(path) for path in _find(patterns, workdir, wanted)])
    return [Path(path) for path in paths]


def _find(patterns: Iterable[str], workdir: Path, wanted: bool) -> list[Path]:
    files_found: list[Path] = []
    problems = []
    for pattern in patterns:
        folder = workdir / pattern
        if not is_glob(pattern) and folder.is_dir():
            files = list(files_below(folder, lambda name: os.path.splitext(name)[1] in _DOCUMENTS))  # noqa: PTH122
        elif is_glob(pattern):
            files = files_matching(pattern, workdir)
        else:
            files = [path] if (path := workdir / os.path.expanduser(pattern)).is_file() else []  # noqa: PTH111
        if not files and wanted:
            missing = "no file matches this glob" if is_glob(pattern) else "no such file"
            problems.append(Problem(missing, str(workdir / pattern)))
        files_found += files[:_MOST_FILES]
    if problems:
        raise DeclarationError(problems)
    return list(dict.fromkeys(files_found))


def within(source: str, workdir: Path) -> str:
    """A ``file:line`` as it is named to an agent; empty where the file is none of the project's."""
    file, _, line = source.rpartition(":")
    if not file:
        return ""
    path = Path(file)
    if not path.is_absolute():
        return source if (workdir / path).is_file() else ""
    return f"{path.relative_to(workdir).as_posix()}:{line}" if path.is_relative_to(workdir) else ""


def title(path: Path, workdir: Path) -> str:
    """How a document is named to a model: from the workdir."""
    try:
        return path.relative_to(workdir).as_posix()
    except ValueError:
        return str(path)


# What the authors of issues, specs and conventions say to sidecars in a document's front matter.
#
# `files:` and `not:` are lists of globs; `rules:` are rules as in `sidecar.yaml`, with their words in `say`.


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
