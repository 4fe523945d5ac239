"""The judge that is any program: the observation as JSON on its stdin, the verdict as JSON on its stdout."""

from __future__ import annotations

import json
import os
import secrets
import select
import selectors
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from sidecars.observer.context import Context
from sidecars.observer.judge.signal_tool import find_reports
from sidecars.observer.judge.verdict import Verdict
from sidecars.type_reader.sidecar_type import SidecarType
from witness.clock import Clock, SystemClock
from witness.errors import DeclarationError
from witness.journal.records import Usage
from witness.judging.observation import Observation
from witness.names import HELPER_VARIABLE, MARKER_VARIABLE
from witness.process.child_programs import TOKEN_VARIABLE, end_tree, has_ended
from witness.trust.definition import file_digest

_LONGEST_ANSWER = 64 << 10
_LONGEST_COMPLAINT = 300
# All that it finds of our environment. A key may have any name, and Gas Town's variables would let a `gt` that the
# program calls speak in the polecat's name.
_GIVEN = frozenset(
    [
        "HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TMPDIR",
        "TZ",
        "USER",
        "XDG_RUNTIME_DIR",
        MARKER_VARIABLE,
        HELPER_VARIABLE,
    ]
)


class CommandJudge:
    """Runs a program for each look.

    It is given ``{"sidecar", "context": [{"title", "text"}], "said": [...], "observations": [...]}`` and answers with
    what ``report_signal`` takes, once or for each ``observation`` (its id); no output and exit code 0 mean silence.

    Args:
        kind: the type, for its command and deadline.
        material: its context.
        workdir: where the program runs.
        clock: where the time comes from.
    """

    def __init__(self, kind: SidecarType, material: Context, workdir: Path, clock: Clock | None = None) -> None:
        self._kind, self._material, self._workdir = kind, material, workdir
        self._clock = clock or SystemClock()

    def close(self) -> None:
        """It holds nothing open."""

    def sift(self, seen: Sequence[Observation]) -> tuple[list[Verdict], list[Observation]]:
        return [], list(seen)

    def judge(self, seen: Sequence[Observation], said: Sequence[str] = ()) -> list[Verdict]:
        if not seen:
            return []
        began = self._clock.monotonic()
        try:
            first, *others = self._ask(seen, said)
        except (OSError, ValueError, DeclarationError) as error:
            first, others = Verdict(False, error=f"command: {' '.join(str(error).split())[:_LONGEST_COMPLAINT]}"), []
        return [replace(first, usage=Usage(seconds=self._clock.monotonic() - began)), *others]

    def _ask(self, seen: Sequence[Observation], said: Sequence[str]) -> list[Verdict]:
        question = {
            "sidecar": self._kind.name,
            "context": [{"title": title, "text": text} for title, text in self._material.documents],
            "said": list(said),
            "observations": [asdict(observation) | {"rendered": observation.rendered()} for observation in seen],
        }
        # Files, not pipes: a program that does not read its question, or complains at length, blocks nobody.
        for path, digest in self._kind.programs.items():
            if file_digest(Path(path)) != digest:
                raise ValueError(f"{path} has changed since it was trusted, and is not run")
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as complaints:
            given.write(json.dumps(question, ensure_ascii=False).encode("utf-8", "replace"))
            given.seek(0)
            token = secrets.token_hex(8)
            program = subprocess.Popen(
                list(self._kind.command),
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=complaints,
                cwd=self._workdir,
                env=_environment(token),
                start_new_session=True,
            )
            deadline = self._clock.monotonic() + self._kind.timeout
            try:
                answer = self._read(program, deadline)
                self._await(program, deadline)
            except subprocess.TimeoutExpired as error:
                raise ValueError(f"no verdict within {self._kind.timeout:g} s") from error
            finally:
                end_tree(program, token)
            code = program.returncode
            if code != 0:
                complaints.seek(0)
                words = complaints.read(_LONGEST_COMPLAINT).decode("utf-8", "replace")
                raise ValueError(f"exit code {code}: {words.strip() or 'no word'}")
        return find_reports(answer) if answer.strip() else [Verdict(False)]

    def _await(self, program: subprocess.Popen[bytes], deadline: float) -> None:
        """Wait for its end without reaping it."""
        while not has_ended(program):
            left = deadline - self._clock.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired(self._kind.command, self._kind.timeout)
            file = os.pidfd_open(program.pid)
            try:
                select.select([file], [], [], left)
            finally:
                os.close(file)

    def _read(self, program: subprocess.Popen[bytes], deadline: float) -> str:
        assert program.stdout is not None  # noqa: S101
        answer = b""
        with selectors.DefaultSelector() as selector, program.stdout as pipe:
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ)
            while True:
                left = deadline - self._clock.monotonic()
                if left <= 0 or not selector.select(left):
                    raise subprocess.TimeoutExpired(self._kind.command, self._kind.timeout)
                piece = os.read(pipe.fileno(), 65536)
                if not piece:
                    return answer.decode("utf-8", "replace")
                answer += piece
                if len(answer) > _LONGEST_ANSWER:
                    raise ValueError(f"it answers with more than {_LONGEST_ANSWER} bytes")


def _environment(token: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in _GIVEN or name.startswith("LC_")}
    return kept | {TOKEN_VARIABLE: token}
