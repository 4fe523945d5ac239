"""What an agent can write is opened in one way: `witness.files`, which follows no link, never waits and has a bound.

A file in a run's folder that was a link to ``/dev/zero``, read with a plain ``read_bytes``, once took the whole memory
of the machine. So the plain ways are counted: each that is left is listed with what it reads.
"""

from __future__ import annotations

import ast
import os
import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.safety.poison import POISON
from witness.config.town import Town
from witness.events.call_windows import RunCalls
from witness.gastown.town_events import read_events
from witness.testing import make_town

ROOT = Path(__file__).parents[2]
_PLAIN = {"read_text", "read_bytes", "open"}
# Modules of which each plain reading is of the kernel's files, of files that ride along, or of a file that the person
# at the command line names; how many there are.
_LISTED = {
    # the kernel's
    "sidecars/observer/forkserver.py": 1,
    "sidecars/observer/standalone.py": 1,
    "sidecars/observer/watcher.py": 1,
    "witness/clock.py": 1,
    "witness/events/tree_watch.py": 1,
    "witness/ipc/serving.py": 1,
    "witness/launch/environment.py": 2,
    "witness/process/cgroup.py": 3,
    "witness/process/limits.py": 4,
    "witness/process/table.py": 3,
    "witness/state/reader.py": 1,
    # ours, read-only
    "sidecars/distill/model_messages.py": 1,
    "sidecars/syntax/program_table.py": 1,
    "witness/agents/client_extensions.py": 1,
    "witness/cli/config.py": 1,
    "witness/cli/distill.py": 2,
    "witness/cli/help.py": 2,
    "witness/views/web.py": 1,
    # what installed packages say of themselves
    "witness/installed.py": 1,
    # its user's own cache and ledger, outside of every town
    "sidecars/distill/cache.py": 2,
    "sidecars/distill/ledger.py": 1,
    # named by the person, or found on PATH
    "sidecars/observer/observe/recorded.py": 1,
    "sidecars/type_reader/sidecar_type.py": 1,
    "witness/agents/channels.py": 1,
    "witness/cli/exec_real_gt.py": 2,
    "witness/cli/sidecar_tuning.py": 2,
    # descriptors, /dev/null, new files
    "sidecars/distill/claude_backend.py": 1,
    "sidecars/observer/context/mcp_listing.py": 1,
    "witness/cli/distill_service.py": 1,
    "witness/cli/program.py": 1,
    # the demo's own agent
    "witness/cli/scripted_agent.py": 4,
    # programs that run alone: what starts them has just written it, and the kernel's files
    "witness/ipc/exec_with_env.py": 1,
    "witness/launch/reaper.py": 4,
}
_ELSEWHERE = ("witness/files/", "witness/testing/")


def test_no_plain_way_to_open_comes_in() -> None:
    found: Counter[str] = Counter()
    for package in ("witness", "sidecars"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            if not name.startswith(_ELSEWHERE):
                found[name] += sum(_is_plain(node) for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    assert {name: count for name, count in found.items() if count} == _LISTED


def _is_plain(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id == "open"
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in _PLAIN:
        return False
    of = ast.unparse(node.func.value)
    # os.open gives flags of its own; the others are our own objects that have an `open`.
    return of not in ("os", "self", "server", "daemon", "artifacts")


def test_hooks_open_by_their_own_opener_alone() -> None:
    for path in sorted((ROOT / "hooks").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
                assert "opener" in {each.arg for each in node.keywords}, f"{path.name}:{node.lineno}"


@pytest.fixture
def small_memory() -> object:
    """Half a gigabyte is all that the test's process may have: what reads without end fails instead of going on."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + (512 << 20), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _poisons() -> list[str]:
    return [each for each in POISON if each != "foreign" or os.geteuid() == 0]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", _poisons())
def test_whose_client_a_spool_names(kind: str, tmp_path: Path, small_memory: object) -> None:
    POISON[kind](tmp_path / "client")
    RunCalls(tmp_path).rest()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", _poisons())
def test_what_a_gas_town_tells(kind: str, tmp_path: Path, small_memory: object) -> None:
    town: Town = make_town(tmp_path / "town")
    POISON[kind](town.root / ".events.jsonl")
    assert read_events(town, "0:0")[0] == []


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", _poisons())
def test_what_a_sidecar_passes_over(kind: str, tmp_path: Path) -> None:
    POISON[kind](tmp_path / "scope.passes")
    code = (
        "import os, resource, sys; sys.path.insert(0, sys.argv[1]); import gt_mod; os.chdir(sys.argv[2]);"
        "resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)); print(gt_mod.passes())"
    )
    words = [sys.executable, "-I", "-c", code, str(ROOT / "hooks"), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=15)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
