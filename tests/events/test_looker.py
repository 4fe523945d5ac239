"""Which files a call changed, made or removed: with a real looker, real commands and real git."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.events.looked import PATIENCE, Looked, Run, git
from tests.waiting import until
from witness.events.effects import Effects
from witness.events.spool_reader import SpoolReader
from witness.events.tree_files import Tree
from witness.events.tree_watch import TreeWatch

FILES = {"src/a.py": "x = 1\n", "src/b.py": "y = 2\n", "docs/read me.md": "# Hello\n", "run.sh": "echo\n"}


def make_tree(tree: Path) -> None:
    for name, text in FILES.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)


@pytest.fixture(params=["git", "no git"])
def tree(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    tree = tmp_path / "tree"
    make_tree(tree)
    if request.param == "git":
        git(tree, "init", "-q")
        git(tree, "add", "-A")
        git(tree, "commit", "-qm", "all")
    return tree


@pytest.fixture
def looked(tmp_path: Path, tree: Path) -> Iterator[Looked]:
    with Looked(tmp_path / "runs", tree) as looked:
        yield looked


@pytest.fixture
def run(looked: Looked) -> Run:
    return looked.run()


def seen(effects: Effects) -> tuple[set[str], set[str], set[str]]:
    return set(effects.changed), set(effects.created), set(effects.removed)


NOTHING: tuple[set[str], set[str], set[str]] = (set(), set(), set())

# How a command may be wrapped; whatever stands around it, the files are the same.
WRAPPED = {
    "plain": "{}",
    "bash -c": "bash -c '{}'",
    "a subshell": "({})",
    "a function": "f() {{ {}; }}; f",
    "after another": "true && {}",
    "from elsewhere": "cd docs && cd .. && {}",
    "xargs": "printf '%s' '{}' | xargs -I@ sh -c @",
    "a pipe into sh": "echo '{}' | sh",
    "a here-document": "sh <<'END'\n{}\nEND",
    "python -c": "python3 -c 'import os; os.system(\"{}\")'",
    "env and time": "time env A=1 sh -c '{}'",
    "in the background": "sh -c '{}' & wait",
}
COMMANDS = {
    "sed -i s/1/3/ src/a.py": ({"src/a.py"}, set(), set()),
    "echo z >> src/b.py": ({"src/b.py"}, set(), set()),
    "echo z > src/new.py": (set(), {"src/new.py"}, set()),
    "rm src/a.py src/b.py": (set(), set(), {"src/a.py", "src/b.py"}),
    "mv src lib": (set(), {"lib/a.py", "lib/b.py"}, {"src/a.py", "src/b.py"}),
    "mkdir -p p/q && cp src/a.py p/q/": (set(), {"p/q/a.py"}, set()),
    "cp src/a.py src/b.py": ({"src/b.py"}, set(), set()),
    "cat src/a.py": NOTHING,
    "sed -i s/1/3/ src/none.py": NOTHING,
    "sed -i s/none/3/ src/a.py": NOTHING,
    "touch src/a.py": NOTHING,
    "cp -p src/a.py t && mv t src/a.py": NOTHING,
    "echo a > t && rm t": NOTHING,
    "chmod +x run.sh": ({"run.sh"}, set(), set()),
    "ln -s a.py src/link": (set(), {"src/link"}, set()),
}


@pytest.mark.parametrize("tree", ["git"], indirect=True)
@pytest.mark.parametrize("wrapped", WRAPPED.values(), ids=WRAPPED)
def test_whatever_wraps_a_change_the_files_are_told_exactly(run: Run, tree: Path, wrapped: str) -> None:
    for command, files in COMMANDS.items():
        assert seen(run.call(wrapped.format(command))) == files, command
        restore(tree)
        run.prompt()


def restore(tree: Path) -> None:
    for path in sorted(tree.rglob("*"), reverse=True):
        name = str(path.relative_to(tree))
        if ".git" in path.parts or name in FILES:
            continue
        if not path.is_dir():
            path.unlink()
        elif not any(path.iterdir()):
            path.rmdir()
    make_tree(tree)
    (tree / "run.sh").chmod(0o644)


def test_other_tools_than_shells_words_are_seen(run: Run, tree: Path) -> None:
    patch = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 5\n"
    assert seen(run.call(f"git apply - <<'END'\n{patch}END")) == ({"src/a.py"}, set(), set())
    assert seen(run.call("python3 - <<'END'\nopen('docs/read me.md', 'a').write('!')\nEND"))[0] == {"docs/read me.md"}
    assert seen(run.call("find . -name '*.py' -not -path './.git/*' -print0 | xargs -0 sed -i s/=/==/"))[0] == {
        "src/a.py",
        "src/b.py",
    }
    assert seen(run.call("perl -pi -e 's/y/w/' src/*.py"))[0] == {"src/b.py"}
    assert seen(run.call("tar cf - src | tar xf - -C docs"))[1] == {"docs/src/a.py", "docs/src/b.py"}


def test_the_state_of_a_failed_command_is_what_it_left(run: Run) -> None:
    assert run.call("sed -i s/x/y/ nowhere.py").exit == 2
    effects = run.call("echo half > src/half.py; exit 3")
    assert (seen(effects), effects.exit) == ((set(), {"src/half.py"}, set()), 3)
    assert run.call("true").exit == 0


def test_an_edit_beside_a_command_takes_nothing_from_it(run: Run, tree: Path) -> None:
    began = time.time()
    (tree / "src/b.py").write_text("by the command\n")
    (tree / "src/a.py").write_text("by the edit\n")
    edit = run.end("", began, 0, tool_name="Edit", tool_input={"file_path": str(tree / "src/a.py")}).effects
    assert edit is not None
    assert seen(edit) == ({"src/a.py"}, set(), set())
    command = run.end("make", began, 0, agent_id="another").effects
    assert command is not None
    assert "src/b.py" in command.changed


def test_a_call_that_is_told_twice_did_it_both_times(run: Run) -> None:
    began = time.time()
    assert run.call("echo z > src/a.py", tool_use_id="twice").changed == ("src/a.py",)
    again = run.end("echo z > src/a.py", began, 0, tool_use_id="twice").effects
    assert again is not None
    assert again.changed == ("src/a.py",)


def test_where_a_client_tells_no_duration_the_begin_of_the_call_is_told(run: Run, tree: Path) -> None:
    (tree / "src/b.py").write_text("mine\n")
    run.call("sleep 0.1")
    event = run.end("echo z > src/a.py", time.time(), 0, duration_ms=None)
    assert (event.effects, event.awaited) == (None, False)
    run.tell("PreToolUse", tool_name="Bash", tool_use_id="told")
    (tree / "src/a.py").write_text("3\n")
    event = run.end("echo 3 > src/a.py", time.time(), 0, duration_ms=None, tool_use_id="told")
    assert event.effects is not None
    assert seen(event.effects) == ({"src/a.py"}, set(), set())


def test_where_a_command_began_is_told(run: Run, tree: Path) -> None:
    run.call("true", session_id="s", cwd=".")
    began = time.time()
    effects = run.end("cd src", began, 0, cwd=str(tree / "src")).effects
    assert effects is not None
    assert effects.cwd_before == str(tree)
    effects = run.end("ls", time.time(), 0, cwd=str(tree / "src")).effects
    assert effects is not None
    assert effects.cwd_before == str(tree / "src")


def test_what_a_person_did_between_two_calls_is_nobodys(run: Run, tree: Path) -> None:
    (tree / "src/a.py").write_text("mine\n")
    run.prompt()
    assert seen(run.call("echo z > src/b.py")) == ({"src/b.py"}, set(), set())


def test_gits_own_files_ours_and_editors_are_left_out(run: Run, tree: Path, tmp_path: Path) -> None:
    assert seen(run.call("git init -q x 2>/dev/null; git config a.b c; echo > .a.py.swp; echo > a.py~")) == NOTHING


@pytest.mark.parametrize("tree", ["git"], indirect=True)
def test_an_ignored_file_is_told_as_such_and_caches_as_one(run: Run) -> None:
    run.call("printf '.env\\nbuild/\\n' > .gitignore; mkdir -p node_modules/x")
    effects = run.call(
        "echo KEY=1 > .env; cd node_modules; echo 1 > y; mkdir ../__pycache__; cp y ../__pycache__/a.pyc"
    )
    assert seen(effects) == (set(), {".env"}, set())
    assert set(effects.generated) == {".env", "node_modules/", "__pycache__/"}
    effects = run.call("mkdir build; for i in $(seq 100); do echo $i > build/$i.o; done")
    assert (seen(effects), effects.generated) == (NOTHING, ("build/",))
    effects = run.call("mkdir target; echo > target/CACHEDIR.TAG; echo > target/a.o")
    assert "target/" in effects.generated


def test_many_files_are_bounded_and_counted(run: Run) -> None:
    effects = run.call("for i in $(seq 250); do echo > src/$i.py; done")
    assert (len(effects.created), effects.more) == (200, 50)


def test_a_file_outside_is_told_when_the_command_names_it(run: Run, tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "old").write_text("1")
    (outside / "read").write_text("1")
    (tree / "way").symlink_to(outside)
    run.call("sleep 0.1")
    assert run.call(f"cat {outside}/read; echo 2 > {outside}/old").changed == (f"{outside}/old",)
    assert run.call("echo 3 > way/old").changed == (f"{outside}/old",)
    assert run.call("cd src; echo 4 >> ../../outside/old", cwd=".").changed == ()
    assert run.call("echo 4 >> ../outside/old; echo 1 > src/a.py").changed == ("src/a.py", f"{outside}/old")


def test_a_file_deep_in_a_tree_of_packages_is_told_when_it_is_named(run: Run, tree: Path) -> None:
    run.call("mkdir -p node_modules/x/y; echo 1 > node_modules/x/y/z.js")
    effects = run.call("sed -i s/1/2/ node_modules/x/y/z.js")
    assert effects.changed == effects.generated == ("node_modules/x/y/z.js",)


def test_names_below_the_workdir_are_told_from_there(looked: Looked, tree: Path) -> None:
    run = looked.run(workdir=tree / "src")
    assert run.call("echo > a.py; echo > ../run.sh").changed == ("a.py", f"{tree}/run.sh")


def test_a_change_with_two_calls_under_way_is_nobodys(looked: Looked, tree: Path) -> None:
    one, two = looked.run("one"), looked.run("two")
    began = time.time()
    two.tell("PreToolUse", tool_name="Bash", tool_use_id="long")
    two.tell("PostToolUse", PATIENCE, tool_name="Read", tool_use_id="short", duration_ms=0)
    assert seen(one.call("echo 1 >> src/a.py")) == NOTHING
    assert two.end("make", began, 0, tool_use_id="long").effects == Effects(exit=0, cwd_before=str(tree))
    # Not at once: the file system's clock ticks some hundred times a second.
    assert seen(one.call("sleep 0.1; echo 1 >> src/a.py")) == ({"src/a.py"}, set(), set())
    assert seen(two.call("sleep 0.1; echo 1 >> src/b.py")) == ({"src/b.py"}, set(), set())


def test_another_agents_running_command_is_known_by_its_process(looked: Looked) -> None:
    one, two = looked.run("one"), looked.run("two")
    with subprocess.Popen(["bash"], stdin=subprocess.PIPE, text=True) as client:
        assert client.stdin is not None
        (two.spool / "client").write_text(f"{client.pid} 1")
        two.prompt()
        assert seen(one.call("echo 1 >> src/a.py")) == ({"src/a.py"}, set(), set())
        client.stdin.write("sleep 1000 & echo $! > pid.tmp; mv pid.tmp pid; wait\n".replace("pid", f"{two.spool}/pid"))
        client.stdin.flush()
        until((two.spool / "pid").exists, "the command runs")
        assert seen(one.call("echo 1 >> src/a.py")) == NOTHING
        os.kill(int((two.spool / "pid").read_text()), signal.SIGKILL)
        client.stdin.close()
    assert seen(one.call("echo 1 >> src/a.py")) == ({"src/a.py"}, set(), set())


def test_what_takes_longer_than_the_agent_may_wait_is_recorded_late(looked: Looked, run: Run) -> None:
    os.kill(looked.process.pid, signal.SIGSTOP)
    began = time.time()
    try:
        Path(run.workdir, "src/a.py").write_text("late\n")
        event = run.end("./edit", began, 0, wait=0.05)
    finally:
        os.kill(looked.process.pid, signal.SIGCONT)
    assert (event.effects, event.awaited) == (None, True)
    until(run.reader.read, "the late record")
    (record,) = SpoolReader(run.spool).read()[-1:]
    assert (record.of, record.payload) == (event.id, {})
    assert record.effects is not None
    assert record.effects.changed == ("src/a.py",)


def test_without_a_looker_nothing_is_said_to_have_been_seen(looked: Looked, run: Run) -> None:
    looked.process.kill()
    looked.process.wait()
    event = run.end("echo 1 >> src/a.py", time.time(), 0)
    assert (event.effects, event.awaited) == (None, False)


def test_foreign_bytes_on_its_socket_do_not_end_it(run: Run) -> None:
    import socket

    for words in (b"", b"\n", b"nonsense\n", b"1-1 0 5\n{", b"1-1 0 99999999999\n{}", b"x" * 3_000_000):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            os.chdir(run.spool)
            peer.connect("effects.look")
            try:
                peer.sendall(words)
            except OSError:
                continue
    os.chdir("/")
    assert seen(run.call("echo 1 >> src/a.py")) == ({"src/a.py"}, set(), set())


# -- the watch alone ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("watches", [True, False])
def test_with_watches_and_without_the_answer_is_the_same(tree: Path, watches: bool) -> None:
    watch = TreeWatch(Tree(str(tree)), watches=watches)
    try:
        assert watch.warm is watches
        for command, files in COMMANDS.items():
            before = time.time()
            subprocess.run(["bash", "-c", command], cwd=tree, check=False, capture_output=True)
            watch.settle()
            changes = watch.changes(before - 0.02)
            kinds = [
                {each.path for each in changes if each.before and each.after},
                {each.path for each in changes if each.before is None},
                {each.path for each in changes if each.after is None},
            ]
            assert tuple(kinds) == files, command
            restore(tree)
            watch.settle()
            watch.forget(0)
    finally:
        watch.close()


def test_nothing_is_lost_when_the_kernels_queue_overflows(tree: Path) -> None:
    watch = TreeWatch(Tree(str(tree)))
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    try:
        before = time.time()
        for count in range(limit):  # each of two names in turn, so that the kernel cannot put equal events together
            with (tree / f"src/{'ab'[count % 2]}.py").open("a") as file:
                file.write("#")
        (tree / "src/last.py").write_text("1")
        watch.settle()
        assert {each.path for each in watch.changes(before - 0.02)} == {"src/a.py", "src/b.py", "src/last.py"}
        (tree / "src/last.py").unlink()
        watch.settle()
        assert "src/last.py" not in {each.path for each in watch.changes(before - 0.02)}
    finally:
        watch.close()


def test_effects_are_read_as_they_were_written() -> None:
    effects = Effects(("a",), ("b",), ("c",), ("b",), 3, 0, "/x")
    assert Effects.from_json(json.loads(json.dumps(effects.to_json()))) == effects
    assert Effects.from_json({"changed": "a"}) is None
    assert Effects.from_json([]) is None
