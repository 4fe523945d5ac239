"""Help that finds people: near names, completion, another program named gt, the town of the folder one stands in."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.supervise.command import GT, gt
from witness.cli.exec_real_gt import find_real_gt, is_graphite
from witness.config.town import Town
from witness.errors import did_you_mean
from witness.testing import make_town, supervised

PAUSE = shlex.join([sys.executable, "-c", "import signal; signal.pause()"])


@pytest.mark.parametrize(
    ("typed", "known", "meant"),
    [
        ("taost", ["toast", "crumb"], "did you mean toast?"),
        ("Toast", ["toast"], "did you mean toast?"),
        ("conv", ["conventions", "scope"], "did you mean conventions?"),
        ("xyz", ["toast"], ""),
        ("toast", [], ""),
        ("", ["toast"], ""),
    ],
)
def test_a_near_name_is_offered(typed: str, known: list[str], meant: str) -> None:
    assert did_you_mean(typed, known) == meant


def test_near_polecats_sidecars_commands_and_keys_are_offered(tmp_path: Path) -> None:
    town = make_town(tmp_path / "town")
    here = town.root
    with supervised(town):
        sidecars = "scope:docs/issue.md"
        done = gt(here, "polecat", "spawn", "toast", "--workdir", "repo", "--agent", PAUSE, "--sidecars", sidecars)
        assert done.returncode == 0, done.stderr
        for words, told in (
            (["polecat", "status", "taost"], "did you mean toast?"),
            (["sidecar", "log", "toast/scoop"], "did you mean scope? main/toast has scope"),
            (["sidecar", "log", "toast/nope"], "main/toast has scope"),
            (["polecat", "reset", "toast", "scop"], "did you mean scope?"),
            (["polecat", "spwan", "x"], "did you mean spawn?"),
            (["polecat", "spawn", "x", "--sidecar", "scope"], "--sidecars"),
        ):
            done = gt(here, *words)
            assert (done.returncode, told in done.stderr, done.stderr.count("\n")) == (2, True, 1), done.stderr
        (here / "settings").mkdir()
        (here / "settings" / "witness.yaml").write_text("stop_grase: 1s\n")
        done = gt(here, "polecat", "spawn", "b", "--workdir", "repo", "--agent", PAUSE)
        assert "witness.yaml:1: stop_grase: unknown key; did you mean stop_grace?" in done.stderr
        assert gt(here, "stop", "toast").returncode == 0, "a slip in the settings keeps nobody from ending"


def _completed(cwd: Path, program: str, line: str, environment: dict[str, str]) -> list[str]:
    variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
    words = shlex.split(line)
    asks = {variable: "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - (not line.endswith(" ")))}
    script = Path(sys.executable).with_name(program)
    done = subprocess.run(
        [str(script)], cwd=cwd, env={**environment, **asks}, capture_output=True, text=True, check=False, timeout=50
    )
    assert done.stderr == ""
    return [row.partition(",")[2] for row in done.stdout.split()]


def test_the_names_in_the_town_are_completed(tmp_path: Path) -> None:
    town = make_town(tmp_path / "town")
    environment = dict(os.environ)
    with supervised(town):
        gt(
            town.root,
            "polecat",
            "spawn",
            "toast",
            "--workdir",
            "repo",
            "--agent",
            PAUSE,
            "--sidecars",
            "scope:docs/issue.md",
        )
        for program, line, wanted in (
            ("gt", "gt polecat nuke to", ["toast"]),
            ("gt-witness", "gt-witness attach ", ["main/toast", "toast"]),
            ("gt", "gt ask toast/", ["toast/scope"]),
            ("gt", "gt polecat spawn x --sidecars specs,sc", ["specs,scope"]),
            ("gt", "gt polecat spawn x --molecule mol-d", ["mol-demo"]),
            ("gt", "gt polecat spawn x --agent co", ["codex"]),
            ("gt", "gt polecat spawn x --accept-f", ["--accept-folder"]),
            ("gt-sidecar", "gt-sidecar --type conv", ["conventions"]),
        ):
            assert _completed(town.root, program, line, environment) == wanted, line
        (town.root / "town.yaml").write_text("nonsense: [")
        assert _completed(town.root, "gt", "gt polecat nuke to", environment) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_a_shell_is_a_script_for_all_three(tmp_path: Path, shell: str) -> None:
    done = gt(tmp_path, "completion", shell)
    assert done.returncode == 0
    for program in ("gt", "gt-witness", "gt-sidecar"):
        assert f"_{program.replace('-', '_').upper()}_COMPLETE={shell}_complete" in done.stdout
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=done.stdout, text=True, check=True)


def _other_gt(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True)
    program = folder / "gt"
    program.write_text(text)
    program.chmod(0o755)
    return program


def test_graphites_gt_is_not_taken_for_gas_towns(tmp_path: Path) -> None:
    program = _other_gt(tmp_path / "node_modules" / "@withgraphite" / "graphite-cli" / "bin", "#!/bin/sh\necho it $*\n")
    wrapper = _other_gt(tmp_path / "b", "#!/usr/bin/env node\nrequire('@withgraphite/graphite-cli')\n")
    link = tmp_path / "c"
    link.mkdir()
    (link / "gt").symlink_to(program)
    real = _other_gt(tmp_path / "gastown", "#!/bin/sh\n")
    assert [is_graphite(str(each)) for each in (program, wrapper, link / "gt", real)] == [True, True, True, False]
    path = os.pathsep.join(map(str, (link, wrapper.parent, real.parent)))
    assert find_real_gt({"PATH": path}) == str(real)
    assert find_real_gt({"PATH": str(link)}) == ""
    environment = {"PATH": f"{link}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = gt(tmp_path, "submit", "--stack", environment=environment)
    assert done.stdout == "it submit --stack\n"
    town = make_town(tmp_path / "town")
    told = gt(town.root, "doctor", environment=environment).stdout
    assert "is Graphite's gt" in told
    assert "gt-witness" in told


def test_the_town_is_found_from_the_folder_of_a_polecat_outside_of_it(tmp_path: Path) -> None:
    town = make_town(tmp_path / "town")
    work = tmp_path / "elsewhere" / "project"
    (work / "below").mkdir(parents=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    assert gt(work, "list", environment=environment).returncode == 2
    with supervised(town) as witness:
        witness.spawn("toast", workdir=work, agent=PAUSE)
        done = gt(work / "below", "list", environment=environment)
        assert (done.returncode, "main/toast" in done.stdout) == (0, True), done.stderr
        assert Town.find(work, {}).why.startswith("a polecat of it works in")
        assert gt(tmp_path, "list", environment=environment).returncode == 2
    assert GT
