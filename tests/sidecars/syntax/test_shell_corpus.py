"""The shell reader against lines that people labelled without sight of it, as they stand and wrapped."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from posixpath import join, normpath
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecars.syntax.shell import read_shell

CORPUS = Path(__file__).parents[2] / "corpus"
# What may be told or not, by the corpus.
_PASSED_OVER = frozenset(["bash", "sh", "zsh"])


@lru_cache
def corpus() -> list[dict[str, Any]]:
    disputed = {each["line"] for each in yaml.safe_load((CORPUS / "disputed.yaml").read_text("utf-8")) or ()}
    rows = yaml.safe_load((CORPUS / "shell_lines.yaml").read_text("utf-8"))
    return [row for row in rows if row["line"] not in disputed]


def normal(paths: list[str] | tuple[str, ...]) -> set[str]:
    return {normpath(path) for path in paths}


def test_no_line_names_a_file_that_it_does_not_touch() -> None:
    wrong = {}
    for row in corpus():
        read = read_shell(row["line"])
        for part, said in (("opened", read.opened), ("may_write", read.may_write)):
            if false := normal(said) - normal(row[part]):
                wrong[row["line"]] = (part, false)
        if false := set(read.tools) - set(row["tools"]) - _PASSED_OVER:
            wrong[row["line"]] = ("tools", false)
        if row.get("silent") and read != read_shell(""):
            wrong[row["line"]] = ("silent", set())
    assert wrong == {}


@pytest.mark.parametrize("part", ["opened", "may_write", "tools"])
def test_most_of_what_can_be_known_is_told(part: str) -> None:
    wanted = found = 0
    for row in corpus():
        label = normal(row[part])
        wanted += len(label)
        found += len(label & normal(getattr(read_shell(row["line"]), part)))
    assert wanted > 150
    assert found / wanted >= 0.97


# A wrapper: the line that it makes, and where its commands then run; None when they do not run, or may not.
Wrapper = tuple[Callable[[str], str], str | None]
WRAPPERS: list[Wrapper] = [
    (lambda line: f"(\n{line}\n)", ""),
    (lambda line: f"{{\n{line}\n}}", ""),
    (lambda line: f"true && {{\n{line}\n}}", ""),
    (lambda line: f"! (\n{line}\n)", ""),
    (lambda line: f"{{\n{line}\n}} | sort", ""),
    (lambda line: f"bash -c {shlex.quote(line)}", ""),
    (lambda line: f"sudo -u me env A=src/a.py time -p sh -ec {shlex.quote(line)}", ""),
    (lambda line: f"timeout -s KILL 5 nice -n 3 nohup bash -c {shlex.quote(line)} &", ""),
    (lambda line: f"eval {shlex.quote(line)}", ""),
    (lambda line: f"work() {{\n{line}\n}}\nwork a.txt", ""),
    (lambda line: f"x=$(\n{line}\n)", ""),
    (lambda line: f"cd deep && (\n{line}\n)", "deep"),
    (lambda line: f"(cd ./deep/er/..; bash -c {shlex.quote(line)})", "deep"),
    (lambda line: f"pushd deep >/dev/null\n{line}", "deep"),
    (lambda line: f'cd "$where" && bash -c {shlex.quote(line)}', "?"),
    (lambda line: f"work() {{\n{line}\n}}", None),
    (lambda line: f"if test -n x; then\n{line}\nfi", None),
    (lambda line: f"while read -r x; do\n{line}\ndone", None),
    (lambda line: f"true || {{\n{line}\n}}", None),
    (lambda line: f"echo {shlex.quote(line)}", None),
    (lambda line: f"x={shlex.quote(line)}", None),
    (lambda line: f"git commit -m {shlex.quote(line)}", None),
    (lambda line: f"python3 -c {shlex.quote(line)} {shlex.quote(line)}", None),
    (lambda line: f"grep -n {shlex.quote(line)}", None),
    (lambda line: f"ssh me@there {shlex.quote(line)}", None),
    (lambda line: f"cat <<'END_OF_IT'\n{line}\nEND_OF_IT\n", None),
    (lambda line: f"python3 - <<'END_OF_IT'\n{line}\nEND_OF_IT\n", None),
    (lambda line: f"exit 1\n{line}", None),
]
PLACES = st.lists(st.sampled_from(range(len(WRAPPERS))), min_size=1, max_size=3)


def expected(paths: list[str], places: list[str | None]) -> set[str]:
    """Where the labelled paths lie when the innermost of ``places`` comes first."""
    found = normal(paths)
    for place in places:
        if place is None:
            return set()
        if place == "?":
            found = {path for path in found if path.startswith(("/", "~"))}
        found = {path if path.startswith(("/", "~")) else normpath(join(place, path)) for path in found}
    return found


@settings(max_examples=400, deadline=None)
@given(st.data(), PLACES)
def test_no_line_however_wrapped_names_a_file_that_it_does_not_touch(data: st.DataObject, chosen: list[int]) -> None:
    # ``cd -`` leads to where a wrapper came from, which the label does not know
    row = data.draw(st.sampled_from([row for row in corpus() if "cd -" not in row["line"]]))
    line = row["line"]
    places = []
    for index in chosen:
        wrap, place = WRAPPERS[index]
        line = wrap(line)
        places.append(place)
    read = read_shell(line)
    for part, said in (("opened", read.opened), ("may_write", read.may_write)):
        assert normal(said) <= expected(row[part], places), (part, line)


@pytest.mark.parametrize("index", [index for index, (_, place) in enumerate(WRAPPERS) if place == ""])
def test_what_runs_within_is_told(index: int) -> None:
    """A wrapper that runs its line loses little of it: recall over the corpus, not exact for each."""
    wanted = found = 0
    for row in corpus():
        read = read_shell(WRAPPERS[index][0](row["line"]))
        for part in ("opened", "may_write"):
            label = normal(row[part])
            wanted += len(label)
            found += len(label & normal(getattr(read, part)))
    assert found / wanted >= 0.9
