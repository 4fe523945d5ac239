"""What Ruff, Flake8, Pylint and mypy are told to hold a project's Python against."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterable, Iterator, Mapping

from sidecars.observer.conventions.held import Held, indented, refused_import, table, texts
from sidecars.observer.conventions.vocabulary import by_linter
from witness.files import parse_toml

PYTHON = ("*.py", "*.pyi")
_RUFF_DEFAULT = ["E4", "E7", "E9", "F"]
_FLAKE8_DEFAULT = ["E", "F", "W", "C90"]
_FLAKE8_OFF = "E121,E123,E126,E226,E24,E704,W503,W504"
# Codes of Ruff and Flake8, and those that are Pylint's by their form.
_CODE = re.compile(r"[A-Z]{1,4}\d+")
_PYLINT = re.compile(r"[WCR]\d{4}")
# Rules whose default is narrower than their name: there only the configuration's own words count.
_BY_SETTING = {"TID252": ("flake8-tidy-imports", "ban-relative-imports", "all")}


def pyproject(text: str) -> Iterator[Held]:
    """What ``pyproject.toml`` holds for each of them."""
    tools = table(parse_toml(text).get("tool"))
    if "ruff" in tools:
        yield from _ruff(table(tools["ruff"]))
    if flake8 := table(tools.get("flake8")):
        yield from _flake8_section({key.replace("_", "-"): value for key, value in flake8.items()})
    if pylint := {re.sub(r"[ _-]", "", key.lower()): table(value) for key, value in table(tools.get("pylint")).items()}:
        control = {**pylint.get("messagescontrol", {}), **pylint.get("main", {}), **pylint.get("messages", {})}
        yield from _pylint(_codes(control.get("disable")), _codes(control.get("enable")), pylint.get("format", {}))
    yield from _mypy(table(tools.get("mypy")))


def ruff(text: str) -> Iterator[Held]:
    """What ``ruff.toml`` holds."""
    yield from _ruff(parse_toml(text))


def ini(text: str) -> Iterator[Held]:
    """What ``setup.cfg``, ``tox.ini``, ``.flake8``, ``mypy.ini`` hold."""
    sections = _sections(text)
    if "flake8" in sections:
        yield from _flake8_section({key.replace("_", "-"): value for key, value in sections["flake8"].items()})
    yield from _mypy({key: value.lower() == "true" for key, value in sections.get("mypy", {}).items()})


def pylintrc(text: str) -> Iterator[Held]:
    """What ``.pylintrc`` holds."""
    sections = _sections(text)
    given = {key: value for section in sections.values() for key, value in section.items()}
    every = [
        [code for section in sections.values() for code in _codes(section.get(key))] for key in ("disable", "enable")
    ]
    yield from _pylint(every[0], every[1], given)


def _sections(text: str) -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    parser.read_string(text)
    return {name: {key: value or "" for key, value in parser[name].items()} for name in parser.sections()}


def _ruff(given: Mapping[str, object]) -> Iterator[Held]:
    lint = {**given, **table(given.get("lint"))}
    selected = _codes(lint["select"]) if "select" in lint else list(_RUFF_DEFAULT)
    selected += _codes(lint.get("extend-select"))
    ignored = _codes(lint.get("ignore")) + _codes(lint.get("extend-ignore"))
    per_file = {**table(lint.get("per-file-ignores")), **table(lint.get("extend-per-file-ignores"))}
    excluded = [
        glob for part in (given, lint) for key in ("exclude", "extend-exclude") for glob in texts(part.get(key))
    ]
    length = table(lint.get("pycodestyle")).get("max-line-length") or given.get("line-length", 88)
    tidy = table(lint.get("flake8-tidy-imports"))
    for held in _selected(selected, ignored, per_file, excluded, length):
        section, key, value = _BY_SETTING.get(held.code, ("", "", ""))
        if not section or table(lint.get(section)).get(key) == value:
            yield held
    if _is_on("TID251", selected, ignored):
        but = (*_off_in("TID251", per_file), *excluded)
        yield from (refused_import("TID251", name, PYTHON, but) for name in table(tidy.get("banned-api")))
    yield from indented("indent-style", table(given.get("format")).get("indent-style"), PYTHON, tuple(excluded))


def _flake8_section(given: Mapping[str, object]) -> Iterator[Held]:
    selected = (_codes(given.get("select")) or list(_FLAKE8_DEFAULT)) + _codes(given.get("extend-select"))
    ignored = _codes(given.get("ignore", _FLAKE8_OFF)) + _codes(given.get("extend-ignore"))
    per_file: dict[str, object] = {}
    listed = given.get("per-file-ignores", "")
    for line in listed.splitlines() if isinstance(listed, str) else texts(listed):
        named, _, codes = line.partition(":")
        per_file |= {glob.strip(): codes for glob in named.split(",") if glob.strip()}
    length = str(given.get("max-line-length", "79")).split("#")[0].strip()
    excluded = _codes(given.get("exclude")) + _codes(given.get("extend-exclude"))
    yield from _selected(selected, ignored, per_file, excluded, int(length) if length.isdecimal() else None)


def _selected(
    selected: Iterable[str],
    ignored: Iterable[str],
    per_file: Mapping[str, object],
    excluded: Iterable[str],
    length: object,
) -> Iterator[Held]:
    """The known codes that the longest prefix selects."""
    if any(glob.startswith("!") for glob in per_file):  # off everywhere but there
        per_file = {glob: codes for glob, codes in per_file.items() if not glob.startswith("!")} | {
            "**": [code for glob, codes in per_file.items() if glob.startswith("!") for code in _codes(codes)]
        }
    for code in by_linter():
        if not _CODE.fullmatch(code) or _PYLINT.fullmatch(code) or not _is_on(code, selected, ignored):
            continue
        values = {"length": str(length)} if isinstance(length, int) else None
        key = next((each for each in selected if _covers(each, code)), code)
        yield Held(code, key, (*_off_in(code, per_file), *excluded), PYTHON if code == "E501" else (), values)


def _is_on(code: str, selected: Iterable[str], ignored: Iterable[str]) -> bool:
    chosen = max((len(each) for each in selected if _covers(each, code)), default=-1)
    return chosen > max((len(each) for each in ignored if _covers(each, code)), default=-1)


def _off_in(code: str, per_file: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(glob for glob, codes in per_file.items() if any(_covers(each, code) for each in _codes(codes)))


def _covers(prefix: str, code: str) -> bool:
    return prefix == "ALL" or code.startswith(prefix)


def _codes(value: object) -> list[str]:
    if isinstance(value, str):
        return [each for each in re.split(r"[\s,]+", re.sub(r"#.*", "", value)) if each]
    return texts(value)


def _pylint(disabled: list[str], enabled: list[str], given: Mapping[str, object]) -> Iterator[Held]:
    length = str(given.get("max-line-length", "100")).strip()
    for code, concerns in by_linter().items():
        names = {code, *(each for concern in concerns for each in concern.linters)}
        if not re.fullmatch(r"[a-z]+(?:-[a-z]+)+", code) or not any(_PYLINT.fullmatch(each) for each in names):
            continue
        off = "all" in disabled or not names.isdisjoint(disabled)
        if not off or not names.isdisjoint(enabled):
            yield Held(code, only=PYTHON, values={"length": length})


def _mypy(given: Mapping[str, object]) -> Iterator[Held]:
    for key in ("strict", "disallow_untyped_defs"):
        if given.get(key) is True and given.get("disallow_untyped_defs") is not False:
            yield Held("disallow_untyped_defs", key, only=PYTHON)
            return
