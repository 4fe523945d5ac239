"""A hook's payload → what was done.

Only completed tool calls count: the events after a tool call and after a failed one, the agent's own and its
subagents'. Other clients' tool names and fields are read as Claude Code's.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sidecars.observer.observe.observation import Observation
from sidecars.observer.observe.sanitize import excerpt, plain, without_own_words
from sidecars.syntax.shell import ShellReading, read_shell

# Enough for a judge to see what a call was about; keeps a model's prompt far under the API's price step at 100k tokens.
TEXT_LIMIT = 12_000
OUTPUT_LIMIT = 4_000
_COMPLETED = frozenset(["PostToolUse", "PostToolUseFailure", "AfterTool"])

# What other clients call the same tools.
_ALIASES: Mapping[str, str] = {
    "MultiEdit": "Edit",
    "apply_patch": "Edit",
    "edit_file": "Edit",
    "replace": "Edit",
    "str_replace": "Edit",
    "create_file": "Write",
    "write_file": "Write",
    "read_file": "Read",
    "view": "Read",
    "bash": "Bash",
    "exec_command": "Bash",
    "local_shell": "Bash",
    "run_shell_command": "Bash",
    "run_terminal_cmd": "Bash",
    "shell": "Bash",
}
_PATH_KEYS = ("file_path", "notebook_path", "absolute_path", "path", "filename", "target_file")
_WRITERS = frozenset(["Edit", "Write", "NotebookEdit"])
_TEXT_KEYS = ("content", "new_string", "new_source", "new_str", "file_text", "text", "code_edit")
# What a client's answer repeats of a file: the file as it was, and lines that stood there before.
_REPEATED = frozenset(["originalFile", "structuredPatch", "oldString", "newString", "gitDiff"])
_PATCH_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)
_PATCH_ADDED = re.compile(r"^\+(?!\+\+)(.*)$", re.MULTILINE)


class EventReader:
    """Reads payloads of one agent.

    Args:
        workdir: where the agent works; files inside are spelled relative to it.
    """

    def __init__(self, workdir: str) -> None:
        self._roots = tuple(dict.fromkeys((os.path.abspath(workdir), os.path.realpath(workdir))))  # noqa: PTH100
        self._home = str(Path.home())

    def read(
        self, payload: Mapping[str, Any], id: str = "", time: float = 0.0, cut: bool = False
    ) -> Observation | None:
        """The completed action that a payload tells of, None when it tells of none.

        Args:
            payload: what the client gave to its hook; of any shape, foreign fields are passed over.
            id: the event's id.
            time: wall clock of the event.
            cut: the payload is incomplete.
        """
        kind = payload.get("hook_event_name")
        if kind == "UserPromptSubmit":
            prompt, short = excerpt(without_own_words(plain(_text(payload.get("prompt")))), TEXT_LIMIT)
            return Observation(id, time, tool="UserPromptSubmit", prompt=prompt, cut=cut or short)
        if kind not in _COMPLETED:
            return None
        name = _text(payload.get("tool_name"))
        given = payload.get("tool_input")
        if isinstance(given, str):
            given = {"input": given}
        given = given if isinstance(given, dict) else {}
        # A file tool of an MCP server is a file tool: mcp__files__write_file.
        tool = _ALIASES.get(name.rpartition("__")[2] if name.startswith("mcp__") else name, name)
        cwd = _text(payload.get("cwd")) or self._roots[0]
        command = _command(given) if tool == "Bash" else ""
        failed = kind == "PostToolUseFailure" or bool(payload.get("error"))
        named = _named(tool, given, command, failed)
        raw = _new_text(given, payload.get("tool_response")) if tool in _WRITERS else _written_out(named)
        text, short = excerpt(without_own_words(plain(raw)), TEXT_LIMIT)
        output, short_too = excerpt(without_own_words(plain(_response(tool, payload))), OUTPUT_LIMIT)
        command, cut_command = excerpt(plain(command), TEXT_LIMIT)
        return Observation(
            id=id,
            time=time,
            tool=tool,
            failed=failed,
            opened=self._spelled(named.opened, cwd),
            written=self._spelled(named.may_write, cwd),
            command=command,
            text=text,
            lines_written=sum(1 for line in raw.splitlines() if line.strip()),
            output=output,
            subagent=_text(payload.get("agent_type")) or ("subagent" if payload.get("agent_id") else ""),
            cut=cut or short or short_too or cut_command,
        )

    def _spelled(self, paths: Iterable[str], cwd: str) -> tuple[str, ...]:
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


def _command(given: Mapping[str, Any]) -> str:
    command = given.get("command") or given.get("cmd") or given.get("input")
    if isinstance(command, list):  # Codex gives an argument list, its last part the script
        words = [word for word in command if isinstance(word, str)]
        return words[-1] if len(words) == 3 and words[1] in ("-c", "-lc") else " ".join(words)
    return _text(command)


def _named(tool: str, given: Mapping[str, Any], command: str, failed: bool) -> ShellReading:
    """The files that a call names. How far a command came that failed, its text does not tell."""
    if command:
        return ShellReading() if failed else read_shell(command)
    return ShellReading(*_files(tool, given))


def _files(tool: str, given: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(opened, written) of a tool that is told its files by name."""
    found = [value for key in _PATH_KEYS if isinstance(value := given.get(key), str) and value]
    patch = given.get("input") or given.get("patch")
    if isinstance(patch, str) and "*** " in patch:
        found += [first or second for first, second in _PATCH_FILE.findall(patch)]
    return ((), tuple(found)) if tool in _WRITERS else (tuple(found), ())


def _new_text(given: Mapping[str, Any], response: Any) -> str:
    """What a writing tool has added; lines that stood there before, in any order, are not the agent's doing."""
    added: list[str] = []
    edits = given.get("edits")
    for edit in [given, *(edits if isinstance(edits, list) else [])]:
        if not isinstance(edit, Mapping):
            continue
        before = _text(edit.get("old_string")) or _text(edit.get("old_str"))
        if not before and isinstance(response, Mapping) and "content" in edit:
            before = _text(response.get("originalFile"))
        for key in _TEXT_KEYS:
            if isinstance(value := edit.get(key), str):
                added += _added(before, value)
    patch = given.get("input") or given.get("patch")
    if isinstance(patch, str):
        added += _PATCH_ADDED.findall(patch)
    return "\n".join(added)


def _written_out(read: ShellReading) -> str:
    return "".join(text for _, text in read.texts)


def _added(before: str, after: str) -> list[str]:
    if not before:
        return after.splitlines()
    known = Counter(line.strip() for line in before.splitlines())
    lines = []
    for line in after.splitlines():
        if known[line.strip()] > 0:
            known[line.strip()] -= 1
        else:
            lines.append(line)
    return lines


def _response(tool: str, payload: Mapping[str, Any]) -> str:
    """The answer's text, whatever shape the tool gives it; a huge one is not copied whole."""
    repeated = _REPEATED | ({"content", "filePath", "type"} if tool in _WRITERS else frozenset())
    pieces: list[str] = []
    room = 4 * OUTPUT_LIMIT
    waiting: list[Any] = [payload.get("error"), payload.get("tool_response")]
    while waiting and room > 0:
        value = waiting.pop()
        if isinstance(value, str):
            piece = value if len(value) <= room else value[: room // 2] + "\n" + value[-room // 2 :]
            pieces.append(piece)
            room -= len(piece)
        elif isinstance(value, list):
            waiting += reversed(value[:50])
        elif isinstance(value, dict):
            waiting += [each for key, each in value.items() if key not in repeated]
    return "\n".join(piece for piece in pieces if piece)
