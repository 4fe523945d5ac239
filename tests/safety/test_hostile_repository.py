"""A cloned repository is data: whatever stands in it, nothing of it runs, nothing outside is read, nobody waits for it.

Every file that the product reads from a repository is made hostile in every way, one at a time, and every command that
reads it is run: it must end in time and memory, with a result or one clean line for each fault.
"""

from __future__ import annotations

import contextlib
import io
import os
import resource
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sidecars.observer.factory import prospects
from witness.cli import program
from witness.config.town import Town
from witness.errors import WitnessError
from witness.launch.spawn_request import SpawnRequest, prepare

pytestmark = pytest.mark.real
CANARY = "CANARY-d41d8cd98f"
# Of processor time, at its worst, and of memory beyond what loading the code takes.
_SECONDS, _WALL_SECONDS, _MEGABYTES = 8.0, 60.0, 400
_MEMBERS = "_mdan/state/sidecars/ann.sidecar.json"


@dataclass(frozen=True)
class Repository:
    """A cloned repository beside a town, with a secret outside of both that nothing may read.

    Args:
        town: the town.
        work: the work tree.
        outside: where the secret is.
    """

    town: Town
    work: Path
    outside: Path


# -- what each file holds when nothing is wrong -----------------------------------------------------------------------

GOOD: dict[str, str] = {
    "issue.md": "---\nfiles: [a.py]\n---\nMend the order check.\n",
    "docs/api.md": "# API\nPOST /orders must answer 201.\n",
    ".mcp.json": '{"mcpServers": {"own": {"command": "./server"}}}',
    ".gt/mcp-tools.json": '{"own": [{"name": "look", "description": "looks"}]}',
    ".gt/blocks.xml": "<constraint>Stay in billing.</constraint>\n",
    ".gt/sidecars/mine/sidecar.yaml": "judge: rules\nargument: none\nrules: [{name: hi, runs: ls, snippet: hello}]\n",
    ".gt/sidecars/mine/snippets.yaml": "hello: Hello.\n",
    ".gt/sidecars/mine/cases.yaml": (
        "cases: [{name: a, event: {tool_name: Bash, tool_input: {command: ls}}, expect: hello}]\n"
    ),
    ".gt/sidecars/asks/sidecar.yaml": "judge: model\nargument: none\n",
    ".gt/sidecars/asks/prompt.md": "Say when it lists a folder.\n",
    "AGENTS.md": "- Use `log`, not `print`, in `*.py`.\n",
    "pyproject.toml": "[tool.ruff]\nline-length = 100\n",
    ".editorconfig": "[*]\nindent_style = tab\n",
    "session.jsonl": '{"type": "user", "message": {"role": "user", "content": "go"}}\n',
    "data.json": '{"version": "1.2.3"}\n',
    "mol.toml": 'formula = "mol"\n[[steps]]\nid = "a"\ntitle = "b"\n[vars.sidecars]\ndefault = "scope:issue.md"\n',
    "mol.formula.json": '{"formula": "mol", "steps": [{"id": "a", "title": "b"}]}',
    ".beads/redirect": "../elsewhere/.beads\n",
    ".beads/formulas/inner.formula.toml": 'formula = "inner"\n[[steps]]\nid = "a"\ntitle = "b"\n',
    "formula-overlays/mol.toml": '[[step-overrides]]\nstep_id = "a"\nmode = "append"\ndescription = "c"\n',
    ".git/HEAD": "ref: refs/heads/main\n",
    _MEMBERS: '{"agent": "ann", "memories": []}',
    "_mdan/state/sidecars/ann.journal.jsonl": "",
    "_mdan/state/parties/party-1.json": "{}",
    "_mdan/state/parties/party-1.record.json": "{}",
    "_mdan/decisions/DR-001.json": "{}",
}

# -- hostile contents -------------------------------------------------------------------------------------------------

_PAINT = "\x1b]0;owned\x07\x1b[2J\x9b31m\x00\x08\x7f\u202e"
_BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


def _text(content: str) -> Callable[[Path, Path], object]:
    return lambda path, outside: path.write_bytes(content.encode("utf-8", "surrogateescape"))


def _link(target: Callable[[Path], str]) -> Callable[[Path, Path], object]:
    return lambda path, outside: path.symlink_to(target(outside))


def _sparse(path: Path, outside: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 30)


def _socket(path: Path, outside: Path) -> None:
    bound = socket.socket(socket.AF_UNIX)
    before = Path.cwd()
    os.chdir(path.parent)  # a socket's path is short
    try:
        bound.bind(path.name)
    finally:
        os.chdir(before)
        bound.close()


def _device(path: Path, outside: Path) -> None:
    if os.geteuid() == 0:
        os.mknod(path, 0o666 | 0o020000, os.makedev(1, 5))  # /dev/zero, as an archive may hold it
    else:
        path.symlink_to("/dev/zero")


