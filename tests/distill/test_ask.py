"""What a sidecar knows, asked by its name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.distill.test_cli import gt
from witness.assignment import Assignment
from witness.config.town import Town
from witness.journal import Group, GroupState, Journal
from witness.names import GroupId
from witness.process import ProcessId

SPEC = "# API\n\nEvery answer is JSON.\n\nA validation error is answered with status 422.\nA missing record: 404.\n"


@pytest.fixture
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Town:
    """A town in which polecat toast runs with sidecars specs, scope and conventions."""
    town = Town.init(tmp_path / "town")
    town.make_runtime()
    workdir = town.root / "work"
    (workdir / "docs").mkdir(parents=True)
    (workdir / "docs" / "api-spec.md").write_text(SPEC)
    (workdir / "CONVENTIONS.md").write_text("Functions are named with verbs.\n")
    group = GroupId("main", "toast", "r1")
    with Journal(town.journal_path) as journal:
        journal.groups.add(Group(group, "gt-toast", GroupState.RUNNING, "boot", 0.0, 0.0, str(workdir)))
    folder = town.run_dir("r1") / "sidecars"
    folder.mkdir(parents=True)
    for name, argument in (("specs", "docs/api-spec.md"), ("scope", ""), ("conventions", ""), ("blocks", "")):
        assignment = Assignment(
            group=group, name=name, type=name, argument=argument, session="gt-toast", socket="s", town=str(town.root),
            workdir=str(workdir), run_dir=str(town.run_dir("r1")), journal=str(town.journal_path), queue="",
            agent=ProcessId(1, 1), task="Repair the discount in src/cart.py and nothing else.",
        )  # fmt: skip
        (folder / f"{name}.json").write_text(assignment.to_json())
    monkeypatch.chdir(town.root)
    return town


def test_a_specification_answers_with_evidence(capsys: pytest.CaptureFixture[str], town: Town) -> None:
    code, out, err = gt(capsys, "ask", "toast/specs", "Which status for a validation error?", "--json")
    answer = json.loads(out)
    assert (code, err) == (0, "")
    evidence = [each for each in answer["evidence"] if "validation" in each["quote"]]
    assert evidence[0]["path"] == "docs/api-spec.md"
    assert evidence[0]["locator"] == "L5-L6" or evidence[0]["locator"] == "L5"
    assert "422" in evidence[0]["quote"]
    assert evidence[0]["verified"]


@pytest.mark.parametrize("target", ["main/toast/specs", "main/polecats/toast/specs", "gt-toast/specs"])
def test_a_sidecar_is_found_by_any_address(capsys: pytest.CaptureFixture[str], town: Town, target: str) -> None:
    assert gt(capsys, "ask", target, "validation error status?")[0] == 0


def test_inside_a_polecat_its_own_are_asked_by_name(
    capsys: pytest.CaptureFixture[str], town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GT_WITNESS_GROUP", "main/toast/r1")
    code, out, _ = gt(capsys, "ask", "specs", "Which status for a missing record?")
    assert code == 0
    assert "404" in out


def test_what_is_no_file_answers_too(capsys: pytest.CaptureFixture[str], town: Town) -> None:
    code, out, _ = gt(capsys, "ask", "toast/scope", "Which file is repaired?", "--json")
    found = [each for each in json.loads(out)["evidence"] if "src/cart.py" in each["quote"]]
    assert code == 0
    assert found[0]["path"] == "issue"
    assert str(Path("/tmp")) not in found[0]["path"]


def test_the_projects_own_documents_answer(capsys: pytest.CaptureFixture[str], town: Town) -> None:
    _, out, _ = gt(capsys, "ask", "toast/conventions", "How are functions named?", "--json")
    assert any(each["path"] == "CONVENTIONS.md" for each in json.loads(out)["evidence"])


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("toast/oracle", "this polecat has blocks, conventions, scope, specs"),
        ("nobody/specs", "no polecat named 'nobody'"),
        ("specs", "names no sidecar"),
    ],
)
def test_who_is_not_there_is_told(capsys: pytest.CaptureFixture[str], town: Town, target: str, words: str) -> None:
    code, out, err = gt(capsys, "ask", target, "x?")
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1


def test_a_specification_that_is_gone_is_told(capsys: pytest.CaptureFixture[str], town: Town) -> None:
    (town.root / "work" / "docs" / "api-spec.md").unlink()
    code, _, err = gt(capsys, "ask", "toast/specs", "x?")
    assert code == 2
    assert "api-spec.md" in err


def test_answers_are_counted_in_the_towns_ledger(capsys: pytest.CaptureFixture[str], town: Town) -> None:
    gt(capsys, "ask", "toast/specs", "validation error?")
    gt(capsys, "distill", "--artifact", str(town.root / "work" / "docs"), "--question", "validation error?")
    code, out, _ = gt(capsys, "distill", "--stats", "--json")
    assert code == 0
    assert json.loads(out)["questions"] == 2
    assert (town.runtime / "distill.jsonl").exists()
    assert "2 questions (2 answered" in gt(capsys, "distill", "--stats")[1]
