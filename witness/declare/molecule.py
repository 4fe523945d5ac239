"""A molecule: the formula that declares a polecat's work and, in ``[vars.sidecars]``, who observes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from witness.config.town import Town
from witness.declare.cook import walk
from witness.declare.document import Document, find_beside, find_formula, read_document
from witness.declare.formula import (
    Step,
    check_as_bd,
    check_formula,
    formula_kind,
    formula_name,
    formula_texts,
    read_steps,
    slips,
    unknown_keys,
)
from witness.declare.source import Source
from witness.declare.variables import SIDECARS, Variable, fill, placeholders, read_variables, resolve, variable_slips
from witness.errors import DeclarationError, NotFoundError, Problem
from witness.process.limits import LIMITS, parse_limit

ASKING_KEYS = ("agent", *LIMITS)


@dataclass(frozen=True, slots=True)
class Molecule:
    """A formula with its parents merged in.

    Args:
        name: what it calls itself, else its file's name.
        path: its file.
        document: what that file holds.
        declared: all variables, the parents' first, each overridden by its child.
        steps: the parents' steps, then its own; one with the same id takes its parent's place.
        parents: the files of all formulas that it extends, nearest first.
        warnings: keys that nobody reads.
        limits: what its agent may use of the machine, each with the file that says so; see ``Limits``.
        asks: by file, what asks for trust where the file came with a project: its agent and its limits.
        tables: the steps as they stand in the files, the parents' merged in.
        composition: ``[compose]`` likewise.
        advice: its own; none where it extends another, for ``bd`` leaves that aside.
    """

    name: str
    path: Path
    document: Document
    declared: Mapping[str, Variable] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    parents: tuple[Path, ...] = ()
    warnings: tuple[Problem, ...] = ()
    limits: Mapping[str, tuple[Path, int | None]] = field(default_factory=dict)
    asks: Mapping[Path, Mapping[str, Any]] = field(default_factory=dict)
    tables: tuple[Mapping[str, Any], ...] = ()
    composition: Mapping[str, Any] = field(default_factory=dict)
    advice: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def load(
        cls, name_or_path: str | Path, town: Town | None = None, workdir: Path | None = None, *, strict: bool = False
    ) -> Molecule:
        """Read a molecule and everything that it extends.

        Args:
            name_or_path: a file, or a name that is looked for as Gas Town does it.
            town, workdir: where names are looked for.
            strict: also refuse what only holds ``[vars]``; without it such a file may be spawned, as a bare
                declaration of sidecars.

        Raises:
            NotFoundError: there is no such file.
            DeclarationError: it or a parent is wrong. Holds all faults, each with file, line and key.
        """
        return cls._read(find_formula(str(name_or_path), town, workdir), _Reader(town, workdir, strict=strict))

    @classmethod
    def of_gas_town(cls, name: str, town: Town, workdir: Path) -> Molecule:
        """Read a formula that Gas Town has attached to its own work.

        Gas Town carries formulas within its program, which nobody else can read. Ours of the same name do not stand in
        for them: every polecat of its default formula would have sidecars that nobody asked for. A parent that is
        nowhere on the disk is left out.

        Args:
            name: its name.
            town: the town's root.
            workdir: where the polecat will work.

        Raises:
            NotFoundError, DeclarationError: as ``load``.
        """
        path = find_formula(name, town, workdir, shipped=False)
        return cls._read(path, _Reader(town, workdir, strict=False, shipped=False))

    @classmethod
    def _read(cls, path: Path, reader: _Reader) -> Molecule:
        molecule = reader.read(path, ())
        if reader.problems:
            raise DeclarationError(reader.problems)
        assert molecule is not None  # noqa: S101 - without problems there is one
        return molecule

    @property
    def agent(self) -> str:
        """The agent that the formula asks for, empty when it leaves the choice to others."""
        given = self.document.raw.get("agent", "")
        return given if isinstance(given, str) else ""

    @property
    def worktree(self) -> bool | None:
        """Whether its polecat wants a worktree of its own; None where the formula does not say."""
        given = self.document.raw.get("worktree")
        return given if isinstance(given, bool) else None

    @property
    def kind(self) -> str:
        """workflow, convoy, expansion or aspect; empty for bare variables."""
        return formula_kind(self.document)

    @property
    def description(self) -> str:
        """What the formula says of itself."""
        return str(self.document.raw.get("description", ""))

    def variables(self, given: Mapping[str, str]) -> dict[str, str]:
        """Every variable's value: what is given, else the child's default, else the parent's, else empty.

        Args:
            given: values from the command line, by name.

        Raises:
            DeclarationError: a required one is missing, or a value is not allowed. Holds all such faults.
        """
        values, problems = resolve(self.declared, given)
        if problems:
            raise DeclarationError(problems)
        return values

    def sidecars(self, given: Mapping[str, str]) -> str:
        """The sidecars' spec string with its placeholders filled; empty when none are declared.

        Args:
            given: values from the command line, by name.

        Raises:
            DeclarationError: as ``variables``, or a placeholder names no variable.
        """
        values = self.variables(given)
        text = values.get(SIDECARS, "")
        unknown = [name for name in placeholders(text) if name not in values]
        if unknown:
            where = self.sidecars_source(given)
            raise DeclarationError(
                [
                    where.problem(f'{{{{{name}}}}} names no variable: declare it with [vars.{name}] default = ""')
                    for name in unknown
                ]
            )
        return fill(text, values)

    def undefined_placeholders(self) -> list[Problem]:
        """A fault for each ``{{name}}`` in the formula's texts that is no variable: bd would refuse to pour it."""
        inputs = self.document.raw.get("inputs", {})
        found: dict[str, Problem] = {}
        for place, text in formula_texts(self.document):
            for name in placeholders(text):
                if name not in self.declared and name not in inputs and name not in found:
                    form = f'[vars.{name}] with default = ""'
                    found[name] = self.document.source(*place).problem(f"{{{{{name}}}}} is no variable: declare {form}")
        return list(found.values())

    def sidecars_source(self, given: Mapping[str, str]) -> Source:
        """Where the spec string was written: the flag when it was given, else its place in the file.

        Args:
            given: values from the command line, by name.
        """
        if SIDECARS in given:
            return Source("--var", 0, SIDECARS)
        variable = self.declared.get(SIDECARS)
        return variable.source if variable else Source(str(self.path))


