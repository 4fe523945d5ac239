"""JSON and TOML that somebody else may have written: bounded in size and depth, and read by key and type."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from witness.files.opening import SMALL, read_bytes

# Far deeper than anything that we, Gas Town or a client writes, far less than what a recursive walk can bear.
DEPTH = 64
_LARGEST = (1 << 63) - 1
# A dotted key of so many parts takes its reader the square of them.
_DEEP_KEY = re.compile(r"(?<![\w.-])(?:[\w-]++\.){64}")
_NAMES: dict[type, str] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
}
_Kind = TypeVar("_Kind", str, bool, int, float, list[Any], dict[str, Any])


def parse_json(data: str | bytes, depth: int = DEPTH) -> Any:
    """Read JSON.

    Args:
        data: the text; bytes are UTF-8.
        depth: how deep lists and objects may be nested.

    Raises:
        ValueError: it is not JSON (``NaN`` and ``Infinity`` are none), or nested deeper.
    """
    text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError(f"nested deeper than {depth} levels") from None
    if text.count("[") + text.count("{") > depth and isinstance(value, dict | list) and _is_deeper(value, depth):
        raise ValueError(f"nested deeper than {depth} levels")
    return value


def parse_toml(text: str) -> dict[str, Any]:
    """Read TOML.

    Raises:
        tomllib.TOMLDecodeError: it is not TOML.
        ValueError: it is nested too deeply, or a number has too many digits.
    """
    import tomllib

    if _DEEP_KEY.search(text):
        raise ValueError("nested too deeply")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        raise ValueError("a number of too many digits") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _is_deeper(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        inside = (each.values() if isinstance(each, dict) else each for each in level)
        level = [inner for values in inside for inner in values if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def read_json(
    path: Path | str,
    limit: int = SMALL,
    *,
    below: Path | str | None = None,
    follow: bool = False,
    owners: Collection[int] | None = None,
) -> Any:
    """Read a JSON file; the arguments are those of ``read_bytes``.

    Raises:
        OSError: as ``read_bytes``.
        ValueError: as ``parse_json``; the text names the file.
    """
    data = read_bytes(path, limit, below=below, follow=follow, owners=owners)
    try:
        return parse_json(data)
    except ValueError as error:
        raise ValueError(f"{path}: not JSON: {error}") from error


def report_of(
    path: Path | str, *, below: Path | str, told: Callable[[str], None] | None = None, limit: int = SMALL
) -> dict[str, Any] | None:
    """The object in a file of a run, which its agent can write too: what is wrong with it is that run's trouble.

    Args:
        path, below, limit: as for ``read_bytes``.
        told: hears what is wrong with the file, in one line; a missing file is nothing wrong.

    Returns:
        The object; None when there is none that can be used.
    """
    try:
        raw = read_json(path, limit, below=below)
        if not isinstance(raw, dict):
            raise ValueError(f"{path}: not a JSON object")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        if told is not None:
            told(str(error))
        return None
    return raw


def typed(record: Any, key: str, kind: type[_Kind], default: _Kind | None = None) -> _Kind:
    """One value of a JSON object, of the type that it has to be.

    Args:
        record: what was read; it may be anything.
        key: its key.
        kind: ``str``, ``bool``, ``int`` (of 64 bits), ``float`` (finite, a whole number too), ``list`` or ``dict``.
        default: for a missing key, or one that is null; None when it has to be there.

    Raises:
        ValueError: it is missing or of another type.
    """
    if not isinstance(record, dict):
        raise ValueError(f"must be an object with the key {key!r}")
    value: Any = record.get(key)
    if value is None:
        if default is None:
            raise ValueError(f"the key {key!r} is missing")
        return default
    if type(value) is int and abs(int(value)) > _LARGEST:
        raise ValueError(f"{key!r} is too large")
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind or (type(value) is float and not math.isfinite(float(value))):
        raise ValueError(f"{key!r} must be {_NAMES[kind]}")
    found: _Kind = value
    return found
