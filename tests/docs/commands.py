"""The commands of a page, to be run as it says."""

from __future__ import annotations

import re
from pathlib import Path

_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[str]:
    """Every line of every ``sh`` block of a page, in order."""
    blocks = _BLOCK.findall(page.read_text(encoding="utf-8"))
    return [line for block in blocks for line in block.splitlines() if line.strip() and not line.startswith("#")]