def _through_folder(path: Path, outside: Path) -> None:
    """The folder that holds the file is the link."""
    if path.parent.name in ("work", ".git"):
        path.symlink_to(outside / "secret")
        return
    shutil.rmtree(path.parent)
    (outside / "folder").mkdir(exist_ok=True)
    (outside / "folder" / path.name).write_text(f"{CANARY}\n")
    path.parent.symlink_to(outside / "folder")


HOSTILE: dict[str, Callable[[Path, Path], object]] = {
    "missing": lambda path, outside: None,
    "empty": _text(""),
    "folder": lambda path, outside: path.mkdir(),
    "FIFO": lambda path, outside: os.mkfifo(path),
    "socket": _socket,
    "device": _device,
    "link to a device": _link(lambda outside: "/dev/zero"),
    "link outside": _link(lambda outside: str(outside / "secret")),
    "link through a folder": _through_folder,
    "link to itself": lambda path, outside: path.symlink_to(path.name),
    "1 GB sparse": _sparse,
    "invalid UTF-8": lambda path, outside: path.write_bytes(b"\xff\xfe\xc3\x28: [\xa0\xa1]\n" * 50),
    "NUL and control bytes": _text(f"{_PAINT}: {_PAINT}\n[{_PAINT}]\n{{{_PAINT}\n"),
    "painted front matter": _text(f'---\nfiles: ["{_PAINT[:4]}"\n---\n{_PAINT}\n'),
    "alias bomb": _text(_BOMB),
    "alias to its own parent": _text("a: &a\n  b: *a\nfiles: *a\nrules: *a\ncases: &c [*c]\n"),
    "alias bomb in front matter": _text(f"---\n{_BOMB}files: *a11\n---\ntext\n"),
    "deep flow": _text("a: " + "[" * 100_000),
    "deep JSON": _text('{"a":' * 50_000),
    "closed deep JSON": _text('{"rules":' * 5_000 + "1" + "}" * 5_000),
    "deep TOML": _text("formula = " + "[" * 20_000 + "]" * 20_000),
    "deep dotted TOML": _text(".".join("a" * 20_000) + " = 1\n"),
    "deep elements": _text("<a>" * 50_000),
    "endless number": _text('a = 1e999999999\n"version": ' + "9" * 100_000 + "\n"),
    "JSON number": _text('{"version": ' + "9" * 100_000 + "}"),
    "one long line": _text("a" * 4_000_000),
    "blanks": _text("Use " + " " * 150_000 + "x"),
    "many lines": _text("- Use a, not b. Never c: `d`\n" * 20_000),
    "many brackets": _text("(" * 100_000 + "`" * 1001 + "*" * 50_000),
    "many quotes": _text("'\"`\\" * 40_000),
    "many words": _text("must not use never don't avoid prefer instead of " * 4000),
    "many ignore rules": _text("**/a**/b**/*?[!a]\n" * 3000),
}


# -- what reads them --------------------------------------------------------------------------------------------------


def _command(*arguments: str) -> Callable[[Repository], str]:
    """A command of ours, with all that it prints; any exception but its exit is a traceback at the user."""

    def run(repository: Repository) -> str:
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), contextlib.suppress(SystemExit):
            program.run(arguments)
        return output.getvalue()

    return run


def _spawn(molecule: str = "", sidecars: str | None = None) -> Callable[[Repository], str]:
    """All that a spawn reads, up to what its sidecars read as they start; a respawn reads the same."""

    def run(repository: Repository) -> str:
        order = SpawnRequest(
            "toast", workdir=repository.work, molecule=molecule, sidecars=sidecars, agent="sleep 5", issue="issue.md",
            check=prospects,
        )  # fmt: skip
        try:
            plan = prepare(repository.town, order)
        except WitnessError as error:
            return str(error)
        # The task is given to the agent, not to a terminal.
        return "\n".join([*plan.withheld, *plan.mute.values(), repr(plan.task.text)])

    return run


