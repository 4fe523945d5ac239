"""What a program and a command import: nothing that they do not use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from witness.cli.commands import COMMANDS
from witness.config.town import Town

# What only a model judge, only a table of a terminal, or only the reading of a project needs.
_HEAVY = (
    "ahocorasick_rs", "anthropic", "importlib.metadata", "mcp", "openpyxl", "pathspec", "pydantic", "pypdf",
    "rapidfuzz", "re2", "rich", "snowballstemmer", "tenacity", "tree_sitter", "yaml",
)  # fmt: skip
_COMMANDS = sorted({module.partition(":")[0] for module, _ in COMMANDS.values()} - {"witness.cli.demo"})


def _loaded(code: str) -> set[str]:
    code = f"{code}\nimport sys\nprint(*sys.modules, sep='\\n', file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_the_library_brings_no_supervision_with_it_before_it_is_used() -> None:
    loaded = _loaded("from witness import Witness")
    assert "witness.api.witness" in loaded
    assert not loaded & {*_HEAVY, "asyncio", "click", "psutil", "subprocess", "sidecars", "tomllib"}
    assert not [
        name for name in loaded if name.startswith(("witness.supervise.", "witness.launch.", "witness.delivery."))
    ]


def test_the_version_is_told_without_the_command_line() -> None:
    loaded = _loaded("from witness.cli import main; main(['--version'])")
    assert "witness.cli.main" in loaded
    assert not loaded & {*_HEAVY, "click", "typing", "dataclasses", "witness.errors", "witness.config"}


@pytest.mark.parametrize("module", _COMMANDS)
def test_a_command_is_there_without_what_it_may_never_need(module: str) -> None:
    loaded = _loaded(f"import witness.cli.program, {module}")
    assert module in loaded
    assert not loaded & set(_HEAVY)


# What a start, a spawn, an end or another system needs; each a tenth or more of a command that is called all day.
_UNUSED = {
    *_HEAVY, "psutil", "tempfile", "secrets", "witness.declare.molecule", "witness.launch.environment",
    "witness.launch.spawn_request", "witness.nuke", "witness.supervise.spawn", "witness.trust.settings",
}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "code"),
    [(["polecat", "list"], 0), (["list", "--json"], 0), (["state"], 0), (["nudge", "toast", "hi"], 2)],
)
def test_a_command_of_all_day_loads_nothing_that_only_others_use(tmp_path: Path, words: list[str], code: int) -> None:
    town = Town.init(tmp_path / "town")
    program = (
        "import sys\nfrom witness.cli.main import main\ntry:\n"
        f"    main({words!r})\nexcept SystemExit as end:\n    assert end.code == {code}, end.code\n"
        "else:\n    assert not {code}\n".replace("{code}", str(code))
        + "sys.stdout = sys.__stdout__\nprint('loaded', *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=town.root,
        env={**os.environ, "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    loaded = set(done.stdout.rpartition("loaded ")[2].split())
    assert "witness.journal.database" in loaded
    assert not loaded & (_UNUSED if sys.platform == "linux" else _UNUSED - {"psutil"})
