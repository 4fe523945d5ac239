"""The mod's folder: one copy for each run, since the client writes into it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from witness.agents.hook_entries import interpreter
from witness.config.resources import hooks_dir
from witness.files import read_json

NAME = "gt-witness"
VARIABLE = "CLAUDE_CODE_PLUGIN_DIRS"


def make_mod(folder: Path, *, band: bool, others: bool = False) -> Path:
    """Write a copy of the mod whose server is this installation's.

    Args:
        folder: made, or written anew where a restart finds it.
        band: whether it draws a line above the prompt.
        others: whether the client loads other plugins too, whose hooks must go on running beside ours.

    Raises:
        OSError: it could not be written.
    """
    shutil.copytree(hooks_dir() / "mod", folder, dirs_exist_ok=True)
    server = [interpreter(), "-S", "-I", str(hooks_dir() / "gt_mod.py")]
    constants = {"SERVER": server, "BAND": band, "OTHERS": others}
    (folder / "hooks" / "server.js").write_text(
        "".join(f"export const {name} = {json.dumps(value)}\n" for name, value in constants.items()), encoding="utf-8"
    )
    return folder


def other_folders(environ: Mapping[str, str]) -> list[str]:
    """Plugin folders that the caller's environment names, but for a polecat's copy of our mod."""
    return [folder for folder in environ.get(VARIABLE, "").split(":") if folder and not _is_ours(Path(folder))]


def _is_ours(folder: Path) -> bool:
    try:
        manifest = read_json(folder / ".claude-plugin" / "plugin.json", follow=True, owners=())
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("name") == NAME and (folder / "hooks" / "server.js").exists()
