"""Configurations of linters and formatters → rules, for what the vocabulary knows under their codes.

Only what is certainly switched on counts: a code that is selected and not ignored, a severity that is not off.
"""

from __future__ import annotations

import configparser
from collections.abc import Callable, Iterator
from fnmatch import fnmatch

from sidecars.observer.conventions import other_linters, python_linters, script_linters
from sidecars.observer.conventions.held import Held, rules_of
from sidecars.type_reader.sidecar_type import Rule
from witness.errors import DeclarationError

# By name; the first that fits reads it.
_READERS: tuple[tuple[str, Callable[[str], Iterator[Held]]], ...] = (
    ("pyproject.toml", python_linters.pyproject),
    ("ruff.toml", python_linters.ruff),
    (".ruff.toml", python_linters.ruff),
    ("setup.cfg", python_linters.ini),
    ("tox.ini", python_linters.ini),
    (".flake8", python_linters.ini),
    ("mypy.ini", python_linters.ini),
    (".pylintrc", python_linters.pylintrc),
    ("pylintrc", python_linters.pylintrc),
    ("package.json", script_linters.package),
    (".eslintrc.*js", script_linters.eslint_script),
    ("eslint.config.*", script_linters.eslint_script),
    (".eslintrc*", script_linters.eslint),
    (".oxlintrc.json", script_linters.eslint),
    (".stylelintrc*", script_linters.eslint),
    ("biome.json*", script_linters.biome),
    (".prettierrc*", script_linters.prettier),
    ("prettier.config.*", script_linters.prettier),
    (".editorconfig", other_linters.editorconfig),
    ("Cargo.toml", other_linters.cargo),
    ("clippy.toml", other_linters.clippy),
    (".clippy.toml", other_linters.clippy),
    ("rustfmt.toml", other_linters.rustfmt),
    (".rustfmt.toml", other_linters.rustfmt),
    (".golangci.y*ml", other_linters.golangci),
    (".rubocop.yml", other_linters.rubocop),
    (".commitlintrc*", other_linters.commitlint),
    ("commitlint.config.*", other_linters.commitlint),
    (".pre-commit-config.yaml", other_linters.pre_commit),
)
CONFIGURATIONS = tuple(glob for glob, _ in _READERS)
# A configuration of more signs than this is data.
_LONGEST = 300_000


def read_configuration(text: str, title: str) -> tuple[Rule, ...]:
    """The rules that a configuration makes; none when it cannot be read.

    Args:
        text: the file's.
        title: its name from the workdir.
    """
    name = title.rpartition("/")[2]
    reader = next((reader for glob, reader in _READERS if fnmatch(name, glob)), None)
    if reader is None or len(text) > _LONGEST:
        return ()
    try:
        return tuple(rule for held in reader(text) for rule in rules_of(held, text, title))
    except (ValueError, configparser.Error, DeclarationError, RecursionError):
        return ()
