"""Looking for what was probably not meant in a prompt of typed blocks."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from witness.prompts.blocks import READ, TEXT, TYPES, decompose

_ANY_TAG = re.compile(r"<([A-Za-z_][\w-]*)(?:\s[^<>]*)?>")


@dataclass(frozen=True, slots=True)
class Fault:
    """Something in a prompt that was probably not meant.

    Args:
        line: one-based.
        message: what is wrong and what would be right.
    """

    line: int
    message: str


def lint(text: str) -> list[Fault]:
    """Look for empty and unclosed blocks, unknown tags, text outside of blocks, and what every prompt should say."""
    faults = []
    seen = set()
    for piece in decompose(text):
        block = piece.block
        if block is None:
            continue
        line = text.count("\n", 0, piece.start) + 1
        seen.add(block.type)
        if block.type == TEXT:
            faults += _lint_loose(piece.source, line)
        elif not block.content.strip():
            faults.append(Fault(line, f"<{block.type}> is empty"))
    faults += [Fault(1, f"no <{kind}>: the agent is not told it") for kind in ("role", "objective") if kind not in seen]
    return sorted(faults, key=lambda fault: fault.line)


def _lint_loose(source: str, line: int) -> list[Fault]:
    faults = []
    for found in _ANY_TAG.finditer(source):
        at = line + source.count("\n", 0, found.start())
        tag = found[1]
        if tag in READ or tag == "documents":
            faults.append(Fault(at, f"<{tag}> is never closed"))
        else:
            near = difflib.get_close_matches(tag, TYPES, 1)
            faults.append(Fault(at, f"<{tag}> is no block type" + (f": did you mean <{near[0]}>?" if near else "")))
    return faults or [Fault(line, "this text stands outside of every block")]
