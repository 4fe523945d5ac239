"""What a model is given to begin with: its task, the passages that a search has ranked, the question."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sidecars.distill.answer import Claim
from sidecars.distill.extractive_backend import search
from sidecars.distill.request import Inquiry
from sidecars.distill.tools import Tools

# Characters of ranked passages that go with the question: most questions are answered from them alone.
PREPASS_ROOM = 2400


def instructions(tools: str) -> str:
    """What a model is told about its task.

    Args:
        tools: the names of its tools, as ``Read and Grep``.
    """
    return (Path(__file__).parent / "prompt.md").read_text(encoding="utf-8").replace("{tools}", tools)


def opening(inquiry: Inquiry, tools: Tools, names: Mapping[str, str] | None = None) -> tuple[str, tuple[Claim, ...]]:
    """The first message: the artifacts, the passages that the index has ranked, the question.

    Args:
        inquiry: the question.
        tools: for the marks around what comes from artifacts.
        names: how the artifacts are called there, when not by their own names.

    Returns:
        The text, and the passages as claims, for the case that nothing better comes.
    """
    found = search(inquiry.shelf, inquiry.question, PREPASS_ROOM)
    called = names or {}
    entries = inquiry.shelf.artifacts.entries()
    listed = [f"{called.get(entry.name, entry.name)} ({entry.size} bytes)" for entry in entries[:20]]
    if len(entries) > 20:
        listed.append(f"and {len(entries) - 20} more")
    counts = ", ".join(
        f"{each.term.text} {'' if each.exact else 'about '}{each.lines}"
        for each in found.ranking.counts[:10]
        if each.lines
    )
    several = len(entries) > 1
    passages = [
        f"{called.get(each.path, each.path) + ' ' if several else ''}{each.locator}: {each.quote}"
        for each in found.claims
    ]
    data = "\n".join(
        [
            *("Artifacts:", *listed),
            f"{found.ranking.lines} lines in all. Lines with: {counts or 'none of the words'}.",
            *("", "Passages:", *(passages or ["none"])),
        ]
    )
    return f"{tools.framed(data)}\n\nQuestion: {inquiry.question}", found.claims
