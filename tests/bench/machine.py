"""What was measured on: enough to compare figures by, and nothing that names the machine or its owner."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from importlib import metadata
from pathlib import Path


def describe() -> list[str]:
    """Lines of text about processor, memory, kernel and versions."""
    return [
        f"{os.cpu_count()} cores, {_processor()}, {_memory()} of memory",
        f"{platform.system()} {_kernel()}, Python {platform.python_version()}, {_tmux()}",
        "gt-witness " + _version("gt-witness"),
    ]


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def _memory() -> str:
    try:
        kib = int(Path("/proc/meminfo").read_text().split()[1])
    except (OSError, ValueError):
        return "unknown amount"
    return f"{kib / 1024**2:.0f} GiB"


def _kernel() -> str:
    # The part after the version may name who built it, or for what.
    return platform.release().split("-")[0]


def _tmux() -> str:
    if not shutil.which("tmux"):
        return "no tmux"
    return subprocess.run(["tmux", "-V"], capture_output=True, text=True, check=False).stdout.strip()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "from a checkout"
