"""What a sidecar knows besides what it sees: its context, gathered once when it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sidecars.type_reader.sidecar_type import Rule


@dataclass(frozen=True, slots=True)
class Context:
    """A sidecar's context.

    Args:
        sets: globs by set name, as rules name them with ``@``.
        documents: title and text of what a model is given.
        names: where each API of the project is defined that its argument lists, by folded name.
        blocks: types of the blocks that the polecat's prompt holds; None when its prompt is not known.
        library: text by block type, for blocks that a prompt lacks.
        library_sources: where each of those texts stands, as ``file:line``, as far as it is a file of the project.
        rules: rules that stand in the front matter of the documents.
    """

    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    documents: tuple[tuple[str, str], ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    blocks: frozenset[str] | None = None
    library: Mapping[str, str] = field(default_factory=dict)
    library_sources: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
