"""A hook's payload → what was done.

Only completed tool calls count: the events after a tool call and after a failed one, the agent's own and its
subagents'. What each client calls its tools and fields stands in ``client_calls``.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sidecars.observer.observe.client_calls import PROMPTED, TOLD, Call, complains, folder_before, read_call
from sidecars.observer.observe.plain_text import excerpt, plain, without_own_words
from sidecars.syntax.shell import ShellReading, read_answered, read_shell
from witness.events.effects import Effects
from witness.events.spool_reader import SpooledEvent
from witness.events.tree_files import in_generated_tree
from witness.judging.observation import Observation

# Enough for a judge to see what a call was about; keeps a model's prompt far under the API's price step at 100k tokens.
TEXT_LIMIT = 12_000
OUTPUT_LIMIT = 4_000
_LAST_WORDS = frozenset(["Stop", "AfterAgent"])
_TURN_ENDS = _LAST_WORDS | {"SessionEnd"}
# Calls whose second report, or whose effects, may still come.
_REMEMBERED = 256
# Characters of one input of a tool.
_GIVEN = 200


@dataclass(frozen=True, slots=True)
class _Written:
    """The files that a call wrote, as an observation has them."""

    paths: tuple[str, ...]
    created: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    generated: tuple[str, ...] = ()
    seen: str = "client"


def ends_turn(payload: Mapping[str, Any]) -> bool:
    """Whether a payload tells that the agent's own turn has ended."""
    return payload.get("hook_event_name") in _TURN_ENDS


def may_go_on(payload: Mapping[str, Any]) -> bool:
    """Whether an agent whose turn ends with this payload can be given something to go on with, once a turn."""
    return payload.get("hook_event_name") in _LAST_WORDS and not payload.get("stop_hook_active")


