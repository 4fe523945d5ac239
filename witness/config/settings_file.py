"""One value of a settings file set or taken away; comments, order and all else of the file stay as they are.

The file is a person's, so it is edited where the value stands and not written anew from what was read. Whatever the
edit has come to is read again before it counts: it must hold what the file held, with that one key changed, or nothing
is written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from witness.config.settings import Settings, check_values
from witness.config.yaml_document import BYTES, load_yaml, parse_yaml, parse_yaml_value
from witness.errors import DeclarationError, UsageError
from witness.files import locked, read_text, replace_file

_PATIENCE = 5.0


def set_value(path: Path, key: str, text: str | None, lock: Path) -> Any:
    """Put a value into a settings file.

    Args:
        path: the file, made when it is missing; a link is followed.
        key: the name of a setting.
        text: the value as YAML, as it would stand in the file; None takes the key out, for the value below to hold.
        lock: a file of ours that is held meanwhile.

    Returns:
        The value as the file now holds it, None when it is taken out.

    Raises:
        DeclarationError: the key or the value is none, or the file has a fault elsewhere; nothing was written.
        UsageError: the file is written in a way that cannot be edited in its place.
        OSError: it cannot be written.
    """
    value = None
    if text is not None:
        try:
            value = parse_yaml_value(text, f"the value of {key}")
        except DeclarationError:
            value = text
        if isinstance(getattr(Settings(), key, None), str) and not isinstance(value, str):
            value = text  # a command with a colon, a model's number: where a text is wanted it is the text
        check_values(parse_yaml(_entry(key, value), "the command line"))
    with locked(lock, _PATIENCE) as held:
        if held is None:
            raise UsageError(f"somebody else is changing {path}: try again")
        check_values(before := load_yaml(path, None))
        if text is None and key not in before.values:
            return None
        real = path.resolve()
        old = read_text(real, BYTES) if real.exists() else ""
        new = _edited(old, key, _entry(key, value) if text is not None else "")
        wanted = {name: each for name, each in before.values.items() if name != key}
        if text is not None:
            wanted[key] = value
        if _read(new, path) != wanted:
            way = f"set {key} there by hand" if text is None else f"write {_entry(key, value).strip()!r} there by hand"
            raise UsageError(f"{path}: its form cannot be edited in place: {way}")
        real.parent.mkdir(parents=True, exist_ok=True)
        replace_file(real, new, mode=real.stat().st_mode & 0o777 if real.exists() else 0o644)
    return value


def _entry(key: str, value: Any) -> str:
    """The line that gives a key its value."""
    import yaml

    shown = yaml.safe_dump(value, default_flow_style=True, width=2**31, allow_unicode=True, sort_keys=False)
    return f"{key}: {shown.removesuffix(chr(10)).removesuffix(chr(10) + '...')}\n"


def _read(text: str, path: Path) -> dict[str, Any] | None:
    try:
        return parse_yaml(text, str(path)).values
    except DeclarationError:
        return None


def _edited(text: str, key: str, entry: str) -> str:
    """The text with a key's lines replaced by an entry, or with the entry at its end."""
    import yaml

    root = yaml.compose(text, Loader=yaml.SafeLoader)
    pairs = root.value if isinstance(root, yaml.MappingNode) else []
    for name, value in pairs:
        if name.value == key:
            begin, end = name.start_mark.index, _end(value)
            rest = text[end:].partition("\n")
            comment = rest[0] if rest[0].strip() else ""
            if entry:
                return text[:begin] + entry.rstrip("\n") + comment + text[end + len(rest[0]) :]
            return text[:begin] + rest[2]
    if not entry:
        return text
    return text + ("\n" if text and not text.endswith("\n") else "") + entry


def _end(node: Any) -> int:
    """Where a value ends: a block's own mark stands behind the comments that follow it."""
    import yaml

    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)
