"""A stand-in for the real ``gt``: a small program that writes down how it was called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.scripts import BASE_PYTHON

_PROGRAM = """#!{python} -IS
import json, os, signal, sys
calls = {calls!r}
call = {{
    "args": sys.argv[1:],
    "environment": dict(os.environ),
    "cwd": os.getcwd(),
    "pid": os.getpid(),
    "ignored": [name for name in ("SIGPIPE", "SIGINT", "SIGTERM") if signal.getsignal(getattr(signal, name)) is None],
}}
for line in open("/proc/self/status") if os.path.exists("/proc/self/status") else []:
    if line.startswith("SigIgn"):
        call["sigign"] = int(line.split()[1], 16)
with open(calls, "a") as file:
    file.write(json.dumps(call) + "\\n")
{body}
"""


class StandIn:
    """One stand-in in a folder of its own, ready for PATH.

    Args:
        folder: where it is put; made when missing.
        body: what it does after it has written the call down.
    """

    def __init__(self, folder: Path, body: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.path = folder / "gt"
        self._calls = folder / "calls.jsonl"
        self.path.write_text(_PROGRAM.format(python=BASE_PYTHON, calls=str(self._calls), body=body))
        self.path.chmod(0o755)

    @property
    def calls(self) -> list[dict[str, Any]]:
        """All calls so far, in order."""
        if not self._calls.exists():
            return []
        return [json.loads(line) for line in self._calls.read_text().splitlines()]
