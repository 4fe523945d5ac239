"""Which packages a manifest's text names: as much as a piece of it tells, whatever stands around the piece."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

_NAME = r"[A-Za-z][\w.-]*"
# name, name[extra], name>=1: a requirement as Python's tools write it
_REQUIREMENT = re.compile(rf"({_NAME})(?:\[[\w, .-]*\])?\s*(?:(?:[<>=!~]=?|===|@)\s*\S.*)?")
_VERSION = r"[\^~<>=v]*\s*\d[\w.*+ ,<>=^~|-]*"
# Keys of a manifest that have a version and are no package.
_NO_PACKAGES = frozenset(
    """
    version name edition rust-version python node npm pnpm yarn bun engines packagemanager target-version line-length
    requires-python license description minimum_pre_commit_version resolver php go toolchain
    """.split()  # noqa: SIM905
)
_JSON = re.compile(
    rf'"(@?[\w./-]+)"\s*:\s*"(?:{_VERSION}|\*|latest|next|workspace:|file:|link:|npm:|git|https?:|github:)'
)
_TOML_KEY = re.compile(
    rf'^\s*["\']?({_NAME})["\']?\s*=\s*(?:["\'](?:{_VERSION}|\*)["\']|\{{.*\b(?:version|git|path|workspace)\b)', re.M
)
_TOML_ITEM = re.compile(r"""["']([^"'\n]+)["']""")
_TOML_LIST = re.compile(r"^\s*([\w-]+)\s*=\s*\[(.*?)(?:\]\s*$|\Z)", re.M | re.S)
_GO = re.compile(r"^\s*(?:require\s+)?([\w.-]+\.[\w-]+/[\w./-]+)\s+v\d", re.M)
_GEM = re.compile(r"""^\s*gem\s+["']([\w-]+)["']""", re.M)
_MAVEN = re.compile(r"<artifactId>\s*([\w.-]+)\s*</artifactId>")
_GRADLE = re.compile(r"""["']([\w.-]+:[\w.-]+)(?::[\w.$\{\}-]+)?["']""")
_NUGET = re.compile(r'<PackageReference\s+Include="([\w.]+)"')
_YAML_ITEM = re.compile(rf"^\s*-\s*({_NAME})\s*(?:[=<>].*)?$", re.M)
_YAML_KEY = re.compile(rf"^\s+({_NAME}):\s*\^?\d", re.M)
# Lists of a pyproject that hold requirements; what hangs in none (a piece of a list) counts when it is one by its form.
_REQUIREMENT_LISTS = re.compile(r"(?:dependencies|requires|dev|test|tests|docs|lint|optional|all|extras?)$", re.I)


def _plain(text: str) -> Iterator[str]:
    for whole in text.splitlines():
        line = whole.partition(" #")[0].strip().strip("\"',")
        if (
            line
            and not line.startswith(("#", "-"))
            and (found := _REQUIREMENT.fullmatch(line.partition(";")[0].strip()))
        ):
            yield found[1]


def _json(text: str) -> Iterator[str]:
    yield from (found[1] for found in _JSON.finditer(text))


def _toml(text: str) -> Iterator[str]:
    lists = {found.span(): found[1] for found in _TOML_LIST.finditer(text)}
    for (start, end), key in lists.items():
        if _REQUIREMENT_LISTS.search(key):
            for item in _TOML_ITEM.findall(text[start:end]):
                yield from _plain(item)
    rest = text
    for start, end in lists:
        rest = rest[:start] + " " * (end - start) + rest[end:]
    yield from (found[1] for found in _TOML_KEY.finditer(rest))
    for line in rest.splitlines():
        if "=" not in line.partition('"')[0] and not line.lstrip().startswith("["):
            yield from _plain(line.strip())


def _all(expression: re.Pattern[str]) -> Callable[[str], Iterator[str]]:
    return lambda text: (found[1] for found in expression.finditer(text))


_READERS: dict[str, Callable[[str], Iterator[str]]] = {
    "pyproject.toml": _toml,
    "Cargo.toml": _toml,
    "Pipfile": _toml,
    "package.json": _json,
    "composer.json": _json,
    "deno.json": _json,
    "bower.json": _json,
    "go.mod": _all(_GO),
    "Gemfile": _all(_GEM),
    "pom.xml": _all(_MAVEN),
    "build.gradle": _all(_GRADLE),
    "build.gradle.kts": _all(_GRADLE),
    "environment.yml": _all(_YAML_ITEM),
    "pubspec.yaml": _all(_YAML_KEY),
}
_REQUIREMENTS = re.compile(r"(?:.*-)?requirements(?:[-_.].*)?\.(?:txt|in)|constraints.*\.txt", re.IGNORECASE)


def packages(path: str, text: str) -> frozenset[str]:
    """The packages that a manifest's text names, folded to one spelling; none for another file.

    Args:
        path: of the manifest.
        text: all of it, or whole lines of it.
    """
    name = PurePosixPath(path).name
    reader = _READERS.get(name)
    if reader is None and (_REQUIREMENTS.fullmatch(name) or "requirements" in PurePosixPath(path).parts[:-1]):
        reader = _plain
    if reader is None and name.endswith((".csproj", ".fsproj")):
        reader = _all(_NUGET)
    if reader is None:
        return frozenset()
    return frozenset(
        folded for each in reader(text) if (folded := re.sub(r"[-_.]+", "-", each).lower()) not in _NO_PACKAGES
    )
