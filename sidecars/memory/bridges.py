"""Memories that others keep in markdown: the agent's own client, and BMAD's agents.

Whole: each point of a list, each row of a table, each entry of a log and each paragraph is a memory of its own; what is
longer than a memory may be is cut between sentences into several. Headings and front matter are not remembered.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from sidecars.memory.record import CONTENT_LIMIT, Sidecar, one_line
from witness.files import files_below, read_project, replace_file

_POINT = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(.+?)\s*$")
_HEADING = re.compile(r"^#+\s+(.*)$")
_ROW = re.compile(r"^\s*\|(.+)\|\s*$")
_RULE = re.compile(r"^[\s|:-]+$")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+")
# What stands under a heading is, by a word in it.
_TYPES = (("prefer", "preference"), ("decision", "decision"), ("context", "context"), ("knowledge", "context"))
_BEGIN, _END = "<!-- gt memory: written anew by each export -->", "<!-- gt memory: end -->"
_READ = (".md", ".markdown", ".txt")


def markdown_memories(text: str) -> list[dict[str, str]]:
    """All that a markdown text says, as memories; none when it has no heading, point or row.

    Args:
        text: the text.
    """
    lines = _without_front_matter(_without_own(text).splitlines())
    if not any(form.match(line) for line in lines for form in (_HEADING, _POINT, _ROW)):
        return []
    return [{"type": kind, "content": part} for kind, said in _said(lines) for part in _fitting(said)]


def _said(lines: list[str]) -> Iterator[tuple[str, str]]:
    kind, paragraph, heads = "observation", list[str](), list[str]()
    for at, line in enumerate([*lines, ""]):
        heading, point, row = _HEADING.match(line), _POINT.match(line), _ROW.match(line)
        # A line that is indented goes on with the point above it.
        if paragraph and (heading or point or row or not line.strip()):
            yield kind, " ".join(paragraph)
            paragraph = []
        if heading:
            words = heading[1].casefold()
            kind = next((kind for word, kind in _TYPES if word in words), "observation")
        elif row:
            cells = [one_line(cell) for cell in row[1].split("|")]
            if at + 1 < len(lines) and "-" in lines[at + 1] and _RULE.match(lines[at + 1]):
                heads = cells
            elif not _RULE.match(line):
                named = [f"{head}: {cell}" if head else cell for head, cell in zip(heads, cells, strict=False) if cell]
                yield kind, "; ".join(named or filter(None, cells))
        elif point:
            paragraph = [point[1].replace("**", "")]
        elif line.strip() and not line.lstrip().startswith(("<!--", "```", "---")):
            paragraph.append(line.strip().replace("**", ""))
        if not row:
            heads = []


def _fitting(said: str) -> Iterator[str]:
    part = ""
    for sentence in _SENTENCE.split(one_line(said)):
        rest = sentence
        while len(rest) > CONTENT_LIMIT:
            cut = rest.rfind(" ", 0, CONTENT_LIMIT) + 1 or CONTENT_LIMIT
            yield from filter(None, (part, rest[:cut].strip()))
            part, rest = "", rest[cut:]
        if part and len(part) + 1 + len(rest) > CONTENT_LIMIT:
            yield part
            part = ""
        part = f"{part} {rest}".strip()
    if part:
        yield part


def _without_front_matter(lines: list[str]) -> list[str]:
    if lines and lines[0].strip() == "---" and "---" in map(str.strip, lines[1:]):
        return lines[[each.strip() for each in lines].index("---", 1) + 1 :]
    return lines


def folder_memories(folder: Path) -> tuple[list[dict[str, str]], list[str]]:
    """All that the texts below a folder say.

    Returns:
        The memories, and the names of the files that were not read.
    """
    found, left = list[dict[str, str]](), list[str]()
    for path in files_below(folder, lambda name: True):
        try:
            text = read_project(path).decode("utf-8-sig") if path.suffix.lower() in _READ else None
        except (OSError, UnicodeDecodeError):
            text = None
        if text is None:
            left.append(str(path.relative_to(folder)))
        else:
            found += markdown_memories(text)
    return found, left


# -- the agent's own client ------------------------------------------------------------------------------------------


def client_folders(project: Path, agent: str, environ: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Where Claude Code keeps what it remembers of a project, and of an agent of that name; those that are there.

    Args:
        project: the project's root.
        agent: the agent's checked name.
        environ: where ``CLAUDE_CONFIG_DIR`` and ``HOME`` are looked up.
    """
    environ = os.environ if environ is None else environ
    own = environ.get("CLAUDE_CONFIG_DIR") or str(Path(environ.get("HOME", "/")) / ".claude")
    slug = re.sub(r"[^A-Za-z0-9]", "-", str(project))
    places = (
        Path(own) / "projects" / slug / "memory",
        agent_folder(project, agent),
        project / ".claude" / "agent-memory-local" / agent,
        Path(own) / "agent-memory" / agent,
    )
    return tuple(place for place in places if place.is_dir())


def agent_folder(project: Path, agent: str) -> Path:
    """The project's folder of the client's memory of an agent."""
    return project / ".claude" / "agent-memory" / agent


def write_client(project: Path, sidecar: Sidecar) -> Path:
    """Write a memory into the client's own file of the agent, in a part that is ours; the rest of it stays.

    Raises:
        OSError: it cannot be written.
    """
    folder = agent_folder(project, sidecar.agent)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "MEMORY.md"
    text = read_project(path).decode("utf-8", "replace") if path.is_file() else ""
    lines = "\n".join(f"- {each.content.replace('<', '&lt;')}" for each in sidecar.memories)
    rest = _without_own(text).strip()
    own = f"{_BEGIN}\n## Remembered by gt memory\n{lines}\n{_END}\n"
    replace_file(path, f"{rest}\n\n{own}" if rest else own, mode=0o644)
    return path


def _without_own(text: str) -> str:
    # What we wrote there ourselves is no news to us.
    before, begun, after = text.partition(_BEGIN)
    return before + after.partition(_END)[2] if begun else text
