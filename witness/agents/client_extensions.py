"""What is put into clients that are extended by files rather than by settings: opencode's plugin, Claude Code's mod."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from witness.agents.hook_entries import hook_command, interpreter
from witness.config.resources import hooks_dir
from witness.errors import DeclarationError, Problem
from witness.files import read_json, read_text, replace_file

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


# The mod's folder: one copy for each run, since the client writes into it.

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
    # Of the plugin, what the client must have for functions alone: a polecat's command hooks stand in its settings.
    for part in (".claude-plugin/plugin.json", "hooks/register.js"):
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(hooks_dir() / "mod" / part, folder / part)
    hooks = {"description": f"{NAME} inside the client", "modules": ["./register.js"], "hooks": {}}
    (folder / "hooks" / "hooks.json").write_text(json.dumps(hooks), encoding="utf-8")
    server = [interpreter(), "-S", "-I", str(hooks_dir() / "gt_mod.py")]
    constants = {"SERVER": server, "BAND": band, "OTHERS": others}
    lines = [f"export const {name} = {json.dumps(value)}\n" for name, value in constants.items()]
    text = "".join([*lines, "export const RETRY = Infinity\n"])
    (folder / "hooks" / "server.js").write_text(text, encoding="utf-8")
    return folder


def other_folders(environ: Mapping[str, str]) -> list[str]:
    """Plugin folders that the caller's environment names, but for a polecat's copy of our mod."""
    return [folder for folder in environ.get(VARIABLE, "").split(":") if folder and not is_ours(Path(folder))]


def is_ours(folder: Path) -> bool:
    """Whether our plugin, or a polecat's copy of our mod, stands in a folder."""
    manifest = _object(folder / ".claude-plugin" / "plugin.json")
    return manifest.get("name") == NAME and (folder / "hooks" / "server.js").exists()


# The plugin that people install in the client by its own commands.

_PLUGIN = f"{NAME}@{NAME}"
# What an uninstall by the client leaves in its settings, empty.
_EMPTIED = ("enabledPlugins", "extraKnownMarketplaces")


def plugin_installed(home: Path) -> bool:
    """Whether the client says that our plugin is installed.

    Args:
        home: the client's own folder, as ``~/.claude``.
    """
    found = _object(home / "plugins" / "installed_plugins.json").get("plugins")
    return isinstance(found, dict) and _PLUGIN in found


def clear_plugin(home: Path) -> list[str]:
    """Take away what the client's own uninstall leaves behind: its copy of the plugin, and the keys that it emptied.

    Args:
        home: the client's own folder.

    Returns:
        What was taken away, in words; nothing while the plugin is installed.

    Raises:
        OSError: it could not be taken away.
    """
    copy, settings = home / "plugins" / "cache" / NAME, home / "settings.json"
    if plugin_installed(home) or copy.is_symlink() or not copy.is_dir():
        return []
    shutil.rmtree(copy)
    values = _object(settings)
    kept = {key: value for key, value in values.items() if key not in _EMPTIED or value}
    if kept == values:
        return [str(copy)]
    path = settings.resolve()
    replace_file(path, json.dumps(kept, indent=2, ensure_ascii=False) + "\n", mode=path.stat().st_mode & 0o777)
    return [str(copy), f"empty {', '.join(sorted(set(values) - set(kept)))} in {settings}"]


def _object(path: Path) -> dict[str, object]:
    try:
        found = read_json(path, follow=True, owners=())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
