"""The plugin for clients that are extended by a file of their own (opencode) rather than by settings."""

from __future__ import annotations

import json
from pathlib import Path

from witness.agents.hook_entries import hook_command
from witness.config.resources import hooks_dir
from witness.errors import DeclarationError, Problem
from witness.files import read_text, replace_file

_SOURCE = "gt_opencode.js"
_MARK = "// gt-witness plugin"
_PLACE = '["GT_HOOK"]'


def text() -> str:
    """The plugin as it is installed: the shipped one with this installation's command in it."""
    return (hooks_dir() / _SOURCE).read_text(encoding="utf-8").replace(_PLACE, json.dumps(hook_command("EVENT")[:-1]))


def state(path: Path) -> tuple[bool, bool]:
    """(whether our plugin stands there, whether it is this installation's).

    Raises:
        DeclarationError: something else stands there.
    """
    try:
        found = read_text(path, follow=True, owners=())
    except FileNotFoundError:
        return False, False
    except (OSError, ValueError) as error:
        raise DeclarationError([Problem(f"cannot be read: {error}", str(path))]) from error
    if not found.startswith(_MARK):
        raise DeclarationError([Problem("it is not our plugin, so it was left as it is: name another file", str(path))])
    return True, found == text()


def install(path: Path) -> bool:
    """Write the plugin; False when it stood there already.

    Raises:
        DeclarationError: something else stands there.
        OSError: it cannot be written.
    """
    if state(path) == (True, True):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, text(), mode=0o644)
    return True


def uninstall(path: Path) -> bool:
    """Remove the plugin; False when there was none.

    Raises:
        DeclarationError: something else stands there.
    """
    if not state(path)[0]:
        return False
    path.unlink()
    return True
