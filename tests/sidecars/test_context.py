from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sidecars.observer.context.files import read_front_matter, read_now
from sidecars.observer.context.gather import gather
from sidecars.observer.factory import assemble
from sidecars.type_reader.type_loader import load_type
from witness.assignment import Assignment
from witness.clock import ManualClock
from witness.errors import DeclarationError, JournalError
from witness.journal import Journal
from witness.journal.groups import DefinitionTable
from witness.judging.observation import Observation


def sets(assignment: Assignment) -> dict[str, tuple[str, ...]]:
    return dict(gather(load_type("scope"), assignment).sets)


def test_the_tasks_front_matter(assignment: Assignment) -> None:
    assert sets(assignment) == {"files": ("src/**", "tests/**"), "not": ("src/private/**", "*.env")}


def test_the_arguments_file_beats_the_task(assignment: Assignment) -> None:
    Path(assignment.workdir, "issue.md").write_text("---\nnot: a, b\n---\nText\n")
    material = gather(load_type("scope"), replace(assignment, argument="issue.md"))
    assert material.sets == {"not": ("a", "b")}
    assert material.documents == (("issue", "Text"),)


def test_globs_as_argument(assignment: Assignment) -> None:
    found = sets(replace(assignment, argument="src/**, !src/private/**", task=""))
    assert found == {"files": ("src/**",), "not": ("src/private/**",)}


def test_variables_beat_both(assignment: Assignment) -> None:
    found = sets(replace(assignment, variables={"scope_not": "x, y/**", "scope_files": ""}))
    assert found == {"files": ("src/**", "tests/**"), "not": ("x", "y/**")}
    assert sets(replace(assignment, variables={"files": "a"}))["files"] == ("a",)


@pytest.mark.parametrize("text", ["", "no front matter", "---\nunclosed: true\n", "----\nfiles: x\n---\n"])
def test_an_issue_without_front_matter(text: str) -> None:
    front = read_front_matter(text, "i")
    assert (front.sets, front.rules, front.body) == ({}, (), text)


def test_a_byte_order_mark_and_windows_lines() -> None:
    front = read_front_matter("\ufeff---\r\nfiles: [a]\r\n---\r\nBody\r\n", "i")
    assert (front.sets, front.body) == ({"files": ("a",)}, "Body\r\n")


def test_a_missing_file_is_a_fault(assignment: Assignment) -> None:
    with pytest.raises(DeclarationError, match=r"missing\.md: no such file"):
        sets(replace(assignment, argument="missing.md"))


def test_only_regular_files_are_read(assignment: Assignment) -> None:
    with pytest.raises(DeclarationError, match="not a regular file"):
        sets(replace(assignment, argument="/dev/zero"))


# -- the other sources ------------------------------------------------------------------------------------------------


def test_a_specification_with_its_summary_and_rules(assignment: Assignment) -> None:
    rules = "rules:\n  - {name: r, text: x, say: It is.}\n"
    Path(assignment.workdir, "a.md").write_text(f"---\n{rules}---\n# Title\nIt must hold.\nIt is nice.\n")
    Path(assignment.workdir, "b.md").write_text("Plain words.\n")
    material = gather(load_type("specs"), replace(assignment, type="specs", argument="*.md"))
    assert [name for name, _ in material.documents] == ["a.md", "what must hold by a.md", "b.md"]
    assert dict(material.documents)["what must hold by a.md"] == "6: It must hold."
    assert [rule.name for rule in material.rules] == ["r"]


@pytest.mark.parametrize("argument", ["missing.md", "*.rst", "a.md,missing.md"])
def test_a_missing_specification_is_a_fault(assignment: Assignment, argument: str) -> None:
    Path(assignment.workdir, "a.md").write_text("It must hold.\n")
    with pytest.raises(DeclarationError, match=r"no such file|no file matches"):
        gather(load_type("specs"), replace(assignment, type="specs", argument=argument))


