"""What others remember in markdown is taken in whole, and the client's own file is written if asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecars.memory.bridges import markdown_memories
from sidecars.memory.store import MemoryStore
from tests.memory.cli import Cli


def _texts(gt: Cli) -> list[str]:
    return [memory.content for memory in MemoryStore(gt.project).read("ada").memories]


def test_points_rows_log_entries_and_paragraphs_are_memories() -> None:
    text = """---
name: ada
---
# Ada

## Preferences
- **short** names
  in all modules

Reviews come
before merges.

## Decisions
| what | why |
| --- | --- |
| one repository | builds |
| | only this |

- [2026-01-02] outcome: the port moved
"""
    assert [(each["type"], each["content"]) for each in markdown_memories(text)] == [
        ("preference", "short names in all modules"),
        ("preference", "Reviews come before merges."),
        ("decision", "what: one repository; why: builds"),
        ("decision", "why: only this"),
        ("decision", "[2026-01-02] outcome: the port moved"),
    ]
    assert markdown_memories("nothing but words") == []


def test_what_is_too_long_is_cut_between_sentences_and_nothing_is_lost() -> None:
    said = " ".join(f"Sentence number {n} says a thing." for n in range(60)) + " " + "x" * 700
    parts = [each["content"] for each in markdown_memories(f"# Log\n\n- {said}\n")]
    assert max(map(len, parts)) <= 500
    assert "".join(parts).replace(" ", "") == said.replace(" ", "")


def test_a_folder_of_bmad_is_imported_whole_and_says_what_it_left(gt: Cli) -> None:
    folder = gt.project / "_bmad" / "_memory" / "ada-sidecar"
    (folder / "knowledge").mkdir(parents=True)
    (folder / "memories.md").write_text("# Memories\n- likes rain\n")
    (folder / "knowledge" / "api.md").write_text("# Knowledge\n\nThe API is versioned by path.\n")
    (folder / "party.memlog.md").write_text("# Log\n- callback: the tea joke\n")
    (folder / "logo.png").write_bytes(b"\x89PNG")
    ran = gt("import", "ada", str(folder))
    assert ran.code == 0, ran.err
    assert ran.out == "3 taken in, 3 of them new\n"
    assert "logo.png is no markdown" in ran.err
    assert sorted(_texts(gt)) == ["The API is versioned by path.", "callback: the tea joke", "likes rain"]


def test_the_clients_memory_is_read_and_written_in_a_part_of_its_own(
    gt: Cli, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path_factory.mktemp("claude")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home))
    assert gt("import", "ada", "--client").code == 2
    slug = "".join(char if char.isascii() and char.isalnum() else "-" for char in str(gt.project))
    auto = home / "projects" / slug / "memory"
    auto.mkdir(parents=True)
    (auto / "MEMORY.md").write_text("# Project\n- tests need docker\n")
    own = gt.project / ".claude" / "agent-memory" / "ada" / "MEMORY.md"
    own.parent.mkdir(parents=True)
    own.write_text("# Mine\n- ports live in config.toml\n")
    assert gt("import", "ada", "--client").out == "2 taken in, 2 of them new\n"
    assert _texts(gt) == ["tests need docker", "ports live in config.toml"]
    for _ in range(2):
        assert gt("export", "ada", "--client").code == 0
    text = Path(own).read_text()
    assert text.startswith("# Mine\n- ports live in config.toml\n")
    assert text.count("- tests need docker") == 1
    assert gt("import", "ada", "--client").out == "2 taken in, 0 of them new\n"
    assert gt("import", "ada").code == 2
