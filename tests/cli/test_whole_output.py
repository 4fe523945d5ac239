"""What people read is whole: nothing is cropped when piped, and a narrow terminal folds."""

from __future__ import annotations

import pytest

from witness.cli.tables import write_lines, write_table

HEADS = ("sidecar", "decisions", "dollars")
ROWS = [["scope-with-a-long-name", "1234567", "0.12345"], ["all", "1234567", "0.12345"]]


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> pytest.CaptureFixture[str]:
    """What is printed to a terminal of 30 columns."""
    monkeypatch.setattr("witness.cli.tables.terminal_width", lambda: 30)
    return capsys


def test_a_piped_line_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    write_lines(["word " * 200 + "end"])
    assert capsys.readouterr().out == "word " * 200 + "end\n"


def test_a_narrow_terminal_folds_between_words_and_cuts_no_number(narrow: pytest.CaptureFixture[str]) -> None:
    lines = ["main/toast  RUNNING  working for 3 min 20 s  pid 31730", "  scope  pid 4194303  restarts 12"]
    write_lines(lines)
    shown = narrow.readouterr().out
    assert max(map(len, shown.splitlines())) <= 30
    assert shown.split() == " ".join(lines).split()


def test_a_table_that_does_not_fit_is_told_row_by_row(narrow: pytest.CaptureFixture[str]) -> None:
    write_table(HEADS, ROWS)
    numbers = "  decisions: 1234567\n  dollars: 0.12345\n"
    assert narrow.readouterr().out == f"scope-with-a-long-name\n{numbers}all\n{numbers}"


def test_a_piped_table_has_columns(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(HEADS, ROWS)
    assert capsys.readouterr().out.splitlines()[0] == "sidecar                 decisions  dollars"
