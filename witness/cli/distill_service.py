"""Questions as command line and MCP server put them: settings, keys, sidecars and the ledger around the library."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from witness.assignment import Assignment
from witness.config.keys import find_key
from witness.config.settings import Settings, load_settings
from witness.config.town import Town
from witness.errors import NotFoundError, TownNotFoundError, WitnessError
from witness.files import read_text

if TYPE_CHECKING:
    from sidecars.distill import Answer
    from sidecars.distill.ledger import Ledger


def _silent(_: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Asking:
    """How questions are put.

    Args:
        backend: ``model``, ``claude``, ``index``, or ``auto``: model when the sidecars' key is set, else index.
        limits: fields of ``sidecars.distill.Limits``; an empty model means the town's.
        progress: told what is being done.
    """

    backend: str = "auto"
    limits: dict[str, Any] = field(default_factory=dict)
    progress: Callable[[str], None] = _silent

    def artifacts(self, paths: Iterable[str | Path], question: str, *, ignore: bool = True) -> Answer:
        """Ask about files and folders.

        Raises:
            WitnessError: as ``sidecars.distill.distill`` does.
        """
        from sidecars.distill import distill

        answer = distill(paths, question, ignore=ignore, progress=self.progress, **self._meant())
        ledger().write(answer)
        return answer

    def sidecar(self, target: str, question: str) -> Answer:
        """Ask about the context of a sidecar.

        Args:
            target: ``TARGET/SIDECAR``; inside a polecat the sidecar alone.
            question: what is asked.

        Raises:
            WitnessError: there is no such sidecar, it has no documents, or as ``artifacts``.
        """
        import tempfile

        from witness.cli.sidecar_documents import documents

        assignment = _assignment(target)
        with tempfile.TemporaryDirectory(prefix="gt-ask-") as place:
            names = documents(assignment, Path(place))
            answer = self.artifacts(list(names), question)
        evidence = tuple(replace(each, path=names.get(each.path, each.path)) for each in answer.evidence)
        sources = tuple(replace(each, path=names.get(each.path, each.path)) for each in answer.sources)
        gaps = answer.gaps
        for path, name in names.items():
            gaps = tuple(gap.replace(path, name) for gap in gaps)
        return replace(answer, evidence=evidence, sources=sources, gaps=gaps)

    def _meant(self) -> dict[str, Any]:
        from sidecars.distill import Endpoint, Limits
        from sidecars.distill.errors import NoBackendError

        settings = _settings()
        key, backend = find_key(settings), self.backend
        if backend == "auto":
            backend = "model" if key else "index"
        elif backend == "model":
            # The agent's own key is spent only by who asks for this backend by name.
            key = key or os.environ.get("ANTHROPIC_API_KEY", "")
            if not key:
                raise NoBackendError(f"the model backend needs a key: set {settings.key_env}, or use --backend index")
        limits = {**self.limits, "model": self.limits.get("model") or settings.model}
        return {
            "backend": backend,
            "limits": Limits(**limits),
            "endpoint": Endpoint(key, "", settings.model_url, settings.prices),
        }


def ledger() -> Ledger:
    """The town's ledger, the user's own outside of any town."""
    from sidecars.distill.ledger import Ledger

    try:
        return Ledger(Town.find().runtime)
    except TownNotFoundError:
        return Ledger()


def _settings() -> Settings:
    try:
        return load_settings(Town.find().root)
    except TownNotFoundError:
        return Settings()  # a question needs no town


def _assignment(target: str) -> Assignment:
    from witness.cli.context import open_journal, own_group
    from witness.names import split_sidecar_address

    town = Town.find()
    own = own_group()
    if "/" not in target.strip("/") and own is not None:
        run, name = own.run, target.strip("/")
    else:
        polecat, name = split_sidecar_address(target)
        with open_journal(town) as journal:
            run = journal.groups.find(polecat, ended=True).id.run
    folder = town.run_dir(run) / "sidecars"
    known = sorted(path.stem for path in folder.glob("*.json"))
    if name not in known:
        raise NotFoundError("sidecar", name, f"this polecat has {', '.join(known) or 'none'}")
    try:
        return Assignment.from_json(read_text(folder / f"{name}.json", below=folder.parents[1]))
    except (OSError, ValueError) as error:
        raise WitnessError(f"{folder / name}.json cannot be read: {error}") from error
