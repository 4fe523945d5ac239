"""The agents' clients: how each records events, how it is told something, and what its idle prompt looks like.

One row a client. Where a client has hooks of its own, those record and deliver; the prompt's looks are what the poller
goes by when hooks are missing or fail. Looks were read from real screens: Claude Code 2.1.197, Codex CLI 0.171.0,
Gemini CLI 0.61.0, opencode 1.18.33.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path, PurePath

from witness.errors import WitnessError
from witness.installed import CLIENTS as EXTRA_CLIENTS
from witness.installed import describe, entries, load


class Channel(StrEnum):
    """How a client's events are recorded and its agent is told something."""

    MOD = "mod"
    HOOKS = "hooks"
    HOOKS_STRING = "hooks-string"
    PLUGIN = "plugin"
    PANE = "pane"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Client:
    """One client. A package adds one as an entry point of ``gt_witness.clients`` that names an instance.

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
        rest: what it shows below an empty prompt while it rests, one of them at least; empty where none is known.
        done: the line with which it ends a turn, right above its prompt.
        dialog: what it shows while it asks a person for something.
        settings: where ``gt hooks install`` writes by default, below the home directory.
        first: what stands right behind the program when it is started with a prompt; ``{prompt}`` is filled in.
        last: what stands at the end of its arguments then.
        own_settings: how it is given a settings file for one session; ``{settings}`` is filled in.
        resume: what begins an earlier conversation again, right behind the program; ``{session}`` is filled in. Empty
            where we know no way.
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
    rest: tuple[str, ...] = ()
    done: re.Pattern[str] | None = None
    dialog: tuple[str, ...] = ()
    settings: str = ""
    first: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    own_settings: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()

    def launch(self, argv: Sequence[str], prompt: str, settings: str, session: str = "") -> list[str]:
        """The argument list that starts a session.

        Args:
            argv: the agent's command as it was given.
            prompt: its first prompt, empty for none; ignored by an agent that we do not know.
            settings: path of the settings file made for this session.
            session: the client's id of an earlier conversation to begin again; empty for a new one.
        """
        at = (program_at(argv, self) or 0) + 1

        def filled(words: tuple[str, ...]) -> list[str]:
            return [
                {"{prompt}": prompt, "{settings}": settings, "{session}": session}.get(word, word) for word in words
            ]

        first, last = (filled(self.first), filled(self.last)) if prompt else ([], [])
        again = filled(self.resume) if session else []
        return [*argv[:at], *again, *first, *argv[at:], *filled(self.own_settings), *last]


def _program(word: str) -> str:
    return PurePath(word).name.removesuffix(".exe").removesuffix(".js")


CLAUDE = Client(
    name="claude",
    title="Claude Code",
    programs=("claude",),
    channel=Channel.HOOKS,
    wakes=True,
    prompt=re.compile(r"^❯\s?(.*)$"),
    framed=True,
    busy=("esc to interrupt",),
    rest=("? for shortcuts", "shift+tab to cycle", "← for agents"),
    done=re.compile(r"^[✢·✽✶*✻✳] \w+ for \d"),
    dialog=("Esc to cancel", "Enter to confirm", "Enter to select"),
    settings=".claude/settings.json",
    # Not at the end: a flag that takes several values (--allowedTools) would swallow it.
    first=("{prompt}",),
    own_settings=("--settings", "{settings}"),
    resume=("--resume", "{session}"),
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
    last=("{prompt}",),
)
GEMINI = Client(
    name="gemini",
    title="Gemini CLI",
    programs=("gemini",),
    channel=Channel.HOOKS,
    prompt=re.compile(r"^ ?[>*]\s+(.*)$"),  # the star in its YOLO mode
    placeholders=("Type your message or @path/to/file",),
    busy=("esc to cancel",),
    dialog=("Waiting for user confirmation", "Enter to select"),
    settings=".gemini/settings.json",
    last=("--prompt-interactive", "{prompt}"),
)
OPENCODE = Client(
    name="opencode",
    title="opencode",
    programs=("opencode",),
    channel=Channel.PLUGIN,
    busy=("esc interrupt",),
    settings=".config/opencode/plugins/gt-witness.js",
    last=("--prompt", "{prompt}"),
)
# Whatever else runs in the pane: observed through the pane, told something only when a person asks for it.
ANY = Client(name="any", title="any other agent", programs=(), channel=Channel.PANE)

CLIENTS = (CLAUDE, CODEX, GEMINI, OPENCODE, ANY)
#: What a package's own client may be: its hooks would need a dialect of ours.
_INSTALLED_CHANNELS = (Channel.PANE, Channel.NONE)
_RUNNERS = frozenset({"env", "npx", "bunx", "node", "bun", "nice", "exec"})


def client_for(argv: Sequence[str]) -> Client:
    """The client that an agent's command starts, also one that is installed; ``ANY`` when nobody knows it."""
    for word in argv:
        name = _program(word)
        for client in CLIENTS:
            if name in client.programs:
                return client
        # env, its assignments and flags, and runners may stand in front of the program; anything else is it.
        if name not in _RUNNERS and "=" not in word and not word.startswith("-"):
            return next((client for client in installed_clients()[0] if name in client.programs), ANY)
    return ANY


@cache
def installed_clients() -> tuple[tuple[Client, ...], tuple[str, ...]]:
    """The clients that other packages add (entry points of ``gt_witness.clients``), and one line for each fault.

    A row of ours is never replaced, and one that is wrong is left out; the others count.
    """
    found: list[Client] = []
    faults: list[str] = []
    for entry in entries(EXTRA_CLIENTS).values():
        try:
            client = load(entry, Client)
            if fault := _fault(client, [*CLIENTS, *found]):
                raise WitnessError(f"{describe(entry)} cannot be used: {fault}")
            found.append(client)
        except WitnessError as error:
            faults.append(str(error))
    if faults:
        import logging

    for fault in faults:
        logging.getLogger("witness.clients").warning("%s", fault)
    return tuple(found), tuple(faults)


def _fault(client: Client, known: Sequence[Client]) -> str:
    """What keeps an added client from being used, empty for nothing."""
    if client.channel not in _INSTALLED_CHANNELS:
        return f"its channel is {client.channel}, and has to be one of {', '.join(_INSTALLED_CHANNELS)}"
    for other in known:
        if client.name == other.name or not set(client.programs).isdisjoint(other.programs):
            return f"{other.name} has its name or one of its programs already"
    return "" if client.programs else "it names no programs"


def program_at(argv: Sequence[str], client: Client) -> int | None:
    """Where a client's program stands in a command; None when it does not."""
    return next((place for place, word in enumerate(argv) if _program(word) in client.programs), None)


def client_named(name: str) -> Client | None:
    """The client of that name, also an installed one."""
    ours = next((client for client in CLIENTS if client.name == name), None)
    return ours or next((client for client in installed_clients()[0] if client.name == name), None)


def claude_home(environ: Mapping[str, str]) -> Path:
    """Claude Code's own folder: its settings, its plugins."""
    return Path(environ.get("CLAUDE_CONFIG_DIR") or Path(environ.get("HOME") or Path.home()) / ".claude")
