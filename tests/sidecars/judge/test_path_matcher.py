from __future__ import annotations

from pathlib import Path

import pytest

from sidecars.observer.judge.action_conditions import PathSet, path_set


@pytest.mark.parametrize(
    ("globs", "path", "inside"),
    [
        (["src/private/**"], "src/private/x.py", True),
        (["src/private/**"], "src/private/deep/x.py", True),
        (["src/private/**"], "src/private", True),
        (["src/private/"], "src/private", True),
        (["src/private"], "src/private/x.py", True),
        (["src/private"], "src/privates.py", False),
        (["./src/a.py"], "src/a.py", True),
        (["*.env"], "deep/down/.env", True),
        (["*.env"], "prod.env", True),
        (["README.md"], "docs/README.md", True),
        (["/README.md"], "docs/README.md", False),
        (["/README.md"], "README.md", True),
        (["docs/*.md"], "docs/a/b.md", False),
        (["src/**"], "/etc/src/x", False),
        (["/etc/**"], "/etc/hosts", True),
        (["/tmp/"], "/tmp/x", True),
        (["/tmp/"], "/tmpfile", False),
        (["**"], "any/thing", True),
        (["src/[ab].py"], "src/a.py", True),
        ([], "a", False),
    ],
)
def test_globs_mean_what_gitignore_says(globs: list[str], path: str, inside: bool) -> None:
    assert (path in PathSet(globs)) is inside


def test_the_home_folder() -> None:
    home = PathSet(["~/.claude/"])
    assert f"{Path.home()}/.claude/plans/x.md" in home
    assert ".claude/x" not in home


def test_a_set_of_the_context() -> None:
    sets = {"not": ("a/**", "b.py")}
    assert "a/x" in path_set(["@not"], sets)
    assert not path_set(["@files"], sets)
    assert str(path_set(["@not", "c"], sets)) == "a/**, b.py, c"


def test_a_long_set_is_shown_shortened() -> None:
    assert str(PathSet([f"f{n}" for n in range(9)])) == "f0, f1, f2, f3, f4, f5, …"
