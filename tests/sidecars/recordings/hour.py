"""The recorded hour, and a model that knows the right answers: what is asked and heard is all that is measured."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sidecars.observer.context.gather import gather
from sidecars.observer.factory import Components
from sidecars.observer.judge.model import CombinedJudge
from sidecars.observer.judge.rules import RulesJudge
from sidecars.observer.judge.verdict import Verdict
from sidecars.observer.observe.recorded import RecordedEvent
from sidecars.observer.standalone import private_assignment
from sidecars.tuning.replay import Replay, replay
from sidecars.type_reader.sidecar_type import Confidence
from sidecars.type_reader.type_loader import load_type
from tests.sidecars.recordings.record import SPEC, WRONG
from witness.config.settings import Settings
from witness.journal import Usage
from witness.judging.observation import Observation

LABELS = tuple(line.partition("  #")[0] for line in WRONG.values())
_BEGIN = 1_800_000_000.0


def moments(kind: str) -> list[RecordedEvent]:
    """The recording as hooks told it (``event``) or as the screen showed it (``screen``)."""
    found = []
    with gzip.open(Path(__file__).parent / "hour.jsonl.gz", "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            row = json.loads(line)
            if kind in row:
                payload, screen = row.get("event"), row.get("screen")
                found.append(RecordedEvent(_BEGIN + row["t"], f"{kind}-{number}", payload, screen))
    return found


class Oracle:
    """Finds every labelled line that it is shown, and nothing else; it remembers how often it was asked."""

    def __init__(self) -> None:
        self.calls = 0
        self.heard: set[str] = set()

    def close(self) -> None:
        pass

    def sift(self, seen: Sequence[Observation]) -> tuple[list[Verdict], list[Observation]]:
        return [], list(seen)

    def judge(
        self, seen: Sequence[Observation], said: Sequence[str] = (), hints: Mapping[str, str] | None = None
    ) -> list[Verdict]:
        self.calls += 1
        shown = "\n".join(observation.rendered() for observation in seen)
        found = [label for label in LABELS if label in shown and label not in self.heard]
        self.heard.update(found)
        usage = Usage(calls=1)
        verdicts = [
            Verdict(True, label, Confidence.HIGH, message=f"orders/http.py has {label!r}; api.md says otherwise.")
            for label in found
        ]
        return [replace(each, usage=usage if at == 0 else None) for at, each in enumerate(verdicts or [Verdict(False)])]


def run(workdir: Path, source: str, judge: str, *, estimate: bool = False) -> tuple[Replay, Oracle]:
    """Replay the hour for a specs sidecar.

    Args:
        workdir: an empty folder.
        source: ``event`` or ``screen``.
        judge: ``model`` or ``rules+model``.
        estimate: ask nobody, and count what a real model would have cost.
    """
    (workdir / "docs").mkdir(exist_ok=True)
    (workdir / "docs" / "api.md").write_text(SPEC)
    kind = replace(load_type("specs"), judge=judge, cooldown=0.0)
    assignment = private_assignment("specs", "docs/api.md", workdir, str(workdir))
    material = gather(kind, assignment)
    oracle = Oracle()
    rules = RulesJudge(kind.rules, material)
    parts = Components(kind, material, Settings(), oracle if judge == "model" else CombinedJudge(rules, oracle))
    return replay(parts, assignment, moments(source), estimate=estimate), oracle