def test_a_folder_of_specifications(assignment: Assignment) -> None:
    folder = Path(assignment.workdir, "docs", "deep")
    folder.mkdir(parents=True)
    (folder / "a.md").write_text("It must hold.\n")
    (folder / "image.png").write_bytes(b"\x89PNG")
    material = gather(load_type("specs"), replace(assignment, type="specs", argument="docs"))
    assert material.documents[0][0] == "docs/deep/a.md"


def test_a_bad_rule_in_a_documents_front_matter_names_its_line(assignment: Assignment) -> None:
    Path(assignment.workdir, "a.md").write_text("---\ntitle: x\nrules:\n  - {name: r, say: It is., txet: x}\n---\n")
    with pytest.raises(DeclarationError, match=r"a\.md:4: rules\.0\.txet: unknown key of a rule"):
        gather(load_type("specs"), replace(assignment, type="specs", argument="a.md"))


def test_conventions_that_are_not_there_are_no_fault(assignment: Assignment) -> None:
    assert gather(load_type("conventions"), replace(assignment, type="conventions")).documents == ()
    Path(assignment.workdir, "AGENTS.md").write_text("No print.\n")
    found = gather(load_type("conventions"), replace(assignment, type="conventions")).documents
    assert ("AGENTS.md", "No print.") in found


def test_the_names_of_code_files(assignment: Assignment) -> None:
    Path(assignment.workdir, "money.py").write_text("def parse_cents(x): ...\ndef _own(): ...\ndef main(): ...\n")
    material = gather(load_type("tools"), replace(assignment, type="tools", argument="money.py"))
    assert dict(material.names) == {"python:parsecents": "parse_cents in money.py"}
    assert "gt peek" in dict(material.documents)["commands.md"]


def test_declared_servers_without_a_listing(assignment: Assignment) -> None:
    Path(assignment.workdir, ".mcp.json").write_text('{"mcpServers": {"shop": {"command": "x"}, "bad": 3}}')
    documents = dict(gather(load_type("tools"), replace(assignment, type="tools")).documents)
    assert documents["MCP tools"] == "server shop"


@pytest.mark.parametrize("text", ["", "not json", "[]", '{"mcpServers": 3}'])
def test_a_broken_mcp_file_is_no_fault(assignment: Assignment, text: str) -> None:
    Path(assignment.workdir, ".mcp.json").write_text(text)
    assert "MCP tools" not in dict(gather(load_type("tools"), replace(assignment, type="tools")).documents)


def test_the_blocks_that_a_prompt_has_and_those_in_reserve(assignment: Assignment) -> None:
    Path(assignment.run_dir, "prompt.xml").write_text("<role>r</role><ctx>c</ctx><constraints> </constraints>")
    Path(assignment.workdir, "blocks.xml").write_text("<constraints>No\n  network.</constraints><role></role>")
    material = gather(load_type("blocks"), replace(assignment, type="blocks", argument="blocks.xml"))
    assert material.blocks == frozenset({"role", "context"})
    assert dict(material.library) == {"constraints": "No network."}


