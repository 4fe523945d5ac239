"""The ``console`` blocks of a page: what a person types behind ``$``, and what is shown then.

``…`` stands for anything within a line, and on a line of its own for any lines. A command whose comment begins with
``once`` is asked again until it shows that, for up to a minute. A block below ``<!-- not run: REASON -->`` is not run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^(?:<!-- not run: (?P<reason>[^\n]+?) -->\n)?```console\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a page.

    Args:
        place: ``page:line``.
        text: what is typed.
        shown: the lines that are shown then.
        patient: it is asked again until it shows them.
    """

    place: str
    text: str
    shown: tuple[str, ...]
    patient: bool

    def fits(self, output: str) -> bool:
        """Whether what was printed is what the page shows."""
        # Lines of anything take their own line ends with them.
        parts = [
            r"(?:[^\n]*\n)*?" if line.strip() == "…" else re.escape(line.rstrip()).replace("…", r"[^\n]*") + r"[ \t]*\n"
            for line in self.shown
        ]
        text = "".join(line.rstrip() + "\n" for line in output.splitlines())
        return re.fullmatch("".join(parts), text) is not None


@dataclass(frozen=True, slots=True)
class Block:
    """One block; ``reason`` says why it is not run, and is empty where it is."""

    place: str
    commands: tuple[Command, ...]
    reason: str = ""


def blocks(page: Path) -> list[Block]:
    """The console blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for block in _BLOCK.finditer(text):
        first = text.count("\n", 0, block.start("text")) + 1
        commands: list[Command] = []
        for number, line in enumerate(block["text"].splitlines(), first):
            if line.startswith("$ "):
                typed, _, comment = line[2:].partition(" # ")
                commands.append(Command(f"{page.name}:{number}", typed.strip(), (), comment.strip().startswith("once")))
            elif commands:
                last = commands[-1]
                commands[-1] = Command(last.place, last.text, (*last.shown, line), last.patient)
        found.append(Block(f"{page.name}:{first}", tuple(commands), block["reason"] or ""))
    return found
