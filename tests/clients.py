"""The agents' real clients that the tests drive: which versions (``.ci/versions``) and where they are installed."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Where ``.ci/need-other-clients`` puts the programs of Codex CLI, Gemini CLI and opencode.
OTHERS = ROOT / ".cache" / "other-clients" / "node_modules" / ".bin"


def versions() -> dict[str, str]:
    """Name → version of every client, as ``.ci/versions`` says."""
    lines = (ROOT / ".ci" / "versions").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def claude_version() -> str:
    """The version of Claude Code that is asked for: ``CLAUDE_VERSION`` of the environment, else the pinned one."""
    return _ASKED or versions()["CLAUDE"]


def claude_program(version: str = "") -> Path:
    """Where ``.ci/need-claude`` puts a version of Claude Code; nothing says that it is there.

    Args:
        version: empty for the one that is asked for.
    """
    return ROOT / ".cache" / "claude-code" / (version or claude_version()) / "node_modules" / ".bin" / "claude"


# Read once: each test's own environment is bare.
_ASKED = os.environ.get("CLAUDE_VERSION", "")