def test_a_bead_is_asked_of_bd(assignment: Assignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "bd"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nprintf -- '---\\nnot: [%s]\\n---\\n' \"$2\"\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    assert sets(replace(assignment, argument="gt-12", task="")) == {"not": ("gt-12",)}


# -- whose words ------------------------------------------------------------------------------------------------------


def test_words_of_a_document_carry_its_name_and_line(
    assignment: Assignment, journal: Journal, clock: ManualClock
) -> None:
    Path(assignment.workdir, "CONVENTIONS.md").write_text(
        "---\n# for sidecars\nrules:\n  - name: no-prints\n    writes: ['*.py']\n    text: print\n"
        "    say: '{path} prints; this project logs.'\n---\n# Conventions\n"
    )
    mine = replace(assignment, type="conventions", name="conventions")
    observer = assemble(mine).observer(mine, journal, clock, aloud=False)
    (said,) = observer.take([Observation("e1", tool="Edit", written=("a.py",), text="print(1)")])
    assert said.source == "CONVENTIONS.md:7"
    assert said.message == "[sidecar:conventions, CONVENTIONS.md:7] a.py prints; this project logs."


def test_words_of_a_type_of_the_project_are_the_projects_and_shipped_ones_are_nobodys(
    assignment: Assignment, journal: Journal, clock: ManualClock
) -> None:
    folder = Path(assignment.workdir, ".gt", "sidecars", "scope")
    folder.mkdir(parents=True)
    (folder / "snippets.yaml").write_text("# ours\nedited-not: '{path} is not yours.'\n")
    observer = assemble(assignment).observer(assignment, journal, clock, aloud=False)
    (said,) = observer.take([Observation("e1", tool="Edit", written=("src/private/a.py",), text="x")])
    assert said.message == "[sidecar:scope, .gt/sidecars/scope/snippets.yaml:2] src/private/a.py is not yours."
    (said,) = observer.take([Observation("e2", tool="Read", opened=("src/private/b.py",))])
    assert (said.source, said.message.partition("]")[0]) == ("", "[sidecar:scope")


def test_the_words_of_a_block_are_its_files(assignment: Assignment, journal: Journal, clock: ManualClock) -> None:
    library = Path(assignment.workdir, ".gt")
    library.mkdir()
    (library / "blocks.xml").write_text("<!-- ours -->\n<constraints>\nNo new dependency.\n</constraints>\n")
    Path(assignment.run_dir, "prompt.xml").write_text("<role>r</role>")
    mine = replace(assignment, type="blocks", name="blocks")
    observer = assemble(mine).observer(mine, journal, clock, aloud=False)
    (said,) = observer.take([Observation("e1", tool="Edit", written=("pyproject.toml",), text="x")])
    assert said.message.startswith("[sidecar:blocks, .gt/blocks.xml:3] The prompt had no constraints block")


# -- what holds for a whole run ---------------------------------------------------------------------------------------


def test_guides_hold_as_they_were_at_the_first_start(assignment: Assignment) -> None:
    workdir = Path(assignment.workdir)
    (workdir / "AGENTS.md").write_text("- Never use `print` in `*.py`; use `log` instead.\n")
    mine = replace(assignment, type="conventions", name="conventions")
    first = assemble(mine, starts=True)
    (workdir / "AGENTS.md").unlink()
    (workdir / "CLAUDE.md").write_text("- Never use `eval` in `*.py`.\n")
    again = assemble(mine, starts=True)
    assert first.material.rules
    assert again.material == first.material
    assert first.texts.changed(read_now) == again.texts.changed(read_now) == [str(workdir / "AGENTS.md")]
    later = replace(mine, group=replace(mine.group, run="another"))
    assert assemble(later, starts=True).material != first.material


def test_a_journal_that_cannot_be_read_gives_no_new_text(
    assignment: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    issue = Path(assignment.workdir, "issue.md")
    issue.write_text("---\nnot: a\n---\n")
    mine = replace(assignment, argument="issue.md")
    assemble(mine, starts=True)
    issue.write_text("---\nnot: b\n---\n")
    with monkeypatch.context() as patch:
        patch.setattr(DefinitionTable, "of", _fails)
        with pytest.raises(JournalError):
            assemble(mine, starts=True)
    assert assemble(mine, starts=True).material.sets == {"not": ("a",)}


def _fails(*_: object) -> None:
    raise JournalError("disk I/O error")


def test_a_look_before_the_spawn_fixes_nothing(assignment: Assignment) -> None:
    issue = Path(assignment.workdir, "issue.md")
    issue.write_text("---\nnot: a\n---\n")
    mine = replace(assignment, argument="issue.md")
    assemble(mine)
    issue.write_text("---\nnot: b\n---\n")
    assert assemble(mine, starts=True).material.sets == {"not": ("b",)}
