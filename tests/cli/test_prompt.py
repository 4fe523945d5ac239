from __future__ import annotations

import json
from pathlib import Path

import pytest

from witness.cli import main


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = 0
    try:
        main(list(argv))
    except SystemExit as ended:
        code = int(ended.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def call(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    code, out, _ = run(capsys, *argv)
    assert code == 0
    return out


def test_there_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"type": "role", "content": "r <1>"}, {"type": "document", "content": "d\nd", "summary": "s.md"}]
    (tmp_path / "b.json").write_text(json.dumps(rows))
    (tmp_path / "note").write_text("from a file")
    text = call(
        capsys, "prompt", "render", str(tmp_path / "b.json"), "--objective", "o", "--block", f"context=@{tmp_path}/note"
    )
    (tmp_path / "p.xml").write_text(text)
    back = json.loads(call(capsys, "prompt", "parse", str(tmp_path / "p.xml"), "--json"))
    assert [(row["type"], row["content"], row["summary"]) for row in back] == [
        ("role", "r <1>", ""),
        ("document", "d\nd", "s.md"),
        ("objective", "o", ""),
        ("context", "from a file", ""),
    ]
    assert call(capsys, "prompt", "lint", str(tmp_path / "p.xml")) == ""


def test_yaml_and_a_listing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b.yaml").write_text("- {type: role, content: words}\n")
    (tmp_path / "p.xml").write_text(call(capsys, "prompt", "render", str(tmp_path / "b.yaml")))
    assert call(capsys, "prompt", "parse", str(tmp_path / "p.xml")).split()[0] == "role"


def test_lint_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.xml"
    file.write_text("<role>r</role>\n<objective></objective>\n")
    code, out, _ = run(capsys, "prompt", "lint", str(file))
    assert (code, out) == (1, f"{file}:2: <objective> is empty\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not YAML"),
        ("[1", "neither JSON nor YAML"),
        ("a: 1", "must hold a list"),
        ("[1]", "b.txt: 0: a block is {type, content}"),
        ('[{"type": "poem", "content": ""}]', "'poem' is no block type"),
    ],
)
def test_bad_blocks(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str) -> None:
    (tmp_path / "b.txt").write_text(text)
    code, out, err = run(capsys, "prompt", "render", str(tmp_path / "b.txt"))
    assert (code, out) == (2, "")
    assert words in err


@pytest.mark.parametrize("argv", [["--block", "role"], ["--block", "poem=x"], ["missing.yaml"], []])
def test_bad_usage(capsys: pytest.CaptureFixture[str], argv: list[str]) -> None:
    code, out, err = run(capsys, "prompt", "render", *argv)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
