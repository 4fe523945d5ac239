"""What the scripted model makes each client do: one case a tool and outcome."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from witness.testing import use

NOTEBOOK = {
    "cells": [
        {"cell_type": "code", "id": "c1", "source": "x = 1\n", "metadata": {}, "outputs": [], "execution_count": None}
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}
#: What stands in the scratch folder before each case, relative to its root.
FILES = {
    "work/app.py": "def add(a, b):\n    return a - b\n",
    "work/old.py": "old = 1\n",
    "work/sub/inner.py": "inner = 1\n",
    "work/sub/deep/below.py": "below = 1\n",
    "work/notes.ipynb": json.dumps(NOTEBOOK),
    "outside/other.py": "other = 1\n",
}


@dataclass(frozen=True)
class Case:
    """One session of a client.

    Args:
        name: TOOL-OUTCOME, the recording's file name.
        steps: work folder → the model's steps; the client is told "Done." when they have run out.
        inner: likewise those of a subagent.
        allowed: the client may write and run commands without asking.
        deny: rules of what is refused (Claude Code's form).
        prompt: the user's.
        model: what the client takes its model for, where its tools depend on that.
    """

    name: str
    steps: Callable[[Path], Sequence[Any]]
    inner: Callable[[Path], Sequence[Any]] = lambda _: ()
    allowed: bool = True
    deny: tuple[str, ...] = ()
    prompt: str = "do the work"
    model: str = ""


def _bash(command: str) -> Any:
    return use("Bash", command=command, description="Run")


def _edit(work: Path) -> Any:
    return use("Edit", file_path=f"{work}/app.py", old_string="a - b", new_string="a + b")


CLAUDE = [
    Case("read-success", lambda w: [use("Read", file_path=f"{w}/app.py")]),
    Case("read-failure", lambda w: [use("Read", file_path=f"{w}/missing.py")]),
    Case("read-denied", lambda w: [use("Read", file_path=f"{w}/old.py")], deny=("Read(./old.py)",)),
    Case("edit-success", lambda w: [
        use("Read", file_path=f"{w}/app.py"),
        _edit(w),
    ]),
    Case("edit-failure", lambda w: [
        use("Read", file_path=f"{w}/app.py"),
        use("Edit", file_path=f"{w}/app.py", old_string="no such text", new_string="x"),
    ]),
    Case("edit-unread", lambda w: [_edit(w)]),
    Case("edit-denied", lambda w: [
        use("Read", file_path=f"{w}/app.py"),
        _edit(w),
    ], deny=("Edit(./app.py)",)),
    Case("edit-asked", lambda w: [
        use("Read", file_path=f"{w}/app.py"),
        _edit(w),
    ], allowed=False),
    Case("write-create", lambda w: [use("Write", file_path=f"{w}/new.py", content="new = 1\n")]),
    Case("write-overwrite", lambda w: [
        use("Read", file_path=f"{w}/old.py"), use("Write", file_path=f"{w}/old.py", content="old = 1\nnew = 2\n"),
    ]),
    Case("write-denied", lambda w: [use("Write", file_path=f"{w}/new.py", content="x\n")],
         deny=("Write(./new.py)", "Edit(./new.py)")),
    Case("write-outside", lambda w: [use("Write", file_path=f"{w.parent}/outside/new.py", content="x\n")]),
    Case("notebook-success", lambda w: [
        use("Read", file_path=f"{w}/notes.ipynb"),
        use("NotebookEdit", notebook_path=f"{w}/notes.ipynb", cell_id="c1", new_source="x = 2\n"),
    ]),
    Case("grep-success", lambda w: [use("Grep", pattern="return", path=str(w), output_mode="files_with_matches")]),
    Case("glob-success", lambda w: [use("Glob", pattern="**/*.py", path=str(w))]),
    Case("bash-read", lambda w: [_bash("cat app.py")]),
    Case("bash-write", lambda w: [_bash("echo made > made.txt")]),
    Case("bash-failure", lambda w: [_bash("sed -i s/a/b/ missing.py")]),
    Case("bash-half", lambda w: [_bash("echo made > made.txt; false")]),
    Case("bash-denied", lambda w: [_bash("touch denied.txt")], deny=("Bash(touch:*)",)),
    Case("bash-asked", lambda w: [_bash("touch asked.txt")], allowed=False),
    Case("bash-cd-write", lambda w: [_bash("cd sub && sed -i s/1/2/ inner.py")]),
    Case("bash-cd-read", lambda w: [
        _bash("cd sub && cat inner.py"),
        _bash("cd deep && cat below.py"),
        _bash("cat below.py"),
    ]),
    Case("bash-cd-failure", lambda w: [_bash("cd sub && cat missing.py")]),
    Case("bash-cd-out", lambda w: [_bash("cd ../outside && cat other.py"), _bash("cat app.py")]),
    Case("bash-cd-up", lambda w: [_bash("cd sub"), _bash("cd .. && cat app.py"), _bash(f"cd {w}/sub && cat inner.py")]),
    Case("bash-cd-back", lambda w: [_bash("cd sub && cat inner.py && cd ..")]),
    Case("bash-subshell", lambda w: [_bash("(cd sub && cat inner.py)")]),
    Case("bash-background", lambda w: [
        use("Bash", command="sleep 0.2; echo late > late.txt", description="Later", run_in_background=True),
        _bash("sleep 1"),
    ]),
    Case("subagent-edit",
        lambda w: [use(
            "Agent", description="change", prompt="change the app", subagent_type="general-purpose",
            run_in_background=False,
        )],
        lambda w: [
            use("Read", file_path=f"{w}/app.py"),
            _edit(w),
            _bash("cat missing.py"),
        ]),
]  # fmt: skip

PATCH = """*** Begin Patch
*** Add File: new.py
+new = 1
*** Update File: app.py
@@
 def add(a, b):
-    return a - b
+    return a + b
*** Delete File: old.py
*** Update File: sub/inner.py
*** Move to: sub/moved.py
@@
-inner = 1
+inner = 2
*** End Patch
"""
BAD_PATCH = PATCH.replace("return a - b", "no such line")
ONE_FILE = "*** Begin Patch\n*** Update File: app.py\n@@\n-    return a - b\n+    return a + b\n*** End Patch\n"


def codex_patch(text: str) -> tuple[str, Any]:
    return ("apply_patch", text)


def _codex_sh(command: str) -> tuple[str, Any]:
    return ("exec_command", {"cmd": command})


def _gemini_sh(command: str) -> tuple[str, Any]:
    return ("run_shell_command", {"command": command, "description": "runs"})


def _opencode_sh(command: str) -> tuple[str, Any]:
    return ("bash", {"command": command, "description": "runs"})


def _replace(work: Path, before: str = "a - b") -> tuple[str, Any]:
    file = f"{work}/app.py"
    return ("replace", {"file_path": file, "old_string": before, "new_string": "a + b", "instruction": "add"})


CODEX = [
    Case("patch-success", lambda w: [codex_patch(ONE_FILE)]),
    Case("patch-many", lambda w: [codex_patch(PATCH)]),
    Case("patch-failure", lambda w: [codex_patch(BAD_PATCH)]),
    Case("patch-absolute", lambda w: [codex_patch(ONE_FILE.replace("app.py", f"{w}/app.py"))]),
    Case("patch-denied", lambda w: [codex_patch(ONE_FILE)], allowed=False),
    Case("patch-in-shell", lambda w: [_codex_sh(f"apply_patch <<'EOF'\n{ONE_FILE}EOF")]),
    Case("shell-read", lambda w: [_codex_sh("cat app.py")]),
    Case("shell-write", lambda w: [_codex_sh("echo made > made.txt")]),
    Case("shell-failure", lambda w: [_codex_sh("sed -i s/a/b/ missing.py")]),
    Case("shell-half", lambda w: [_codex_sh("echo made > made.txt; false")]),
    Case("shell-denied", lambda w: [_codex_sh("touch denied.txt")], allowed=False),
    Case("shell-cd-write", lambda w: [_codex_sh("cd sub && sed -i s/1/2/ inner.py")]),
    Case("shell-cd-read", lambda w: [
        _codex_sh("cd sub && cat inner.py"), _codex_sh("cat app.py"),
    ]),
    Case("shell-workdir", lambda w: [("exec_command", {"cmd": "cat inner.py", "workdir": f"{w}/sub"})]),
    Case("shell-long", lambda w: [("exec_command", {"cmd": "sleep 2; echo late > late.txt", "yield_time_ms": 250}),
                                  _codex_sh("sleep 3")]),
]  # fmt: skip

GEMINI = [
    Case("read-success", lambda w: [("read_file", {"file_path": f"{w}/app.py"})]),
    Case("read-failure", lambda w: [("read_file", {"file_path": f"{w}/missing.py"})]),
    Case("read-many", lambda w: [("read_many_files", {"include": ["*.py"]})]),
    Case("edit-success", lambda w: [
        _replace(w),
    ]),
    Case("edit-failure", lambda w: [
        _replace(w, "no such text"),
    ]),
    Case("edit-denied", lambda w: [
        _replace(w),
    ], allowed=False),
    Case("write-create", lambda w: [("write_file", {"file_path": f"{w}/new.py", "content": "new = 1\n"})]),
    Case("write-overwrite", lambda w: [("write_file", {"file_path": f"{w}/old.py", "content": "old = 1\nnew = 2\n"})]),
    Case("write-denied", lambda w: [("write_file", {"file_path": f"{w}/new.py", "content": "x\n"})], allowed=False),
    Case("write-outside", lambda w: [("write_file", {"file_path": f"{w.parent}/outside/new.py", "content": "x\n"})]),
    Case("shell-read", lambda w: [_gemini_sh("cat app.py")]),
    Case("shell-write", lambda w: [_gemini_sh("echo made > made.txt")]),
    Case("shell-failure", lambda w: [_gemini_sh("sed -i s/a/b/ missing.py")]),
    Case("shell-half", lambda w: [_gemini_sh("echo made > made.txt; false")]),
    Case("shell-denied", lambda w: [_gemini_sh("touch denied.txt")], allowed=False),
    Case("shell-cd-write", lambda w: [_gemini_sh("cd sub && sed -i s/1/2/ inner.py")]),
    Case("shell-cd-read", lambda w: [
        _gemini_sh("cd sub && cat inner.py"), _gemini_sh("cat app.py"),
    ]),
    Case("shell-folder", lambda w: [("run_shell_command", {"command": "cat inner.py", "dir_path": "sub"})]),
    Case("grep-success", lambda w: [("grep_search", {"pattern": "return"})]),
    Case("glob-success", lambda w: [("glob", {"pattern": "**/*.py"})]),
    Case("subagent-edit", lambda w: [
        ("invoke_agent", {"agent_name": "generalist", "prompt": "change the app"}),
        _replace(w),
        ("complete_task", {"result": "done"}),
    ]),
]  # fmt: skip

OPENCODE = [
    Case("read-success", lambda w: [("read", {"filePath": f"{w}/app.py"})]),
    Case("read-failure", lambda w: [("read", {"filePath": f"{w}/missing.py"})]),
    Case("edit-success", lambda w: [
        ("read", {"filePath": f"{w}/app.py"}),
        ("edit", {"filePath": f"{w}/app.py", "oldString": "a - b", "newString": "a + b"}),
    ]),
    Case("edit-failure", lambda w: [
        ("read", {"filePath": f"{w}/app.py"}),
        ("edit", {"filePath": f"{w}/app.py", "oldString": "no such text", "newString": "x"}),
    ]),
    Case("edit-denied", lambda w: [
        ("read", {"filePath": f"{w}/app.py"}),
        ("edit", {"filePath": f"{w}/app.py", "oldString": "a - b", "newString": "a + b"}),
    ], allowed=False),
    Case("write-create", lambda w: [("write", {"filePath": f"{w}/new.py", "content": "new = 1\n"})]),
    Case("write-denied", lambda w: [("write", {"filePath": f"{w}/new.py", "content": "x\n"})], allowed=False),
    Case("patch-many", lambda w: [("apply_patch", {"patchText": PATCH})], model="gpt-5"),
    Case("patch-failure", lambda w: [("apply_patch", {"patchText": BAD_PATCH})], model="gpt-5"),
    Case("bash-read", lambda w: [_opencode_sh("cat app.py")]),
    Case("bash-write", lambda w: [_opencode_sh("echo made > made.txt")]),
    Case("bash-failure", lambda w: [_opencode_sh("sed -i s/a/b/ missing.py")]),
    Case("bash-half", lambda w: [_opencode_sh("echo made > made.txt; false")]),
    Case("bash-denied", lambda w: [_opencode_sh("touch denied.txt")], allowed=False),
    Case("bash-cd-write", lambda w: [_opencode_sh("cd sub && sed -i s/1/2/ inner.py")]),
    Case("bash-cd-read", lambda w: [
        _opencode_sh("cd sub && cat inner.py"), _opencode_sh("cat app.py"),
    ]),
    Case("bash-workdir", lambda w: [("bash", {"command": "cat inner.py", "workdir": f"{w}/sub", "description": "s"})]),
    Case("subagent-edit", lambda w: [
        ("task", {"description": "change", "prompt": "change the app", "subagent_type": "general"}),
        ("read", {"filePath": f"{w}/app.py"}),
        ("edit", {"filePath": f"{w}/app.py", "oldString": "a - b", "newString": "a + b"}),
    ]),
]  # fmt: skip

SCRIPTS = {"claude": CLAUDE, "codex": CODEX, "gemini": GEMINI, "opencode": OPENCODE}
