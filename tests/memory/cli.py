"""``gt memory`` as the tests of it run it: in this process, in a project of its own."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from witness.cli import main


class Ran(NamedTuple):
    code: int
    out: str
    err: str


class Cli:
    """The command line, run in this process in a project of its own."""

    def __init__(self, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.project = project
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Ran:
        try:
            main(["memory", *arguments])
            code = 0
        except SystemExit as error:
            code = int(error.code or 0)
        return Ran(code, *self._capsys.readouterr())