class EventReader:
    """Reads payloads of one agent.

    Args:
        workdir: where the agent works; files inside are spelled relative to it.
    """

    def __init__(self, workdir: str) -> None:
        self._roots = tuple(dict.fromkeys((os.path.abspath(workdir), os.path.realpath(workdir))))  # noqa: PTH100
        self._home = str(Path.home())
        self._known: deque[tuple[str, str, str]] = deque(maxlen=_REMEMBERED)
        self._awaited: deque[Observation] = deque(maxlen=_REMEMBERED)

    def see(self, event: SpooledEvent) -> Observation | None:
        """The completed action that an event tells of, with what was seen of it; None when it tells of none.

        Clients are known to report some calls twice: the second report is none. What was seen too late for its event is
        an action of its own, with the time of the call.
        """
        if event.of:
            return self._late(event)
        if event.key in self._known:
            return None
        self._known.append(event.key)
        observation = self.read(
            event.payload, event.id, event.time, event.cut, effects=event.effects, awaited=event.awaited
        )
        if observation is not None and event.awaited:
            self._awaited.append(observation)
        return observation

    def _late(self, event: SpooledEvent) -> Observation | None:
        if event.effects is None or not (event.effects.changed or event.effects.created or event.effects.removed):
            return None
        call = next((each for each in self._awaited if each.id == event.of), None)
        if call is None:
            call = Observation(event.of, int(event.of.partition("-")[0]) / 1e9, tool="Bash", seen="read")
        if call.seen == "client":
            return None  # it has told by itself
        written = self._looked_at(event.effects)
        return Observation(
            event.id,
            call.time,
            tool=call.tool,
            failed=call.failed,
            written=written.paths,
            created=written.created,
            removed=written.removed,
            generated=written.generated,
            seen=written.seen,
            subagent=call.subagent,
            subagent_id=call.subagent_id,
        )

    def read(
        self,
        payload: Mapping[str, Any],
        id: str = "",
        time: float = 0.0,
        cut: bool = False,
        cwd_before: str = "",
        effects: Effects | None = None,
        awaited: bool = False,
    ) -> Observation | None:
        """The completed action that a payload tells of, None when it tells of none.

        Args:
            payload: what the client gave to its hook; of any shape, foreign fields are passed over.
            id: the event's id.
            time: wall clock of the event.
            cut: the payload is incomplete.
            cwd_before: where the agent's shell stood before the call, empty when nobody has recorded it.
            effects: what was seen of the call, None when nobody looked.
            awaited: somebody still looks: what the call may have written is not told from its text.
        """
        cwd_before = cwd_before or (effects.cwd_before if effects else "")
        if payload.get("hook_event_name") in PROMPTED:
            prompt, short = excerpt(without_own_words(plain(_text(payload.get("prompt")))), TEXT_LIMIT)
            return Observation(id, time, tool="UserPromptSubmit", prompt=prompt, cut=cut or short)
        call = read_call(payload)
        if call is None:
            return None
        if call.command:  # how far a command came that failed, its text does not tell
            answered = effects is not None and effects.exit == 1
            in_doubt = call.failed or (call.untold and complains(call.answer(OUTPUT_LIMIT)))
            named = (read_answered if answered else _unread if in_doubt else read_shell)(call.command)
        else:
            opened, may_write = call.files()
            named = ShellReading(tuple(opened), tuple(may_write))
        # A mod knows where the agent stood before; a hook is told only where it stands after.
        cwd_before = cwd_before or _text(payload.get("cwd_before"))
        folder = None if call.folder is None else os.path.join(self._roots[0], call.folder)  # noqa: PTH118
        if call.folder_is_after and (cwd_before or call.folder):
            folder = cwd_before or folder_before(call.folder or "", named.folder)
        written = self._written(call, named, folder, effects, awaited)
        raw = self._written_out(named, folder, written.paths) if call.command else call.new_text()
        text, short = excerpt(without_own_words(plain(raw)), TEXT_LIMIT)
        output, short_too = excerpt(without_own_words(plain(call.answer(OUTPUT_LIMIT))), OUTPUT_LIMIT)
        command, cut_command = excerpt(plain(call.command), TEXT_LIMIT)
        return Observation(
            id=id,
            time=time,
            tool=call.tool,
            failed=call.failed,
            untold=call.untold,
            opened=self._spelled(named.opened, folder),
            written=written.paths,
            created=written.created,
            removed=written.removed,
            generated=written.generated,
            seen=written.seen,
            command=command,
            ran=named.ran,
            text=text,
            replaced="" if call.command else excerpt(call.old_text(), TEXT_LIMIT)[0],
            lines_written=sum(1 for line in raw.splitlines() if line.strip()),
            output=output,
            subagent=call.subagent,
            subagent_id=call.subagent_id,
            cut=cut or short or short_too or cut_command,
            given="" if call.command else _in_short(call.given),
        )

    def _written(
        self, call: Call, named: ShellReading, folder: str | None, effects: Effects | None, awaited: bool
    ) -> _Written:
        """What a call wrote: what its own tool says, else what was seen, else what its text says."""
        paths = self._spelled(named.may_write, folder)
        if call.tells_all:
            made, gone = (self._spelled(each, folder) for each in call.created_and_removed())
            new = self._looked_at(effects).created if effects else ()
            return _Written(paths, (*made, *(path for path in paths if path in new and path not in made)), gone)
        if effects is not None:
            written = self._looked_at(effects)
            return replace(written, paths=self._with_links(written.paths, named.may_write, folder))
        return _Written(() if awaited or call.running else paths, seen="read")

    def _looked_at(self, effects: Effects) -> _Written:
        def relative(paths: Iterable[str]) -> tuple[str, ...]:
            # There are no links in the way to what a look has told.
            return tuple(self._relative(os.path.join(self._roots[0], path)) for path in paths)  # noqa: PTH118

        created, removed = relative(effects.created), relative(effects.removed)
        paths = (*relative(effects.changed), *created, *removed)
        generated = (*relative(effects.generated), *filter(in_generated_tree, paths))
        return _Written(paths, created, removed, generated, "effect")

    def _with_links(self, written: tuple[str, ...], named: Iterable[str], folder: str | None) -> tuple[str, ...]:
        """Also the names by which the command has called what was written, where links lead there."""
        found = dict.fromkeys(written)
        for path in named:
            spellings = self._spelled([path], folder)
            if any(spelling in found for spelling in spellings):
                found |= dict.fromkeys(spellings)
        return tuple(found)

    def _written_out(self, named: ShellReading, folder: str | None, written: tuple[str, ...]) -> str:
        """What a command's own text has put into files."""
        return "".join(text for path, text in named.texts if not set(self._spelled([path], folder)).isdisjoint(written))

    def _spelled(self, paths: Iterable[str], cwd: str | None) -> tuple[str, ...]:
        if cwd is None:  # a relative name could be anybody's
            paths, cwd = [path for path in paths if path.startswith(("/", "~"))], "/"
        return tuple(dict.fromkeys(spelling for path in paths for spelling in self.spell(path, cwd)))

    def spell(self, path: str, cwd: str) -> list[str]:
        """A path as seen from the workdir; a second spelling where links lead it elsewhere.

        Args:
            path: as the tool was given it.
            cwd: what it is relative to.
        """
        if path.startswith("~"):
            path = self._home + path[1:] if path[1:2] in ("", "/") else path
        full = os.path.normpath(os.path.join(cwd, path))  # noqa: PTH118 - a string all the way, thousands of times
        spellings = [self._relative(full)]
        try:
            real = os.path.realpath(full)
        except (OSError, ValueError):  # a NUL or a loop of links
            return spellings
        if real != full and (other := self._relative(real)) not in spellings:
            spellings.append(other)
        return spellings

    def _relative(self, full: str) -> str:
        for root in self._roots:
            if full == root:
                return "."
            if full.startswith(root + "/"):
                return full[len(root) + 1 :]
        return full


def _in_short(given: Mapping[str, Any]) -> str:
    """What a tool was given beside files and texts: a range, a pattern, an address."""
    parts = (f"{key}={str(value)[:_GIVEN]}" for key, value in sorted(given.items(), key=str) if key not in TOLD)
    return plain(" ".join(parts)[: 2 * _GIVEN])


def _unread(_: str) -> ShellReading:
    return ShellReading()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
