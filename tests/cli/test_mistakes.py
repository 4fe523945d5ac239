"""Fifty typical mistakes of the first hours: each ends in one line that says what to do, with its exit code."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.supervise.command import GT
from witness.testing import make_town, supervised

PAUSE = shlex.join([sys.executable, "-c", "import signal; signal.pause()"])
AGENT = f"--workdir repo --agent {shlex.quote(PAUSE)}"
SPAWN = f"polecat spawn x {AGENT}"


@dataclass(frozen=True)
class Mistake:
    """One mistake.

    Args:
        what: somebody typed or did.
        line: behind ``gt``; a word ``{outside}`` is a folder without a town.
        told: a part of the one line, which says what to do or what there is.
        code: the exit code.
        files: what stands in the town beside the sample, by name.
        where: the folder it is typed in, from the town's root.
        given: standard input.
    """

    what: str
    line: str
    told: str
    code: int = 2
    files: tuple[tuple[str, str], ...] = ()
    where: str = ""
    given: str = ""


SETTINGS = "settings/witness.yaml"
MOLECULE = 'formula = "mol-x"\n[[steps]]\nid = "a"\ntitle = "t"\n'
MISTAKES = [
    # words and names
    Mistake("a command misspelt", "polcat list", "did you mean polecat?"),
    Mistake("a subcommand misspelt", "polecat spwan x", "No such command 'spwan': did you mean spawn?"),
    Mistake("an option misspelt", f"{SPAWN} --sidecar scope", "--sidecars"),
    Mistake("no name", "polecat spawn", "'NAME': see 'gt polecat spawn --help'"),
    Mistake("a name with a blank", f"polecat spawn 'my cat' {AGENT}", "my cat"),
    Mistake("a name with a slash", f"polecat spawn a/b/c {AGENT}", "a/b/c"),
    Mistake("a path as a name", f"polecat spawn ../x {AGENT}", "../x"),
    Mistake("an empty name", f"polecat spawn '' {AGENT}", "polecat"),
    Mistake("a name that nobody has", "polecat status taost", "'gt polecat list' shows"),
    Mistake("an attach to nobody", "attach nobody", "'gt polecat list' shows"),
    Mistake("a peek at nobody", "peek nobody", "'gt polecat list' shows"),
    Mistake("logs of nobody", "logs nobody", "'gt polecat list' shows"),
    Mistake("a nudge to nobody", "nudge nobody hello", "'gt polecat list' shows"),
    Mistake("a nuke of nobody", "polecat nuke nobody", "'gt polecat list' shows"),
    Mistake("a nuke without a name", "polecat nuke", "--all"),
    Mistake("a nuke of one and all", "polecat nuke x --all", "--all"),
    Mistake("done outside of a polecat", "done", "'gt polecat nuke NAME'"),
    Mistake("a rig that is none", f"{SPAWN} --rig 'a b'", "a b"),
    # the town
    Mistake("no town at all", "list", "gt init", where="{outside}"),
    Mistake("a spawn outside of any town", "polecat spawn x", "gt init", where="{outside}"),
    Mistake("a town file that is no YAML", "list", "town.yaml", files=(("town.yaml", "rigs: [\n"),)),
    Mistake("a key of the town file misspelt", "list", "did you mean rigs?", files=(("town.yaml", "rgs: {}\n"),)),
    # the spawn
    Mistake("no such folder", f"polecat spawn x {AGENT} --workdir nowhere", "make it, or name another"),
    Mistake("a file as the folder", f"polecat spawn x {AGENT} --workdir town.yaml", "make it, or name another"),
    Mistake("no such agent", "polecat spawn x --workdir repo --agent clade", "install it, or name another agent"),
    Mistake("quotes that do not close", "polecat spawn x --workdir repo --agent \"sh -c 'x\"", "cannot be split"),
    Mistake("a task and an issue", f"{SPAWN} --task a --issue docs/issue.md", "give one of them"),
    Mistake("no such issue", f"{SPAWN} --issue docs/isue.md", "docs/isue.md"),
    Mistake("a task from a file that is missing", f"{SPAWN} --task @tsk.md", "a blank before it"),
    Mistake("nothing on standard input", f"{SPAWN} --task -", "it is empty"),
    Mistake("a variable without a value", f"{SPAWN} --var issue", "NAME=VALUE"),
    Mistake("a scope that leads out", f"{SPAWN} --only ../x", "a glob below the working directory"),
    Mistake("words accepted that name nothing", f"{SPAWN} --task 'be good' --accept-scope", "say --only or --not"),
    Mistake("folders that are never to be accepted", f"{SPAWN} --accept-folder", "folders: never",
            files=((SETTINGS, "folders: never\n"),)),
    # sidecars
    Mistake("a type that is none", f"{SPAWN} --sidecars scop", "did you mean scope?"),
    Mistake("a type's file that is missing", f"{SPAWN} --sidecars specs:docs/none.md", "docs/none.md"),
    Mistake("a sidecar twice", f"{SPAWN} --sidecars tools,tools", "tools"),
    Mistake("a sidecar that is not there", "sidecar log nobody/scope", "'gt polecat list' shows"),
    Mistake("a type in a folder that is not looked in", f"{SPAWN} --sidecars mine", ".gt/sidecars/",
            files=(("sidecars/mine/sidecar.yaml", "summary: x\njudge: rules\n"),)),
    Mistake("a file as a type", "sidecar lint mine.yaml", "name the folder", files=(("mine.yaml", "judge: rules\n"),)),
    Mistake("a type with a key misspelt", f"{SPAWN} --sidecars mine", "did you mean threshold?",
            files=((".gt/sidecars/mine/sidecar.yaml", "summary: x\njudge: rules\ntreshold: low\n"),)),
    # molecules
    Mistake("a molecule that is none", f"{SPAWN} --molecule mol-dmo", "did you mean mol-demo?"),
    Mistake("a molecule's file that is missing", f"{SPAWN} --molecule none.toml", "make it, or name another"),
    Mistake("a molecule that is no TOML", f"{SPAWN} --molecule m.toml", "m.toml:1", files=(("m.toml", "a = \n"),)),
    Mistake("sidecars as an array", f"{SPAWN} --molecule m.toml", "it must be one string",
            files=(("m.toml", MOLECULE + '[vars]\nsidecars = ["scope"]\n'),)),
    Mistake("sidecars in a table misspelt", f"{SPAWN} --molecule m.toml", "write [vars.sidecars]",
            files=(("m.toml", MOLECULE + '[var.sidecars]\ndefault = "scope"\n'),)),
    Mistake("a required variable forgotten", f"{SPAWN} --molecule m.toml", "vars.who",
            files=(("m.toml", MOLECULE + "[vars.who]\nrequired = true\n"),)),
    # settings and keys
    Mistake("a setting misspelt", SPAWN, "did you mean stop_grace?", files=((SETTINGS, "stop_grase: 1s\n"),)),
    Mistake("a length of time without a unit", SPAWN, "10s, 1m30s or 250ms", files=((SETTINGS, "linger: soon\n"),)),
    Mistake("a choice that is none", SPAWN, "one of ask, accept, never", files=((SETTINGS, "folders: yes please\n"),)),
    Mistake("a key as an argument", "key set sk-x", "see 'gt key set --help'"),
    Mistake("an empty key", "key set", "that is no key", given="\n"),
    Mistake("a test of no key", "key test", "gt key set"),
    # the rest
    Mistake("a unit of no kind", "witness install", "--cron, --systemd or --launchd"),
    Mistake("a since that is no time", "polecat list --all --since yesterday", "10s, 1m30s or 250ms"),
    Mistake("a since without all", "polecat list --since 1h", "--since goes with --all"),
    Mistake("a shell that is none", "completion tcsh", "'bash', 'zsh', 'fish'"),
    Mistake("a page that is none", "help sidecar-types", "sidecars"),
    Mistake("uninstall without a word", "uninstall", "say --yes"),
]  # fmt: skip


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Path]:
    made = make_town(tmp_path / "town")
    (tmp_path / "outside").mkdir()
    yield made.root
    (made.root / "town.yaml").write_text("name: town\n")
    with supervised(made) as witness:
        assert witness.polecats() == [], "a mistake leaves nothing half-started"


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.what)
def test_it_ends_in_one_line_that_says_what_to_do(mistake: Mistake, town: Path, tmp_path: Path) -> None:
    for name, text in mistake.files:
        (town / name).parent.mkdir(parents=True, exist_ok=True)
        (town / name).write_text(text)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    done = subprocess.run(
        [*GT, *shlex.split(mistake.line)], cwd=tmp_path / "outside" if mistake.where else town, env=environment,
        input=mistake.given, capture_output=True, text=True, check=False, timeout=50,
    )  # fmt: skip
    lines = done.stderr.splitlines()
    assert (done.returncode, len(lines), done.stdout) == (mistake.code, 1, ""), done.stderr + done.stdout
    assert mistake.told in lines[0], lines[0]


def test_there_are_fifty_and_no_two_are_the_same() -> None:
    assert len({each.line + repr(each.files) + each.where for each in MISTAKES}) == len(MISTAKES) >= 50
