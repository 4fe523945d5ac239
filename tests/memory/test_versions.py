"""A memory in git: both sides of a merge are joined, and a file with conflict marks is nobody's empty memory."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sidecars.memory.join import has_conflict_marks, join, sides_of
from sidecars.memory.lenient_reader import read_sidecar
from sidecars.memory.record import Sidecar
from sidecars.memory.store import MemoryConflictError, MemoryStore
from sidecars.memory.versions import join_files
from tests.memory.cli import Cli
from tests.memory.files import MDAN, TEMPLATE, write

_ROOT = Path(__file__).resolve().parents[2]
_NOW = "2026-12-01T00:00:00.000Z"


def _fact(id: str, content: str, **more: Any) -> dict[str, Any]:
    return {**MDAN["memories"][0], "id": id, "content": content, **more}


def _of(*facts: dict[str, Any], **more: Any) -> Sidecar:
    return read_sidecar({**MDAN, "memories": list(facts), **more}, "ada", _NOW).sidecar


def _texts(sidecar: Sidecar) -> list[str]:
    return [memory.content for memory in sidecar.memories]


def _conflicted(ours: str, theirs: str, base: str = "") -> bytes:
    middle = f"||||||| base\n{base}" if base else ""
    return f"<<<<<<< HEAD\n{ours}{middle}=======\n{theirs}>>>>>>> feature\n".encode()


_LINE = '"{}": "{}",\n'


def test_both_additions_are_kept_and_what_one_side_took_away_is_gone() -> None:
    base = _of(_fact("a", "stays"), _fact("b", "goes"))
    ours = _of(_fact("a", "stays"), _fact("b", "goes"), _fact("c", "ours"))
    theirs = _of(_fact("a", "stays"), _fact("d", "theirs"))
    assert _texts(join(base, ours, theirs)) == ["stays", "ours", "theirs"]


def test_what_was_changed_on_one_side_wins_over_what_was_not() -> None:
    base = _of(_fact("a", "port 80", confidence=0.5))
    theirs = _of(_fact("a", "port 81", confidence=0.5))
    for one, two in ((base, theirs), (theirs, base)):
        assert _texts(join(base, one, two)) == ["port 81"]
    changed = _of(_fact("a", "port 80", confidence=0.9))
    assert _texts(join(base, changed, _of())) == ["port 80"]


def test_what_both_changed_has_the_later_words_and_the_higher_confidence() -> None:
    base = _of(_fact("a", "port 80"))
    ours = _of(_fact("a", "port 81", confidence=0.9), last_updated="2026-03-01")
    theirs = _of(_fact("a", "port 82", confidence=0.6), last_updated="2026-03-02")
    for one, two in ((ours, theirs), (theirs, ours)):
        joined = join(base, one, two)
        assert _texts(joined) == ["port 82"]
        assert joined.memories[0].confidence == 0.9


def test_the_same_fact_under_two_ids_is_there_once() -> None:
    assert _texts(join(_of(), _of(_fact("a", "Uses tabs")), _of(_fact("b", "uses tabs.")))) == ["Uses tabs"]


def test_sessions_add_up_and_names_and_decisions_are_joined() -> None:
    base = _of(sessions_participated=3)
    ours = replace(_of(sessions_participated=5), relationships={"agrees_with": ("dev", "bob")})
    theirs = replace(_of(sessions_participated=4), relationships={"agrees_with": ("dev", "eve")})
    joined = join(base, ours, theirs)
    assert joined.sessions_participated == 6
    assert joined.relationships["agrees_with"] == ("dev", "bob", "eve")
    assert [each.dr_id for each in joined.decision_history] == ["DR-001"]


def test_files_without_ids_are_joined_by_what_they_say() -> None:
    more = {**TEMPLATE, "memories": [*TEMPLATE["memories"], {"content": "new", "type": "context"}]}
    base, theirs = (json.dumps(each).encode() for each in (TEMPLATE, more))
    joined = json.loads(join_files(base, base, theirs, "architect", _NOW))
    assert [each["content"] for each in joined["memories"]] == [each["content"] for each in more["memories"]]


def test_a_side_that_is_no_memory_is_not_joined() -> None:
    with pytest.raises(ValueError, match="Expecting value"):
        join_files(b"", json.dumps(MDAN).encode(), b"nonsense", "ada", _NOW)


def test_marks_are_seen_and_taken_apart() -> None:
    data = b"{\n" + _conflicted("a\n", "b\n", "c\n") + b"}\n"
    assert has_conflict_marks(data)
    assert sides_of(data) == (b"{\na\n}\n", b"{\nb\n}\n")
    assert not has_conflict_marks(json.dumps({"content": "<<<<<<< HEAD\n=======\n>>>>>>> x"}).encode())
    for torn in (b"<<<<<<< a\nx\n=======\ny\n", b"=======\n>>>>>>> b\n", b">>>>>>> b\n<<<<<<< a\n=======\n"):
        with pytest.raises(ValueError, match="conflict"):
            sides_of(torn)


def _conflict_file(root: Path) -> tuple[Path, bytes]:
    ours, theirs = ({**MDAN, "memories": [_fact(name, f"the {name} side")]} for name in ("ours", "theirs"))
    data = _conflicted(*(json.dumps(side, indent=1) + "\n" for side in (ours, theirs)))
    return write(root, "ada", data), data


def test_a_file_with_conflict_marks_is_neither_empty_nor_written_over(store: MemoryStore, tmp_path: Path) -> None:
    path, data = _conflict_file(tmp_path)
    for act in (
        lambda: store.read("ada"),
        lambda: store.fold("ada"),
        lambda: store.change("ada", "add", "s", {"content": "one"}),
    ):
        with pytest.raises(MemoryConflictError, match="gt memory merge ada"):
            act()
    assert path.read_bytes() == data
    assert not [each for each in path.parent.iterdir() if "corrupt" in each.name or "journal" in each.name]


def test_merge_joins_both_sides_of_a_conflicted_file_and_keeps_it(gt: Cli) -> None:
    path, data = _conflict_file(gt.project)
    write(gt.project, "bob", TEMPLATE)
    for words in (("show", "ada"), ("load", "ada"), ("save", "ada")):
        ran = gt(*words)
        assert (ran.code, ran.out) == (1, ""), words
        assert "gt memory merge ada" in ran.err
    listed = gt("list", "--json")
    assert [row["agent"] for row in json.loads(listed.out)] == ["bob"]
    assert "gt memory merge ada" in listed.err
    assert gt("lint", "ada").code == 2
    assert gt("merge", "ada").out == "ada: both sides joined\n"
    assert _texts(MemoryStore(gt.project).read("ada")) == ["the ours side", "the theirs side"]
    assert [each.read_bytes() for each in path.parent.iterdir() if ".conflict-" in each.name] == [data]
    assert "nothing to join" in gt("merge", "ada").out
    assert gt("merge", "nobody").code == 2
    assert gt("merge").code == 2


def test_sides_that_cannot_be_joined_leave_the_file_as_it_is(gt: Cli) -> None:
    data = _conflicted('{"agent": \n', '{"agent": 1}\n')
    path = write(gt.project, "ada", data)
    ran = gt("merge", "ada")
    assert ran.code == 1
    assert "mend it by hand" in ran.err
    assert path.read_bytes() == data


def _git(folder: Path, *arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "GIT_CONFIG_GLOBAL": "/dev/null"}
    names = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    return subprocess.run(
        ["git", *names, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_a_merge_in_git_joins_two_branches(gt: Cli, tmp_path_factory: pytest.TempPathFactory) -> None:
    programs = tmp_path_factory.mktemp("bin")
    script = programs / "gt"
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(_ROOT))} exec {shlex.quote(sys.executable)} -m witness.cli "$@"\n'
    )
    script.chmod(0o755)

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        return _git(gt.project, *arguments, path=str(programs))

    git("init", "-q", "-b", "main")
    gt("add", "ada", "the base fact", "--session", "s0")
    gt("save", "ada", "--session", "s0")
    assert gt("git-setup").code == 0
    assert gt("git-setup", "ada").code == 0
    git("add", "-A")
    tracked = git("ls-files").stdout.splitlines()
    assert [Path(each).name for each in tracked] == [".gitattributes", ".gitignore", "ada.sidecar.json"]
    git("commit", "-qm", "base")
    git("checkout", "-qb", "feature")
    gt("add", "ada", "learned on the branch", "--session", "s1")
    gt("save", "ada", "--session", "s1")
    git("commit", "-qam", "branch")
    git("checkout", "-q", "main")
    gt("add", "ada", "learned on main", "--session", "s2")
    gt("save", "ada", "--session", "s2")
    git("commit", "-qam", "main")
    merged = git("merge", "-q", "--no-edit", "feature")
    assert merged.returncode == 0, merged.stderr + merged.stdout
    after = MemoryStore(gt.project).read("ada")
    assert set(_texts(after)) == {"the base fact", "learned on the branch", "learned on main"}
    assert after.sessions_participated == 3


def test_git_setup_outside_of_a_repository_is_one_line(gt: Cli) -> None:
    gt("init", "ada")
    ran = gt("git-setup", "ada")
    assert ran.code == 2
    assert "git said" in ran.err
    assert len(ran.err.splitlines()) == 1
