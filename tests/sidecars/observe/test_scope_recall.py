"""Whatever changes a file out of scope is told, and what did not change is not: held against the disk by real commands.

No line has a label: what is right is what the test finds when it reads the whole tree before and after.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecars.observer.factory import Components, assemble
from sidecars.observer.observe.events import EventReader
from tests.events.looked import Looked, Run, git
from witness.assignment import Assignment

# The first word of each is the program that it needs besides a shell's own.
COMMANDS = [
    "sh: echo x > private/a.txt",
    "sh: echo x >> private/a.txt; echo y >> private/b.txt",
    "sh: printf '%s' new > 'private/with blank.txt'",
    'sh: F=private/v.txt; echo $RANDOM-$$ > "$F"',
    "sh: for n in 1 2 3; do echo $n$$ > private/loop$n.txt; done",
    "sh: cat > private/here.txt <<EOF\nsome $$\nEOF",
    "sh: { echo one; echo two; } > private/group.txt",
    "sh: (cd private && echo sub > in-subshell.txt)",
    "sh: bash -c 'echo $$ > private/inner.txt'",
    "sh: sh -c \"sh -c 'echo deep > private/deep.txt'\"",
    "sh: eval 'echo e > private/eval.txt'",
    "sh: f() { echo f > private/function.txt; }; f",
    "sh: exec 3> private/descriptor.txt; echo d >&3",
    "sh: echo ok && echo p > private/and.txt || echo no",
    "sh: false && echo never > private/never.txt",
    "sh: echo half > private/half.txt; exit 3",
    "sh: env X=1 sh -c 'echo env > private/env.txt'",
    "sh: nohup sh -c 'echo nohup > private/nohup.txt' > /dev/null 2>&1",
    "sh: trap 'echo t > private/trap.txt' EXIT",
    "sh: (sleep 0.05; echo bg > private/background.txt) & wait",
    "sed: sed -i s/start/changed/ private/sed.txt",
    "sed: sed -i.bak 's/s/S/' private/sed.txt",
    "sed: sed -i s/absent/x/ private/sed.txt",
    "sed: sed -n 'w private/sed-w.txt' src/a.txt",
    "perl: perl -pi -e 's/start/perl/' private/perl.txt",
    'perl: perl -e \'open F, ">", "private/perl-e.txt"; print F 1\'',
    "awk: awk '{print > \"private/awk.txt\"}' src/a.txt",
    'python3: python3 -c \'open("private/py.txt", "w").write("x")\'',
    "python3: python3 - <<'EOF'\nimport pathlib\npathlib.Path('private/py-here.txt').write_text('x')\nEOF",
    'python3: python3 -c \'import os; os.rename("private/mv.txt", "private/renamed.txt")\'',
    'node: node -e \'require("fs").writeFileSync("private/node.txt", "x")\'',
    "tee: echo t | tee private/tee.txt > /dev/null",
    "tee: echo t | tee -a private/a.txt src/b.txt",
    "dd: dd if=src/a.txt of=private/dd.txt status=none",
    "truncate: truncate -s 0 private/b.txt",
    "install: install -m 600 src/a.txt private/installed.txt",
    "cp: cp src/a.txt private/copied.txt",
    "cp: cp -r src private/tree",
    "mv: mv private/copied.txt private/moved.txt",
    "ln: ln src/a.txt private/hard.txt",
    "ln: ln -s ../src/a.txt private/soft.txt",
    "rm: rm private/moved.txt",
    "rm: rm -rf private/tree",
    "mkdir: mkdir -p private/empty/deeper && touch private/empty/deeper/f",
    "touch: touch private/a.txt",
    "chmod: chmod +x private/a.txt",
    "patch: printf '%s\\n' '--- private/patch.txt' '+++ private/patch.txt' '@@ -1 +1 @@' -start +new | patch -p0",
    "patch: printf 'rubbish\\n' | patch -p0",
    "git: printf '%s\\n' '--- a/private/apply.txt' '+++ b/private/apply.txt' '@@ -1 +1 @@' -start +new | git apply",
    "git: git checkout -q -- private/sed.txt",
    "git: git stash -q -u && git stash pop -q",
    "git: git mv private/gitmv.txt private/git-moved.txt",
    "git: git rm -q --cached private/cached.txt",
    "git: git commit -q --allow-empty -m private/a.txt",
    "xargs: printf 'x1\\nx2\\n' | xargs -I{} sh -c 'echo {} > private/{}.txt'",
    "find: find private -name 'x*.txt' -exec sh -c 'echo found >> \"$1\"' _ {} \\;",
    "find: find private -name 'x2.txt' -delete",
    "tar: tar cf /dev/stdout src | tar xf - -C private",
    "zip: zip -q private/z.zip src/a.txt",
    "unzip: unzip -q -o private/z.zip -d private/unzipped",
    "gzip: gzip -k private/gz.txt",
    'curl: curl -s -o private/curl.txt "file://$PWD/src/a.txt"',
    "sort: sort -o private/sorted.txt src/a.txt",
    "make: printf 'all:\\n\\t@echo made > private/made.txt\\n' | make -s -f -",
    "ed: printf '1s/start/ed/\\nw\\nq\\n' | ed -s private/ed.txt",
    "ex: ex -s -c '%s/start/ex/' -c wq private/ex.txt",
    "jq: jq .a src/j.json > private/jq.json",
    "sh: grep -rn start private; cat private/ed.txt; ls private",
    "sh: echo 'rm -rf private > private/a.txt'",
    "sh: git log --oneline -- private | head -1; diff private/a.txt src/a.txt",
]
START = ("a.txt", "b.txt", "sed.txt", "perl.txt", "mv.txt", "patch.txt", "apply.txt", "gitmv.txt", "cached.txt",
         "gz.txt", "ed.txt", "ex.txt", "with blank.txt")  # fmt: skip
MADE = itertools.count()


@pytest.fixture(scope="module", params=[True, False], ids=["watched", "compared"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run in a tree that the kernel watches, and in one where no watch can be had."""
    tree = tmp_path_factory.mktemp("tree") / "work"
    (tree / "private").mkdir(parents=True)
    (tree / "src").mkdir()
    for name in START:
        (tree / "private" / name).write_text("start\n")
    (tree / "src" / "a.txt").write_text("b\na\n")
    (tree / "src" / "j.json").write_text('{"a": 1}\n')
    git(tree, "init", "-q")
    for key, value in (("user.name", "a"), ("user.email", "a@example.org")):
        git(tree, "config", key, value)
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "start")
    with Looked(tmp_path_factory.mktemp("runs"), tree, watches=request.param) as looked:
        yield looked.run()


