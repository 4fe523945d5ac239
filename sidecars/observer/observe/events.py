"""A hook's payload → what was done.

Only completed tool calls count: the events after a tool call and after a failed one, the agent's own and its
subagents'. What each client calls its tools and fields stands in ``client_calls``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sidecars.observer.observe.client_calls import PROMPTED, folder_before, read_call
from sidecars.observer.observe.observation import Observation
from sidecars.observer.observe.sanitize import excerpt, plain, without_own_words
from sidecars.syntax.shell import ShellReading, read_shell

# Enough for a judge to see what a call was about; keeps a model's prompt far under the API's price step at 100k tokens.
TEXT_LIMIT = 12_000
OUTPUT_LIMIT = 4_000


class EventReader:
    """Reads payloads of one agent.

    Args:
        workdir: where the agent works; files inside are spelled relative to it.
    """

    def __init__(self, workdir: str) -> None:
        self._roots = tuple(dict.fromkeys((os.path.abspath(workdir), os.path.realpath(workdir))))  # noqa: PTH100
        self._home = str(Path.home())

    def read(
        self, payload: Mapping[str, Any], id: str = "", time: float = 0.0, cut: bool = False, cwd_before: str = ""
    ) -> Observation | None:
        """The completed action that a payload tells of, None when it tells of none.

        Args:
            payload: what the client gave to its hook; of any shape, foreign fields are passed over.
            id: the event's id.
            time: wall clock of the event.
            cut: the payload is incomplete.
            cwd_before: where the agent's shell stood before the call, empty when nobody has recorded it.
        """
        if payload.get("hook_event_name") in PROMPTED:
            prompt, short = excerpt(without_own_words(plain(_text(payload.get("prompt")))), TEXT_LIMIT)
            return Observation(id, time, tool="UserPromptSubmit", prompt=prompt, cut=cut or short)
        call = read_call(payload)
        if call is None:
            return None
        if call.command:  # how far a command came that failed, its text does not tell
            named = ShellReading() if call.failed else read_shell(call.command)
        else:
            opened, written = call.files()
            named = ShellReading(tuple(opened), tuple(written))
        folder = None if call.folder is None else os.path.join(self._roots[0], call.folder)  # noqa: PTH118
        if call.folder_is_after and (cwd_before or call.folder):
            folder = cwd_before or folder_before(call.folder or "", named.folder)
        raw = "".join(text for _, text in named.texts) if call.command else call.new_text()
        text, short = excerpt(without_own_words(plain(raw)), TEXT_LIMIT)
        output, short_too = excerpt(without_own_words(plain(call.answer(OUTPUT_LIMIT))), OUTPUT_LIMIT)
        command, cut_command = excerpt(plain(call.command), TEXT_LIMIT)
        return Observation(
            id=id,
            time=time,
            tool=call.tool,
            failed=call.failed,
            opened=self._spelled(named.opened, folder),
            written=() if call.running else self._spelled(named.may_write, folder),
            command=command,
            text=text,
            lines_written=sum(1 for line in raw.splitlines() if line.strip()),
            output=output,
            subagent=call.subagent,
            cut=cut or short or short_too or cut_command,
        )

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


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
