from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sidecars.material import gather
from sidecars.material.front_matter import read_front_matter
from sidecars.type_files import load_type
from witness.assignment import Assignment
from witness.errors import DeclarationError


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
    with pytest.raises(DeclarationError, match="no such file"):
        sets(replace(assignment, argument="/dev/zero"))
