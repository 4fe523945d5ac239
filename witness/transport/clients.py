"""The agents' clients: how each records events, how it is told something, and what its idle prompt looks like.

One row a client. Where a client has hooks of its own, those record and deliver; the prompt's looks are what the poller
goes by when hooks are missing or fail. Looks were read from real screens: Claude Code 2.1.197, Codex CLI 0.171.0,
Gemini CLI 0.61.0, opencode 1.18.33.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath


class Channel(StrEnum):
    """How a client's events are recorded and its agent is told something."""

    HOOKS = "hooks"
    PLUGIN = "plugin"
    PANE = "pane"


@dataclass(frozen=True, slots=True)
class Client:
    """One client.

    Args:
        name: ours for it.
        title: its own name, for people.
        programs: what its program is called.
        channel: how events are recorded and texts delivered while the agent works.
        wakes: its hooks can also wake an idle agent; else the poller types.
        prompt: the line of its input, from the screen's last match; group 1 is what stands in it. None: it has no
            prompt that we would know, and nothing is ever typed.
        framed: the prompt stands between two ruled lines; a line like it elsewhere is history.
        placeholders: what an empty prompt may show in plain style; dim text never counts as typed.
        busy: what the screen's lower part shows while the agent works.
        dialog: what it shows while it asks a person for something.
        settings: where ``gt hooks install`` writes by default, below the home directory.
    """

    name: str
    title: str
    programs: tuple[str, ...]
    channel: Channel
    wakes: bool = False
    prompt: re.Pattern[str] | None = None
    framed: bool = False
    placeholders: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()
    dialog: tuple[str, ...] = ()
    settings: str = ""


CLAUDE = Client(
    name="claude",
    title="Claude Code",
    programs=("claude",),
    channel=Channel.HOOKS,
    wakes=True,
    prompt=re.compile(r"^❯\s?(.*)$"),
    framed=True,
    busy=("esc to interrupt",),
    dialog=("Esc to cancel", "Enter to confirm", "Enter to select"),
    settings=".claude/settings.json",
)
CODEX = Client(
    name="codex",
    title="Codex CLI",
    programs=("codex",),
    channel=Channel.HOOKS,
    prompt=re.compile(r"^›\s?(.*)$"),
    placeholders=("Ask Codex to do anything",),
    busy=("esc to interrupt",),
    dialog=("Press enter to", "esc to cancel"),
    settings=".codex/hooks.json",
)
GEMINI = Client(
    name="gemini",
    title="Gemini CLI",
    programs=("gemini",),
    channel=Channel.HOOKS,
    prompt=re.compile(r"^ ?>\s+(.*)$"),
    placeholders=("Type your message or @path/to/file",),
    busy=("esc to cancel",),
    dialog=("Waiting for user confirmation", "Enter to select"),
    settings=".gemini/settings.json",
)
OPENCODE = Client(
    name="opencode",
    title="opencode",
    programs=("opencode",),
    channel=Channel.PLUGIN,
    busy=("esc interrupt",),
    settings=".config/opencode/plugins/gt-witness.js",
)
# Whatever else runs in the pane: observed through the pane, told something only when a person asks for it.
ANY = Client(name="any", title="any other agent", programs=(), channel=Channel.PANE)

CLIENTS = (CLAUDE, CODEX, GEMINI, OPENCODE, ANY)
_RUNNERS = frozenset({"env", "npx", "bunx", "node", "bun", "nice", "exec"})


def client_for(argv: Sequence[str]) -> Client:
    """The client that an agent's command starts; ``ANY`` when it is none that we know."""
    for word in argv:
        name = PurePath(word).name.removesuffix(".exe").removesuffix(".js")
        for client in CLIENTS:
            if name in client.programs:
                return client
        # env, its assignments and flags, and runners may stand in front of the program; anything else is it.
        if name not in _RUNNERS and "=" not in word and not word.startswith("-"):
            break
    return ANY


def client_named(name: str) -> Client | None:
    """The row of that name."""
    return next((client for client in CLIENTS if client.name == name), None)