class _Reader:
    """Reads a formula and its parents, and gathers the faults of all of them."""

    def __init__(self, town: Town | None, workdir: Path | None, *, strict: bool, shipped: bool = True) -> None:
        self._town, self._workdir, self._strict, self._shipped = town, workdir, strict, shipped
        self.problems: list[Problem] = []

    def read(self, path: Path, chain: tuple[Path, ...]) -> Molecule | None:
        try:
            document = read_document(path)
        except DeclarationError as error:
            self.problems += error.problems
            return None
        self.problems += check_formula(document, strict=self._strict)
        faults, warnings = unknown_keys(document)
        # Of a formula that Gas Town has attached nobody here wrote the keys.
        self.problems += faults if self._shipped else []
        declared: dict[str, Variable] = {}
        steps: list[Step] = []
        parents: list[Path] = []
        limits: dict[str, tuple[Path, int | None]] = {}
        asks: dict[Path, Mapping[str, Any]] = {}
        tables: dict[str, Mapping[str, Any]] = {}
        composition: Mapping[str, Any] = {}
        chain = (*chain, path.resolve())
        for at, name in enumerate(_extended(document)):
            parent = self._parent(document, at, name, chain)
            if parent is None:
                continue
            for key, variable in parent.declared.items():
                declared.setdefault(key, variable)
            warnings += parent.warnings
            steps += parent.steps
            tables |= {str(step.get("id", "")): step for step in parent.tables}
            composition = _merge_composition(composition, parent.composition)
            limits = {**parent.limits, **limits}
            asks |= parent.asks
            parents += [parent.path, *parent.parents]
        own, problems = read_variables(document)
        self.problems += problems
        if self._strict:
            self.problems += check_as_bd(document, (str(step.get("id", "")) for step in walk(tables.values())))
        warnings += [*slips(document), *variable_slips(document, own), *_left_aside(document, composition)]
        limits |= self._limits(document)
        return Molecule(
            formula_name(document),
            path,
            document,
            {**declared, **own},
            _merge_steps(steps, read_steps(document)),
            tuple(dict.fromkeys(parents)),
            tuple(warnings),
            limits,
            asks | {path: {key: document.raw[key] for key in ASKING_KEYS if key in document.raw}},
            tuple((tables | {str(step.get("id", "")): step for step in _own_tables(document, "steps")}).values()),
            _merge_composition(composition, document.raw.get("compose") or {}),
            () if document.raw.get("extends") else tuple(_own_tables(document, "advice")),
        )

    def _limits(self, document: Document) -> dict[str, tuple[Path, int | None]]:
        found = {}
        for name in LIMITS:
            if name in document.raw:
                try:
                    found[name] = (document.path, parse_limit(name, document.raw[name]))
                except ValueError as error:
                    self.problems.append(document.source(name).problem(str(error)))
        return found

    def _parent(self, document: Document, at: int, name: str, chain: tuple[Path, ...]) -> Molecule | None:
        source = document.source("extends", at)
        try:
            path = find_beside(name, document.path, self._town, self._workdir, shipped=self._shipped)
        except NotFoundError as error:
            if self._shipped:
                self.problems.append(source.problem(str(error)))
            return None
        if path.resolve() in chain:
            way = " → ".join(each.name for each in (*chain, path.resolve()))
            self.problems.append(source.problem(f"extends itself in a circle: {way}"))
            return None
        return self.read(path, chain)


def _merge_composition(parent: Mapping[str, Any], child: Mapping[str, Any]) -> Mapping[str, Any]:
    """As ``bd`` does it: of two only the expansions come together, all else of either is left aside."""
    if not parent or not child:
        return parent or child
    return {key: [*parent.get(key, ()), *child.get(key, ())] for key in ("expand", "map")}


def _left_aside(document: Document, inherited: Mapping[str, Any]) -> list[Problem]:
    """What a formula says beside ``extends`` and ``bd`` does not read there."""
    own = document.raw.get("compose") if inherited else None
    keys = [key for key in own if key not in ("expand", "map")] if isinstance(own, Mapping) else []
    found = [document.source("compose", key) for key in keys]
    found += [document.source("advice")] if document.raw.get("extends") and document.raw.get("advice") else []
    return [source.problem("left aside by bd, as the formula extends another one that composes") for source in found]


def _own_tables(document: Document, key: str) -> list[dict[str, Any]]:
    raw = document.raw.get(key, [])
    return [dict(each) for each in raw if isinstance(each, Mapping)] if isinstance(raw, list) else []


def _extended(document: Document) -> list[str]:
    raw = document.raw.get("extends", [])
    return [each for each in raw if isinstance(each, str)] if isinstance(raw, list) else []


def _merge_steps(inherited: list[Step], own: tuple[Step, ...]) -> tuple[Step, ...]:
    merged = {step.id: step for step in inherited}
    for step in own:
        merged[step.id] = step
    return tuple(merged.values())
