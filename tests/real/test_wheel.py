"""The wheel carries all it needs: installed outside of the checkout, it does the main job."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]


def run(*argv: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(word) for word in argv],
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_installed_wheel_spawns_injects_respawns_and_ends(tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path, ROOT, cwd=tmp_path)
    wheel = next(tmp_path.glob("gt_witness-*.whl"))
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    constraints = ROOT / ".ci" / "constraints.txt"
    run(
        python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", constraints, wheel, cwd=tmp_path
    )
    where = run(python, "-c", "import witness; print(witness.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(tmp_path / "venv")
    shown = run(tmp_path / "venv" / "bin" / "gt", "demo", cwd=tmp_path, SCRIPTED_AGENT_PAUSE="0.5")
    assert "[sidecar:scope]" in shown
    assert "x1" in shown.partition("respawned")[2]
    assert "survivors  none" in shown