# Each with the beginnings of the names that it reads.
ENTRIES: dict[str, tuple[Callable[[Repository], str], tuple[str, ...]]] = {
    "spawn": (
        _spawn(sidecars="scope:issue.md,specs:docs/api.md,tools,blocks,mine,conventions"),
        ("issue", "docs", ".mcp", ".gt", ".git/", "AGENTS", "pyproject", ".editorconfig"),
    ),
    "lint": (_command("sidecar", "lint", ".gt/sidecars/mine"), (".gt/sidecars/mine",)),
    "lint of what asks a model": (_command("sidecar", "lint", ".gt/sidecars/asks"), (".gt/sidecars/asks",)),
    "eval": (_command("sidecar", "eval", "mine"), (".gt/sidecars/mine",)),
    "eval of cases": (_command("sidecar", "eval", ".gt/sidecars/mine/cases.yaml"), (".gt/sidecars/mine/cases",)),
    "eval by a prompt": (_command("sidecar", "eval", "mine", "--judge", "docs/api.md"), ("docs",)),
    "types": (_command("sidecar", "types", "--json"), (".gt/sidecars",)),
    "compile": (_command("sidecar", "compile", "AGENTS.md"), ("AGENTS",)),
    "replay": (_command("sidecar", "replay", "--transcript", "session.jsonl", "--type", "tools"), ("session",)),
    "distill": (
        _command(
            "distill",
            "--artifact",
            "data.json",
            "--artifact",
            "docs/api.md",
            "--artifact",
            "session.jsonl",
            "--question",
            "which version is it?",
            "--backend",
            "index",
        ),
        ("data", "docs", "session"),
    ),
    "molecule lint": (_command("molecule", "lint", "mol.toml", "mol.formula.json"), ("mol", ".beads", "formula")),
    "spawn by name": (_spawn(molecule="inner"), (".beads", "issue", ".git")),
    "party": (
        _command("party", "end", "party-1", "--record", "_mdan/state/parties/party-1.record.json"),
        ("_mdan",),
    ),
    "memory": (_command("memory", "show", "ann"), ("_mdan", ".git/")),
    "memory load": (_command("memory", "load", "ann"), ("_mdan",)),
    "state": (_command("state", "--json"), (".git/",)),
}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GT_WITNESS_API_KEY", raising=False)
    for name in ("home", "outside"):
        (tmp_path / name).mkdir()
    (tmp_path / "outside" / "secret").write_text(
        f'---\nfiles: ["{CANARY}"]\n---\n{CANARY}: "{CANARY}"\nUse {CANARY}, not b.\nPOST /{CANARY} must hold.\n'
    )
    town = Town.init(tmp_path / "town")
    town.make_runtime()
    return Repository(town, tmp_path / "town" / "work", tmp_path / "outside")


def _clone(repository: Repository) -> None:
    shutil.rmtree(repository.work, ignore_errors=True)
    for name, content in GOOD.items():
        path = repository.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


class _TooLong(BaseException):
    """Not to be caught by what is tried."""


@contextlib.contextmanager
def _within_time() -> Iterator[None]:
    def late(*_: object) -> None:
        raise _TooLong

    before = {each: signal.signal(each, late) for each in (signal.SIGALRM, signal.SIGPROF)}
    signal.setitimer(signal.ITIMER_PROF, _SECONDS)
    signal.setitimer(signal.ITIMER_REAL, _WALL_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _tried(repository: Repository, entry: str, name: str, content: str) -> str:
    """What went wrong, empty when nothing did."""
    run, _ = ENTRIES[entry]
    path = repository.work / name
    path.unlink(missing_ok=True)
    HOSTILE[content](path, repository.outside)
    began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with _within_time():
            said = run(repository)
    except _TooLong:
        return "takes too long"
    except Exception as error:  # noqa: BLE001 - whatever it is, a user would see its traceback
        return f"{type(error).__name__}: {str(error)[:200]!r}"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - began) >> 10
    faults = ["reads outside"] if CANARY in said else []
    faults += ["Traceback"] if "Traceback" in said else []
    faults += [f"takes {grown} MB"] if grown > _MEGABYTES else []
    if stray := {mark for mark in said if not mark.isprintable() and mark not in "\n\t"}:
        faults.append(f"prints {sorted(stray)!r}")
    return ", ".join(faults)


@pytest.mark.parametrize("content", HOSTILE)
@pytest.mark.parametrize("entry", ENTRIES)
def test_hostile(repository: Repository, entry: str, content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = {}
    concerned = [name for name in GOOD if name.startswith(ENTRIES[entry][1])]
    for name in concerned:
        _clone(repository)
        monkeypatch.chdir(repository.work)
        if fault := _tried(repository, entry, name, content):
            faults[name] = fault
        monkeypatch.chdir(repository.town.root)
    assert concerned
    assert faults == {}
    assert sorted(each.name for each in repository.outside.iterdir() if each.name != "folder") == ["secret"]
    assert not any((repository.town.root / each).exists() for each in ("ran", "work/ran"))


def test_with_nothing_hostile_every_command_reads_what_it_should(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suite reads what it makes hostile: else it could pass by reading nothing."""
    _clone(repository)
    monkeypatch.chdir(repository.work)
    said = {entry: run(repository) for entry, (run, _) in ENTRIES.items()}
    assert "Mend the order check" in said["spawn"]
    assert "no fault found" in said["molecule lint"]
    assert '"mine"' in said["types"]
    assert "log" in said["compile"]
    assert "1.2.3" in said["distill"]
    for entry in ("eval", "eval of cases", "lint", "lint of what asks a model", "replay", "eval by a prompt"):
        assert "no such" not in said[entry].lower(), f"{entry}: {said[entry]}"
