"""Paths that a tool call names, looked at where no watch is: outside of the tree, and in trees of generated files.

Whether such a file changed is told by its own times, so a word that only looks like a path says nothing false.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

from witness.events.call_windows import Window
from witness.events.tree_files import Tree

_WORD = re.compile(r"[^\s'\"`;|&<>(){},=]+")
_EXIT = re.compile(r"\s*(?:Command failed with |Process exited with )?[Ee]xit (?:code|status):? (-?\d{1,3})\b")
_KEYS = ("command", "cmd", "input", "path", "file_path", "absolute_path", "destination", "target", "target_file")
# The clients' own tools that read, or write the one file that they are told.
_SAYS_ALL = re.compile(
    r"Read|NotebookRead|read_file|read_many_files|read|Grep|grep|grep_search|search_file_content|Glob|glob|LS|list"
    r"|list_directory|Edit|MultiEdit|NotebookEdit|edit|replace|Write|write|write_file|WebFetch|web_fetch|webfetch|WebSearch"
    r"|google_web_search|TodoWrite|todowrite|Task|Agent|task|invoke_agent"
)
_PATHS = ("file_path", "filePath", "notebook_path", "absolute_path", "path")
_LONGEST = 65_536
_MOST_WORDS = 400
# File systems of the kernel, where times mean nothing.
_KERNELS = ("/proc/", "/sys/", "/dev/")


def named_outside(
    payload: Mapping[str, Any], tree: Tree, generated: Collection[str], window: Window, folders: tuple[str, ...]
) -> list[str]:
    """Files that a call names and that changed while it ran, where the tree is not watched.

    Whether such a file stood there before is not known.

    Args:
        payload: the client's JSON.
        tree: what is watched.
        generated: folders in it that are not.
        window: when the call ran.
        folders: what relative names may begin at.

    Returns:
        Absolute paths, without links.
    """
    given = payload.get("tool_input")
    found: dict[str, None] = {}
    start = window.start if window.start is not None else window.end
    for word in _words(given):
        for folder in dict.fromkeys(("/",) if word.startswith(("/", "~")) else (*folders, tree.root)):
            if not folder:
                continue
            try:
                real = os.path.realpath(os.path.join(folder, os.path.expanduser(word)))
                status = os.stat(real)
            except (OSError, ValueError):
                continue
            if not stat.S_ISREG(status.st_mode) or not start <= status.st_ctime <= window.end:
                continue
            if not real.startswith(_KERNELS) and not _watched(real, tree, generated):
                found[real] = None
    return list(found)


def named_files(payload: Mapping[str, Any], workdir: str) -> frozenset[str] | None:
    """The only files that a call can have changed, without links; None when it may have changed any.

    Args:
        payload: the client's JSON.
        workdir: where the agent works.
    """
    given = payload.get("tool_input")
    if not _SAYS_ALL.fullmatch(str(payload.get("tool_name"))):
        return None
    words = [given.get(key) for key in _PATHS] if isinstance(given, Mapping) else []
    folder = str(payload.get("cwd") or workdir)
    with suppress(ValueError):
        return frozenset(os.path.realpath(os.path.join(folder, word)) for word in words if isinstance(word, str))
    return frozenset()


def _watched(real: str, tree: Tree, generated: Collection[str]) -> bool:
    if not real.startswith(tree.root.rstrip("/") + "/"):
        return False
    *folders, _ = real[len(tree.root.rstrip("/")) + 1 :].split("/")
    if ".git" in folders:
        return True  # git's own business, told by nobody
    return not any("/".join(folders[: depth + 1]) in generated for depth in range(len(folders)))


def _words(given: object) -> Iterator[str]:
    if isinstance(given, str):
        given = {"input": given}
    if not isinstance(given, Mapping):
        return
    count = 0
    for key in _KEYS:
        value = given.get(key)
        text = " ".join(each for each in value if isinstance(each, str)) if isinstance(value, list) else value
        if not isinstance(text, str):
            continue
        for match in _WORD.finditer(text[:_LONGEST]):
            yield match[0]
            count += 1
            if count >= _MOST_WORDS:
                return


def exit_status(payload: Mapping[str, Any]) -> int | None:
    """The exit status that a client tells of a command, None when it tells none."""
    response = payload.get("tool_response")
    places: list[Any] = [payload]
    if isinstance(response, Mapping):
        places += [response, response.get("metadata")]
    for place in places:
        for key in ("exit_code", "exitCode", "exit", "returnCode"):
            value = place.get(key) if isinstance(place, Mapping) else None
            if isinstance(value, int) and not isinstance(value, bool):
                return value
    for text in (payload.get("error"), response):
        if isinstance(text, str) and (match := _EXIT.match(text)):
            return int(match[1])
    if payload.get("hook_event_name") == "PostToolUse" and payload.get("tool_name") == "Bash":
        # The client tells of a command that failed by another event.
        return 0 if isinstance(response, Mapping) and "stdout" in response else None
    return None
