"""Questions as command line and MCP server put them: settings, keys, sidecars and the ledger around the library."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from witness.assignment import Assignment
from witness.config.keys import find_key
from witness.config.settings import Settings
from witness.config.town import Town
from witness.errors import NotFoundError, TownNotFoundError, UsageError, WitnessError
from witness.files import read_text
from witness.trust.settings import trusted_settings

if TYPE_CHECKING:
    from sidecars.distill import Answer
    from sidecars.distill.ledger import Ledger
    from witness.clock import Clock


def _silent(_: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Asking:
    """How questions are put.

    Args:
        backend: ``model``, ``claude``, ``index``, or ``auto``: model when the sidecars' key is set, else index.
        limits: fields of ``sidecars.distill.Limits``; an empty model means the town's.
        progress: told what is being done.
        clock: where the time comes from; the system's when None.
    """

    backend: str = "auto"
    limits: dict[str, Any] = field(default_factory=dict)
    progress: Callable[[str], None] = _silent
    clock: Clock | None = None

    def artifacts(self, paths: Iterable[str | Path], question: str, *, ignore: bool = True) -> Answer:
        """Ask about files and folders.

        Raises:
            WitnessError: as ``sidecars.distill.distill`` does.
        """
        from sidecars.distill import distill

        with _standard_input(paths) as (meant, names):
            answer = distill(meant, question, ignore=ignore, progress=self.progress, clock=self.clock, **self._meant())
        ledger().write(answer)
        return _renamed(answer, names)

    def sidecar(self, target: str, question: str) -> Answer:
        """Ask about the context of a sidecar.

        Args:
            target: ``TARGET/SIDECAR``; inside a polecat the sidecar alone.
            question: what is asked.

        Raises:
            WitnessError: there is no such sidecar, it has no documents, or as ``artifacts``.
        """
        import tempfile

        from witness.cli.sidecar import documents

        assignment = _assignment(target)
        with tempfile.TemporaryDirectory(prefix="gt-ask-") as place:
            names = documents(assignment, Path(place))
            answer = self.artifacts(list(names), question)
        return _renamed(answer, names)

    def _meant(self) -> dict[str, Any]:
        from sidecars.distill import Limits
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
        meant = {"backend": backend, "limits": Limits(**limits)}
        if backend == "model":
            from sidecars.distill import Endpoint

            meant["endpoint"] = Endpoint(key, "", settings.model_url, settings.prices)
        return meant


# Names that mean what is piped into us.
_STANDARD_INPUT = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})


@contextmanager
def _standard_input(paths: Iterable[str | Path]) -> Iterator[tuple[list[str], dict[str, str]]]:
    """The paths with what is piped into us as a file, and for that file the name by which it was declared."""
    declared = [os.fspath(path) for path in paths]
    if not _STANDARD_INPUT & set(declared):
        yield declared, {}
        return
    import shutil
    import sys
    import tempfile

    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("nothing is piped in: write  some-program | gt distill --artifact - --question ...")
    # /tmp is memory on many machines, and what is piped in may be large.
    folder = os.environ.get("TMPDIR") or ("/var/tmp" if Path("/var/tmp").is_dir() else None)  # noqa: S108
    with tempfile.TemporaryDirectory(prefix="gt-distill-", dir=folder) as place:
        spooled = Path(place) / "stdin"
        with spooled.open("wb") as out:
            shutil.copyfileobj(sys.stdin.buffer, out, 1 << 20)
        names = {str(spooled): next(each for each in declared if each in _STANDARD_INPUT)}
        yield [str(spooled) if each in _STANDARD_INPUT else each for each in declared], names


def _renamed(answer: Answer, names: Mapping[str, str]) -> Answer:
    """The answer with the names by which its artifacts are known to who asked."""
    gaps = answer.gaps
    for path, name in names.items():
        gaps = tuple(gap.replace(path, name) for gap in gaps)
    return replace(
        answer,
        evidence=tuple(replace(each, path=names.get(each.path, each.path)) for each in answer.evidence),
        sources=tuple(replace(each, path=names.get(each.path, each.path)) for each in answer.sources),
        gaps=gaps,
    )


def ledger() -> Ledger:
    """The town's ledger, the user's own outside of any town."""
    from sidecars.distill.ledger import Ledger

    try:
        return Ledger(Town.find().runtime)
    except TownNotFoundError:
        return Ledger()


def _settings() -> Settings:
    try:
        return trusted_settings(Town.find().root)
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
        raise NotFoundError("sidecar", name, f"this polecat has {', '.join(known) or 'none'}", known)
    try:
        return Assignment.from_json(read_text(folder / f"{name}.json", below=folder.parents[1]))
    except (OSError, ValueError) as error:
        raise WitnessError(f"{folder / name}.json cannot be read: {error}") from error
