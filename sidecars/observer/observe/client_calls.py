"""What each client's hooks say of a tool call: names of tools, names of fields, marks of failure, the shell's folder.

All that differs between the clients stands here, read from payloads that the clients themselves have made (recorded
under ``tests/payloads/`` with the versions that made them). Claude Code's vocabulary is ours.
"""

from __future__ import annotations

import errno
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from witness.events.named_paths import exit_status

# Events after a call. Gemini CLI has one for success and failure, Codex CLI none for a call that its sandbox, a rule or
# a person refused, Claude Code none for an edit that was refused or did not apply.
COMPLETED = frozenset(["PostToolUse", "PostToolUseFailure", "AfterTool"])
PROMPTED = frozenset(["UserPromptSubmit", "BeforeAgent"])

_TOOLS: Mapping[str, str] = {
    # Codex CLI; it calls its shell "Bash" in hooks
    "apply_patch": "Edit",
    "exec_command": "Bash",
    "local_shell": "Bash",
    "shell": "Bash",
    # Gemini CLI
    "read_file": "Read",
    "replace": "Edit",
    "write_file": "Write",
    "run_shell_command": "Bash",
    "grep_search": "Grep",
    "search_file_content": "Grep",
    "invoke_agent": "Agent",
    # opencode
    "bash": "Bash",
    "edit": "Edit",
    "glob": "Glob",
    "grep": "Grep",
    "patch": "Edit",
    "read": "Read",
    "task": "Agent",
    "write": "Write",
    # Claude Code's older ones, and servers of file tools
    "MultiEdit": "Edit",
    "Task": "Agent",
    "create_file": "Write",
    "edit_file": "Edit",
    "run_terminal_cmd": "Bash",
    "str_replace": "Edit",
    "view": "Read",
}
WRITERS = frozenset(["Edit", "Write", "NotebookEdit"])
# What they do is what they say: the others may change any file.
_TELLING = WRITERS | {
    "Read",
    "Grep",
    "Glob",
    "LS",
    "Agent",
    "WebFetch",
    "WebSearch",
    "TodoWrite",
    "Skill",
    "AskUserQuestion",
}
# They look through folders: what they were pointed at was opened only if it is a file.
SEARCHERS = frozenset(["Grep", "Glob", "LS"])
# What opencode calls a tool that the model asked for and was not given.
_REFUSED = "invalid"
_PATHS = ("file_path", "filePath", "notebook_path", "absolute_path", "path", "filename", "target_file")
_BEFORE = ("old_string", "oldString", "old_str")
_AFTER = (
    "content", "new_string", "newString", "new_source", "new_str", "file_text", "text", "code_edit"
)  # fmt: skip
#: Inputs of a tool that an observation tells as files, texts and commands.
TOLD = frozenset([*_PATHS, *_BEFORE, *_AFTER, "command", "patch", "patchText", "edits", "description"])
# Where a patch stands: Codex's hooks put it where a shell's command is.
_PATCHES = ("command", "input", "patch", "patchText")
# What the file was like, in the answers of Claude Code and of Gemini CLI.
_ORIGINALS = ("originalFile", "originalContent")
# What an answer repeats of a file: the file as it was or is, and lines that stood there before.
_REPEATED = frozenset(
    [
        "originalFile", "structuredPatch", "oldString", "newString", "gitDiff", "original_file", "updated_file",
        "old_source", "new_source", "fileDiff", "originalContent", "newContent",
    ]
)  # fmt: skip
_REPEATED_TO_WRITERS = frozenset(["content", "filePath", "type", "llmContent", "notebook_path", "fileName", "diffStat"])
# Where another folder than the session's was asked for: Codex tells it as the payload's cwd, these in the call.
_FOLDERS = ("dir_path", "directory", "workdir")
_PATCH_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)
_PATCH_MADE = re.compile(r"^\*\*\* Add File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)
_PATCH_GONE = re.compile(r"^\*\*\* Delete File: (.+)$", re.MULTILINE)
_PATCH_MOVED = re.compile(r"^\*\*\* Update File: (.+)\n\*\*\* Move to: ", re.MULTILINE)
_PATCH_ADDED = re.compile(r"^\+(?!\+\+)(.*)$", re.MULTILINE)
_PATCH_TAKEN = re.compile(r"^-(?!--)(.*)$", re.MULTILINE)
_PATCH_BY_SHELL = re.compile(r"\s*(?:cd\s+(?P<folder>[\w./~-]+)\s*&&\s*)?apply_patch\s", re.ASCII)
_PATCH_DONE = "Success. Updated the following files:"
# Gemini CLI tells a command's exit status in its text for the model, behind the output; Codex a patch's before it.
_GEMINI_EXIT = re.compile(
    r"^Exit Code: (\d+)\n(?:(?:Signal|Background PIDs|Process Group PGID): .*\n)*</", re.MULTILINE
)
# How the system names what did not work, and a shell a program that is not there.
_COMPLAINTS = (
    *map(os.strerror, (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ENOTDIR)),
    *map(os.strerror, (errno.EEXIST, errno.ENOTEMPTY, errno.ENOSPC, errno.EBUSY)),
    "command not found",
    ": not found",
)
_CODEX_EXIT = re.compile(r"Exit code: (\d+)\n")
_FOLDER_RESET = "Shell cwd was reset to"


@dataclass(frozen=True, slots=True)
class Call:
    """A completed tool call, in Claude Code's words.

    Args:
        tool: its name.
        given: what the tool was given.
        response: what it answered, of any shape.
        error: what the client says of a failure, of any shape.
        failed: it certainly failed.
        untold: the client does not tell whether it failed (Codex CLI's commands have no exit status).
        running: it has only begun, and goes on in the background.
        command: the shell command; a patch that was given to a shell is an Edit, and no command.
        patch: a patch in Codex's form, empty for none.
        folder: what relative names are relative to as far as the client says it; empty when it does not, None when it
            says that this is not known.
        folder_is_after: ``folder`` is where the shell stood after the command.
        subagent: the type of subagent that made the call, empty for the agent itself. (Gemini CLI does not tell its
            subagents' calls from its own.)
        subagent_id: which of them it was, empty for the agent itself.
    """

    tool: str
    given: Mapping[str, Any]
    response: Any = None
    error: Any = None
    failed: bool = False
    untold: bool = False
    running: bool = False
    command: str = ""
    patch: str = ""
    folder: str | None = ""
    folder_is_after: bool = False
    subagent: str = ""
    subagent_id: str = ""

    @property
    def tells_all(self) -> bool:
        """Whether the call itself says which files it wrote; else only a look at them can."""
        return self.tool in _TELLING

    def files(self) -> tuple[list[str], list[str]]:
        """(opened, written) as they are spelled in the call; nothing for a call that failed."""
        found = [value for key in _PATHS if isinstance(value := self.given.get(key), str) and value]
        found += [first or second for first, second in _PATCH_FILE.findall(self.patch)]
        found = list(dict.fromkeys(found))
        if self.failed or self.running or self.tool == "Bash":
            return [], []
        if self.tool in SEARCHERS:
            found = [path for path in found if os.path.isfile(os.path.join(self.folder or "", path))]  # noqa: PTH113, PTH118
        return ([], found) if self.tool in WRITERS else (found, [])

    def created_and_removed(self) -> tuple[list[str], list[str]]:
        """Those of the written files that the client says to be new, or gone."""
        if self.failed or self.tool not in WRITERS:
            return [], []
        created = [first or second for first, second in _PATCH_MADE.findall(self.patch)]
        gone = [each[1] for each in _PATCH_GONE.finditer(self.patch)]
        gone += [each[1] for each in _PATCH_MOVED.finditer(self.patch)]
        if isinstance(self.response, Mapping) and self.response.get("type") == "create":
            created += self.files()[1]
        return created, gone

    def new_text(self) -> str:
        """What a writing tool has added; lines that stood there before, in any order, are not the agent's doing."""
        if self.failed or self.tool not in WRITERS:
            return ""
        added: list[str] = []
        edits = self.given.get("edits")
        for edit in [self.given, *(edits if isinstance(edits, list) else [])]:
            if not isinstance(edit, Mapping):
                continue
            before = _first(edit, _BEFORE)
            if not before and "content" in edit:
                before = _original(self.response)
            for key in _AFTER:
                if isinstance(value := edit.get(key), str):
                    added += _added(before, value)
        return "\n".join([*added, *_PATCH_ADDED.findall(self.patch)])

    def old_text(self) -> str:
        """What stood where a writing tool has put its text, as far as the call and its answer say it."""
        if self.failed or self.tool not in WRITERS:
            return ""
        edits = self.given.get("edits")
        parts = [self.given, *(edits if isinstance(edits, list) else [])]
        old = [_first(edit, _BEFORE) for edit in parts if isinstance(edit, Mapping)]
        return "\n".join([*filter(None, old), *_PATCH_TAKEN.findall(self.patch)]) or _original(self.response)

    def answer(self, limit: int) -> str:
        """The answer's text, whatever shape the tool gives it; a huge one is not copied whole.

        Args:
            limit: the most characters that are wanted of it.
        """
        repeated = _REPEATED | (_REPEATED_TO_WRITERS if self.tool in WRITERS else frozenset())
        pieces: list[str] = []
        room = 4 * limit
        waiting: list[Any] = [self.error, self.response]
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


def read_call(payload: Mapping[str, Any]) -> Call | None:
    """The completed call that a payload tells of, None when it tells of none.

    Args:
        payload: what the client gave to its hook; of any shape, foreign fields are passed over.
    """
    event = payload.get("hook_event_name")
    if event not in COMPLETED:
        return None
    given = payload.get("tool_input")
    given = {"input": given} if isinstance(given, str) else given if isinstance(given, dict) else {}
    response, error = payload.get("tool_response"), payload.get("error")
    name = _text(payload.get("tool_name"))
    refused = name == _REFUSED
    if refused:
        name = _text(given.get("tool"))
        given = {}
    # A file tool of an MCP server is a file tool: mcp__files__write_file.
    tool = _TOOLS.get(name.rpartition("__")[2] if name.startswith("mcp__") else name, name)
    failed = event == "PostToolUseFailure" or bool(error) or refused or _says_failed(payload, response)
    folder = _text(payload.get("cwd"))
    command = _command(given) if tool == "Bash" else ""
    patch = _patch(given) if tool in WRITERS else ""
    by_shell = _PATCH_BY_SHELL.match(command)
    if by_shell and "*** " in command:
        tool, patch, command = "Edit", command, ""
        if not _keeps_folder(payload):  # else it is there already
            folder = os.path.join(folder, by_shell["folder"] or "")  # noqa: PTH118
        failed = failed or _PATCH_DONE not in "\n".join(_texts(response))
        given = {}
    if other := _first(given, _FOLDERS):
        folder = os.path.join(folder, other)  # noqa: PTH118
    after = command != "" and _keeps_folder(payload) and not failed
    return Call(
        tool=tool,
        given=given,
        response=response,
        error=error,
        failed=failed,
        untold=command != "" and not failed and "turn_id" in payload and exit_status(payload) is None,
        running=isinstance(response, Mapping) and bool(response.get("backgroundTaskId")),
        command=command,
        patch=patch,
        folder=None if after and _FOLDER_RESET in "\n".join(_texts(response)) else folder,
        folder_is_after=after,
        subagent=_text(payload.get("agent_type")) or ("subagent" if payload.get("agent_id") else ""),
        subagent_id=_text(payload.get("agent_id")),
    )


def complains(answer: str) -> bool:
    """Whether a line of a command's answer ends in words of the system's for something that did not work."""
    return any(line.rstrip().endswith(_COMPLAINTS) for line in answer.splitlines())


def folder_before(after: str, moved: str | None) -> str | None:
    """Where a shell stood before a command, None when that cannot be known.

    Args:
        after: where it stood when the command had succeeded.
        moved: where the command's own ``cd``s lead, all of them, from where it began; empty for none, None when that is
            not known.
    """
    if moved is None:
        return None
    moved = os.path.normpath(moved or ".")
    if moved == ".":
        return after
    if moved.startswith(("/", "~", "..")) or not after.endswith("/" + moved):
        return None
    return after[: -len(moved) - 1] or "/"


def _keeps_folder(payload: Mapping[str, Any]) -> bool:
    """Whether the client's shell goes on where the last command has left it, and ``cwd`` is that place.

    So it is with Claude Code (after a command that failed it stays where it was). In the others each command begins in
    the session's folder, which ``cwd`` names: Codex has turns in its payloads, Gemini events of its own.
    """
    return "turn_id" not in payload and payload.get("hook_event_name") != "AfterTool" and "client" not in payload


def _says_failed(payload: Mapping[str, Any], response: Any) -> bool:
    if isinstance(status := payload.get("exit"), int) and status != 0:  # our plugin for opencode
        return True
    if isinstance(response, str):
        found = _CODEX_EXIT.match(response)
        return bool(found and found[1] != "0") and payload.get("tool_name") == "apply_patch"
    if isinstance(response, Mapping):
        if response.get("interrupted") is True or response.get("error"):
            return True
        if isinstance(text := response.get("llmContent"), str):
            return bool(_GEMINI_EXIT.search(text[-1000:]))
    return False


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _first(fields: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return next((value for key in keys if isinstance(value := fields.get(key), str) and value), "")


def _texts(value: Any) -> Iterator[str]:
    """The texts of an answer, a bounded number of them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in list(value.values())[:50]:
            if isinstance(each, str):
                yield each


def _command(given: Mapping[str, Any]) -> str:
    command = given.get("command") or given.get("cmd") or given.get("input")
    if isinstance(command, list):  # older versions of Codex give an argument list, its last part the script
        words = [word for word in command if isinstance(word, str)]
        return words[-1] if len(words) == 3 and words[1] in ("-c", "-lc") else " ".join(words)
    return _text(command)


def _patch(given: Mapping[str, Any]) -> str:
    return next((text for key in _PATCHES if "*** " in (text := _text(given.get(key)))), "")


def _original(response: Any) -> str:
    if not isinstance(response, Mapping):
        return ""
    shown = response.get("returnDisplay")
    return _first(response, _ORIGINALS) or (_first(shown, _ORIGINALS) if isinstance(shown, Mapping) else "")


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
