"""What distilling has saved: one line for each question, and their sums.

A token is taken for four bytes, of the artifacts and of the answers alike. Counted as saved is what the agent would
have had to read: the artifacts, less the answer. Questions and answers are not written down.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sidecars.distill.answer import Answer
from witness.clock import Clock, SystemClock
from witness.names import MARKER_VARIABLE, GroupId

_BYTES_A_TOKEN = 4
_NAME = "distill.jsonl"
# An agent that asks of the same log a hundred times has not saved reading it a hundred times; nobody reads 1 GB.
MOST_SAVED = 1_000_000


@dataclass(slots=True)
class Sums:
    """Sums over questions.

    Args:
        questions: how many.
        answered, unverified, failed: how they ended.
        bytes_in: of the artifacts.
        bytes_out: of the answers.
        tokens_in, tokens_out: the same in tokens; an artifact counts for a million at the most.
        tokens_saved: what the agent did not have to read.
        model_tokens: what the backends' models read and wrote.
        dollars: what they cost.
        seconds: how long it took.
    """

    questions: int = 0
    answered: int = 0
    unverified: int = 0
    failed: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_saved: int = 0
    model_tokens: int = 0
    dollars: float = 0.0
    seconds: float = 0.0

    def add(self, line: dict[str, Any]) -> None:
        """Add one line of the ledger."""
        self.questions += 1
        outcome = line.get("outcome")
        self.answered += outcome == "ANSWERED"
        self.unverified += outcome == "UNVERIFIED"
        self.failed += outcome not in ("ANSWERED", "UNVERIFIED")
        for name in ("bytes_in", "bytes_out", "tokens_in", "tokens_out", "tokens_saved", "model_tokens"):
            setattr(self, name, getattr(self, name) + int(line.get(name, 0)))
        self.dollars += float(line.get("dollars", 0))
        self.seconds += float(line.get("seconds", 0))


class Ledger:
    """The ledger in one folder: a town's runtime folder, or the user's own.

    Args:
        folder: where it is; ``$XDG_STATE_HOME/gt-witness`` or ``~/.local/state/gt-witness`` when None.
        clock: for the time of each line.
    """

    def __init__(self, folder: Path | None = None, clock: Clock | None = None) -> None:
        self.path = (folder or _own_folder()) / _NAME
        self._clock = clock or SystemClock()

    def write(self, answer: Answer) -> None:
        """Add an answer. A ledger that cannot be written is no reason to lose the answer."""
        printed = len(json.dumps(answer.to_dict(), ensure_ascii=False).encode("utf-8", "replace"))
        tokens_in = min(MOST_SAVED, answer.bytes_in // _BYTES_A_TOKEN)
        tokens_out = printed // _BYTES_A_TOKEN
        group = GroupId.from_marker(os.environ.get(MARKER_VARIABLE, ""))
        line = {
            "time": datetime.fromtimestamp(self._clock.wall(), UTC).isoformat(timespec="seconds"),
            "run": group.marker if group else "",
            "backend": answer.spending.backend,
            "model": answer.spending.model,
            "outcome": answer.outcome.name,
            "bytes_in": answer.bytes_in,
            "bytes_out": printed,
            "tokens_in": tokens_in,
            "tokens_out": tokens_out,
            "tokens_saved": max(0, tokens_in - tokens_out),
            "model_tokens": answer.spending.input_tokens + answer.spending.output_tokens,
            "dollars": round(answer.spending.dollars, 6),
            "seconds": round(answer.seconds, 3),
        }
        # A newline on both sides: a line that a full disk has torn spoils itself alone.
        data = f"\n{json.dumps(line)}\n".encode()
        with suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, data)
            finally:
                os.close(fd)

    def lines(self) -> Iterator[dict[str, Any]]:
        """All lines that can be read."""
        try:
            with self.path.open("rb") as file:
                for raw in file:
                    with suppress(ValueError):
                        line = json.loads(raw)
                        if isinstance(line, dict):
                            yield line
        except FileNotFoundError:
            return

    def stats(self) -> dict[str, Any]:
        """Sums over all, and by run; questions from outside of any polecat have the run ``""``."""
        total, runs = Sums(), dict[str, Sums]()
        for line in self.lines():
            total.add(line)
            runs.setdefault(str(line.get("run", "")), Sums()).add(line)
        return {
            **_plain(total),
            "runs": [{"run": run, **_plain(sums)} for run, sums in runs.items()],
        }


def _plain(sums: Sums) -> dict[str, Any]:
    return {**asdict(sums), "dollars": round(sums.dollars, 6), "seconds": round(sums.seconds, 3)}


def _own_folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "gt-witness"