@pytest.fixture
def scope_of(assignment: Assignment, run: Run) -> Components:
    task = "---\nnot: [private/**]\n---\nDo it.\n"
    return assemble(replace(assignment, task=task, workdir=str(run.workdir)))


def state(tree: Path) -> dict[str, tuple[str, int]]:
    """Every file but git's own, by its content (or where it leads) and its mode."""
    found = {}
    for folder, folders, names in os.walk(tree):
        folders[:] = [each for each in folders if each != ".git"]
        for name in names:
            path = Path(folder, name)
            held = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
            found[str(path.relative_to(tree))] = (hashlib.sha256(held).hexdigest(), path.lstat().st_mode)
    return found


def told_and_true(run: Run, scope: Components, command: str) -> tuple[dict[str, str], dict[str, str]]:
    """What scope says was done to files out of scope, and what was."""
    run.prompt()
    before = state(run.workdir)
    effects = run.call(command)
    after = state(run.workdir)
    true = {
        path: "was removed" if path not in after else "was created" if path not in before else "was changed"
        for path in {*before, *after}
        if path.startswith("private/") and before.get(path) != after.get(path)
    }
    payload = {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": command}}
    seen = EventReader(str(run.workdir)).read(payload, f"e{next(MADE)}", effects=effects)
    assert seen is not None
    told = {}
    for verdict in scope.judge.judge([seen]):
        for subject, values in verdict.places:
            if (done := dict(values)["done"]) != "was opened":
                told[subject.path] = done
    return told, true


def test_scope_recall_is_1_and_nothing_else_is_told(run: Run, scope_of: Components) -> None:
    wrong, changed = [], 0
    for line in COMMANDS:
        program, _, command = line.partition(": ")
        if shutil.which(program) is None:
            continue
        told, true = told_and_true(run, scope_of, command)
        changed += len(true)
        if told != true:
            wrong.append((command, told, true))
    assert wrong == []
    assert changed > 50


FILES = st.sampled_from(["private/p1", "private/p 2", "private/d/p3", "src/s1"])
DEEDS = st.sampled_from([
    "echo $RANDOM$$ > {}", "echo same > {}", "cat {}", "touch {}", "rm -f {}", "false && echo x > {}",
    "cp {} /dev/null",
    "sed -i s/absent/x/ {}", "test -e {} && echo more >> {}", "grep x {}", "mkdir -p {}.d", "mv {} {}", "exit 4 # {}",
])  # fmt: skip
WRAPS = st.sampled_from(
    ["{}", "( {} )", "sh -c {!q}", "env A=1 bash -c {!q}", "if true; then {}; fi", "eval {!q}", "! {}"]
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(deeds=st.lists(st.tuples(DEEDS, FILES, WRAPS), min_size=1, max_size=4))
def test_an_unchanged_file_is_never_stated_as_changed(
    run: Run, scope_of: Components, deeds: list[tuple[str, str, str]]
) -> None:
    (run.workdir / "private" / "d").mkdir(exist_ok=True)
    lines = []
    for deed, file, wrap in deeds:
        inner = deed.replace("{}", shlex.quote(file))
        lines.append(wrap.replace("{!q}", shlex.quote(inner)).replace("{}", inner))
    told, true = told_and_true(run, scope_of, "\n".join(lines))
    assert told == true
