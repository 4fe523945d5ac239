"""What is wrong with a sidecar is said before anything starts; what can never speak says so."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from witness.cli import main
from witness.config.town import Town
from witness.state.reader import StateReader
from witness.testing import make_town, supervised

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


def test_only_and_not_tell_a_scope_sidecar_that_is_added(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    with supervised(town):
        assert (
            _spawn(*["--only", "./orders/**", "--only", "t/{a,b}.py", "--not", "billing/**", "--json"], "--task=x") == 0
        )
        (scope,) = json.loads(capsys.readouterr().out)["sidecars"]
    assert (scope["type"], scope["found"]) == ("scope", "files orders/**, t/{a,b}.py; not billing/**")
    assert "mute" not in scope


@pytest.mark.parametrize("glob", ["", "!billing", "../other/**"])
def test_what_is_no_glob_is_refused(town: Town, capsys: pytest.CaptureFixture[str], glob: str) -> None:
    with supervised(town) as witness:
        assert _spawn("--task", "x", "--only", glob) == 2
        assert witness.polecats() == []
    assert "a glob below the working directory is wanted" in capsys.readouterr().err


PROSE = "Orders take a bad quantity.\n\nOnly change `orders/`. Leave billing alone.\n"


def test_what_the_issue_names_is_shown_and_counts_once_accepted(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    (town.root / "repo" / "plain.md").write_text(PROSE)
    with supervised(town) as witness:
        assert _spawn("--sidecars", "scope:plain.md", "--json") == 0
        shown = capsys.readouterr()
        assert "--only 'orders/**' --not 'billing/**'" in shown.err
        assert "billing/** as out of scope (line 3)" in shown.err
        assert "mute" in json.loads(shown.out)["sidecars"][0]
        witness.nuke(["toast"])
        assert _spawn("--issue", "plain.md", "--accept-scope", "--json") == 0
        (scope,) = json.loads(capsys.readouterr().out)["sidecars"]
        assert scope["found"] == "files orders/**; not billing/**"
        witness.nuke(["toast"])
        assert _spawn("--task", "Do it well.", "--accept-scope") == 2
        assert "names no path" in capsys.readouterr().err


def test_conventions_say_how_many_rules_they_found_and_where(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    with supervised(town):
        assert _spawn("--sidecars", "conventions") == 0
    assert "holds it to " in (told := capsys.readouterr().out)
    assert "in CONVENTIONS.md" in told


def test_what_only_lacks_a_key_is_not_called_mute(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(town.root))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    with supervised(town) as witness:
        assert _spawn("--sidecars", "conventions,scope") == 0
        states = {each.name: each for each in StateReader(town, witness.journal).read().polecats[0].sidecars}
        told = [event.data["reason"] for event in witness.journal.history() if event.kind == "sidecar-lacks"]
    assert states["conventions"].mute == ""
    assert "its issue lists no files" in states["scope"].mute
    assert any("it runs on its rules alone" in each for each in told)
