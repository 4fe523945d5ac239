"""What is wrong with a sidecar is said before anything starts; what can never speak says so."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.towns import make_town, supervised
from witness.cli import main
from witness.config.town import Town

AGENT = shlex.join([sys.executable, "-c", "import signal; signal.pause()"])


@pytest.fixture
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Town:
    made = make_town(tmp_path / "a town")
    monkeypatch.chdir(made.root)
    return made


def _spawn(*words: str) -> int:
    try:
        main(["polecat", "spawn", "toast", "--workdir", "repo", "--agent", AGENT, *words])
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def test_every_fault_of_a_type_is_named_and_nothing_starts(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    folder = town.root / ".gt" / "sidecars" / "mine"
    folder.mkdir(parents=True)
    (folder / "sidecar.yaml").write_text(
        "summary: x\njudge: rulez\ncap: many\nrules:\n  - {name: a, writez: x, say: y}\n"
    )
    with supervised(town) as witness:
        assert _spawn("--sidecars", "mine") == 2
        assert witness.polecats() == []
    said = capsys.readouterr().err
    for line in ("sidecar.yaml:2: judge: one of", "sidecar.yaml:3: cap: must be", "sidecar.yaml:5: rules.0.writez"):
        assert line in said


def test_a_sidecar_that_can_never_speak_says_so(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    with supervised(town):
        assert _spawn("--sidecars", "scope,blocks", "--json") == 0
        told = {each["name"]: each.get("mute", "") for each in json.loads(capsys.readouterr().out)["sidecars"]}
    assert "its issue lists no files: and no not:" in told["scope"]
    assert ".gt/blocks.xml" in told["blocks"]


def test_one_that_can_speak_says_nothing_of_it(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    (town.root / "repo" / "issue.md").write_text("---\nnot: [billing/**]\n---\nLeave billing alone.\n")
    with supervised(town):
        assert _spawn("--sidecars", "scope:issue.md") == 0
    assert "never speak" not in capsys.readouterr().out
