"""The command line as a person, cron or an agent calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

GT = [sys.executable, "-m", "witness.cli"]


def gt(cwd: Path, *arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``gt`` in a folder; its environment is the caller's unless another is given."""
    return subprocess.run(
        [*GT, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=50,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def gt_json(cwd: Path, *arguments: str) -> Any:
    """Its JSON answer."""
    done = gt(cwd, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def bare_environment() -> dict[str, str]:
    """What cron gives: next to nothing."""
    return {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
