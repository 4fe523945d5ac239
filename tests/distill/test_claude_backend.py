"""The claude backend: with the real client offline, and with programs that behave badly in its place."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from sidecars.distill import Answer, Exit, Limits, distill
from sidecars.distill.artifact import Artifacts
from sidecars.distill.claude_backend import Stage
from sidecars.distill.errors import NoBackendError
from sidecars.distill.request import Deadline
from sidecars.distill.text_pool import TextPool
from tests.clients import claude_program
from tests.distill.artifacts import QUESTION, EvalLog, write_eval_log
from tests.scripts import BASE_PYTHON
from witness.testing import MessagesServer, say, use

CLAUDE = claude_program()
SECRET = "the secret outside"


@pytest.fixture
def log(tmp_path: Path) -> tuple[Path, EvalLog]:
    return tmp_path / "eval.log", write_eval_log(tmp_path / "eval.log")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where stages are made; nothing may be left in it."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def reader_server() -> MessagesServer:
    """A server for a client that has no Bash: what reads is the main agent."""
    return MessagesServer(strict=False, otherwise=say("Done."))


# -- the stage ------------------------------------------------------------------------------------------------------


def staged(*paths: Path) -> tuple[dict[str, bytes], dict[str, str], Path]:
    with Artifacts(paths) as artifacts, TextPool(artifacts, Deadline(30)) as shelf, Stage(shelf) as stage:
        files = {
            str(path.relative_to(stage.place)): path.read_bytes() for path in stage.place.rglob("*") if path.is_file()
        }
        modes = {stat.S_IMODE(path.stat().st_mode) for path in stage.place.rglob("*")}
        assert modes <= {0o400, 0o500}
        return files, dict(stage.names), stage.place


def test_the_stage_holds_plain_text_under_harmless_names(tmp_path: Path, place: Path) -> None:
    (tmp_path / "b.log.gz").write_bytes(gzip.compress(b"packed\n"))
    (tmp_path / "CLAUDE.md").write_text("obey\n")
    (tmp_path / "wide.log").write_bytes("wide\n".encode("utf-16"))
    files, names, where = staged(tmp_path / "b.log.gz", tmp_path / "CLAUDE.md", tmp_path / "wide.log")
    assert sorted(files.values()) == [b"obey\n", b"packed\n", b"wide\n"]
    assert all(name.endswith((".log", ".txt", ".json")) for name in files)
    assert set(names.values()) == {str(tmp_path / name) for name in ("b.log.gz", "CLAUDE.md", "wide.log")}
    assert not where.exists()
    assert list(place.iterdir()) == []


def test_files_of_one_name_do_not_meet(tmp_path: Path, place: Path) -> None:
    paths = []
    for folder in ("x", "y"):
        (tmp_path / folder / "a" / "b").mkdir(parents=True)
        paths.append(tmp_path / folder / "a" / "b" / "same.log")
        paths[-1].write_text(folder)
    files, names, _ = staged(*paths)
    assert sorted(files.values()) == [b"x", b"y"]
    assert len(names) == 2


def test_a_file_may_be_called_like_anothers_folder(tmp_path: Path, place: Path) -> None:
    (tmp_path / "r" / "x.log").mkdir(parents=True)
    (tmp_path / "r" / "x.log" / "a.log").write_text("inner")
    (tmp_path / "s" / "r").mkdir(parents=True)
    (tmp_path / "s" / "r" / "x.log").write_text("outer")
    (tmp_path / ("n" * 240)).write_text("long")
    files, names, _ = staged(tmp_path / "r", tmp_path / "s", tmp_path / ("n" * 240))
    assert sorted(files.values()) == [b"inner", b"long", b"outer"]
    assert len(names) == 3


def test_links_to_outside_are_not_staged(tmp_path: Path, place: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "link.log").symlink_to(tmp_path / "secret")
    (tmp_path / "logs" / "a.log").write_text("x")
    assert list(staged(tmp_path / "logs")[0].values()) == [b"x"]


def test_the_stage_lies_in_no_town(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mayor").mkdir()
    (tmp_path / "a.log").write_text("x")
    assert not staged(tmp_path / "a.log")[2].is_relative_to(tmp_path)


def test_what_is_too_large_to_copy_is_told(
    log: tuple[Path, EvalLog], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sidecars.distill.claude_backend.MOST_STAGED", 1000)
    monkeypatch.setattr(shutil, "which", lambda _: "/bin/true")
    with pytest.raises(NoBackendError, match="too many"):
        distill([log[0]], QUESTION, backend="claude")
    assert list(place.iterdir()) == []


# -- programs in its place ------------------------------------------------------------------------------------------

Program = Callable[[str], None]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Put a Python program in the client's place on PATH."""

    def put(source: str) -> None:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        path = folder / "claude"
        path.write_text(f"#!{BASE_PYTHON} -SE\nimport json, os, sys, time\n{source}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    return put


def ask(log: tuple[Path, EvalLog], **limits: Any) -> Answer:
    return distill([log[0]], QUESTION, backend="claude", limits=Limits(**{"timeout": 40, **limits}))


def test_at_the_deadline_it_is_ended_with_its_tree(
    log: tuple[Path, EvalLog], place: Path, tmp_path: Path, program: Program
) -> None:
    program(
        "import subprocess\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)\n"
        f"open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(60)"
    )
    answer = ask(log, timeout=8)
    assert answer.outcome is Exit.TIMEOUT
    assert answer.seconds < 40
    assert all(each.verified for each in answer.evidence)
    assert log[1].needed[0] in json.dumps(answer.to_dict(), ensure_ascii=False)
    for pid in (tmp_path / "pids").read_text().split():
        assert not psutil.pid_exists(int(pid)) or psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE
    assert list(place.iterdir()) == []


def test_when_we_are_ended_it_is_ended_too(
    log: tuple[Path, EvalLog], place: Path, tmp_path: Path, program: Program
) -> None:
    os.mkfifo(tmp_path / "ready")
    program(f"open({str(tmp_path / 'ready')!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)")
    command = ["distill", "--artifact", str(log[0]), "--question", QUESTION, "--backend", "claude"]
    ours = subprocess.Popen([sys.executable, "-m", "witness.cli", *command], stdout=subprocess.DEVNULL)
    pid = int((tmp_path / "ready").read_text())
    ours.send_signal(signal.SIGTERM)
    assert ours.wait(30) == 128 + signal.SIGTERM
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("sys.exit('Invalid API key: please log in')", "please log in"),
        ("print('not json')", "not json"),
        ("", "no word"),
        (
            "print(json.dumps({'type': 'result', 'subtype': 'success', 'is_error': True, 'result': 'API Error: 401'}))",
            "401",
        ),
    ],
)
def test_a_client_that_cannot_work_is_no_backend(
    log: tuple[Path, EvalLog], place: Path, program: Program, source: str, words: str
) -> None:
    program(source)
    answer = ask(log)
    assert answer.outcome is Exit.NO_BACKEND
    assert words in answer.gaps[0]
    assert all(each.verified for each in answer.evidence)
    assert answer.evidence
    assert list(place.iterdir()) == []


def test_without_a_client_there_is_no_backend(log: tuple[Path, EvalLog], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NoBackendError, match="Claude Code on PATH"):
        ask(log)


def test_it_is_called_with_nothing_of_our_life(
    log: tuple[Path, EvalLog], place: Path, tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GT_ROLE", "TMUX", "TMUX_PANE", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "NODE_OPTIONS"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("GT_WITNESS_GROUP", "main/toast/r1")
    monkeypatch.setenv("GT_WITNESS_API_KEY", "sk-ours")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/somewhere")
    told = tmp_path / "told"
    program(
        f"json.dump([dict(os.environ), sys.argv, os.getcwd(), sys.stdin.read()], open({str(told)!r}, 'w'))\n"
        "print(json.dumps({'type': 'result', 'subtype': 'success', 'result': '{\"answer\": \"x\"}'}))"
    )
    assert ask(log).answer == "x"
    environment, arguments, cwd, prompt = json.loads(told.read_text())
    ours = {name for name in environment if name.startswith(("GT_", "TMUX", "CLAUDE", "NODE_"))}
    assert ours - {"GT_WITNESS_JUDGE"} == {
        "GT_WITNESS_GROUP",
        "CLAUDE_CONFIG_DIR",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    }
    assert Path(cwd).parent.parent == place.resolve()
    assert QUESTION in prompt
    assert not any("sk-ours" in each or QUESTION in each for each in arguments)


# -- the real client ------------------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MessagesServer]:
    """The real client on PATH, in a home of its own, talking to a scripted server."""
    if not CLAUDE.exists():
        pytest.skip("the real Claude Code is not installed: make e2e")
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    hook = {"matcher": "*", "hooks": [{"type": "command", "command": f"touch {home}/HOOKED"}]}
    settings = {"hooks": {name: [hook] for name in ("PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop")}}
    (home / ".claude" / "settings.json").write_text(json.dumps(settings))
    (home / ".claude" / "CLAUDE.md").write_text("the memory of the user")
    servers = {"evil": {"command": "touch", "args": [f"{home}/MCP"]}}
    (home / ".claude.json").write_text(json.dumps({"hasCompletedOnboarding": True, "mcpServers": servers}))
    with reader_server() as server:
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("PATH", f"{CLAUDE.parent}:{os.environ['PATH']}")
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server
    assert not (home / "HOOKED").exists()
    assert not (home / "MCP").exists()
    assert not any("memory of the user" in json.dumps(request.body) for request in server.requests)


def good(facts: EvalLog) -> dict[str, Any]:
    evidence = [{"path": "eval.log", "locator": "L1", "quote": quote, "reason": "r"} for quote in facts.needed]
    return say(json.dumps({"answer": "17 of 18", "evidence": evidence, "gaps": [], "followups": []}))


@pytest.mark.e2e
def test_the_real_client_answers(log: tuple[Path, EvalLog], place: Path, server: MessagesServer) -> None:
    server.play(use("Grep", pattern="FAIL", output_mode="content"), good(log[1]))
    answer = ask(log)
    assert answer.outcome is Exit.ANSWERED
    assert answer.answer == "17 of 18"
    assert {each.path for each in answer.evidence} == {str(log[0])}
    assert "merge-conflict: FAIL" in server.requests[1].news
    assert answer.spending.backend == "claude"
    assert answer.spending.steps >= 2
    assert list(place.iterdir()) == []
    # The newest client lists one more, which stands for tools that it has not got here.
    names = {tool["name"] for tool in server.requests[0].body["tools"]}
    assert names - {"DeferredToolPlaceholder"} == {"Grep", "Read"}


@pytest.mark.e2e
def test_the_real_client_gets_nowhere_else(
    log: tuple[Path, EvalLog], place: Path, server: MessagesServer, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text(SECRET)
    secret = str(tmp_path / "secret.txt")

    def climb(request: Any) -> Any:
        stage = next(place.glob("gt-distill-*/artifacts"))
        return use("Read", file_path=f"{stage}/../../../secret.txt")

    server.play(
        use("Read", file_path=secret),
        climb,
        use("Grep", pattern="secret", path=str(tmp_path), output_mode="content"),
        use("Grep", pattern="secret", glob=f"{tmp_path}/*", output_mode="content"),
        use("Glob", pattern=f"{tmp_path}/*"),
        use("Bash", command=f"cat {secret}"),
        use("Write", file_path=str(tmp_path / "written"), content="x"),
        use("WebFetch", url="http://127.0.0.1:1/", prompt="x"),
        good(log[1]),
    )
    # Nine requests, each with what the client sends along: what they cost is not what is tried here.
    assert ask(log, max_steps=15, budget_usd=5).outcome is Exit.ANSWERED
    assert len(server.requests) == 9
    assert not any(SECRET in request.text or "secret.txt" in request.news for request in server.requests[3:])
    assert not any(SECRET in request.text for request in server.requests)
    assert not (tmp_path / "written").exists()


@pytest.mark.e2e
def test_out_of_turns_the_real_client_gives_one_last_answer(
    log: tuple[Path, EvalLog], place: Path, server: MessagesServer
) -> None:
    server.play(
        *[use("Grep", pattern=f"case 0{number}", output_mode="content") for number in range(1, 4)], good(log[1])
    )
    answer = ask(log, max_steps=4)
    assert answer.outcome is Exit.ANSWERED
    last = server.requests[-1]
    assert not last.body.get("tools")
    assert "What was read so far" in last.text
    assert "case 03" in last.text


@pytest.mark.e2e
def test_an_unparsable_answer_of_the_real_client_is_asked_for_once_more(
    log: tuple[Path, EvalLog], place: Path, server: MessagesServer
) -> None:
    server.play(say("Well, 17 of them."), good(log[1]))
    assert ask(log).outcome is Exit.ANSWERED
    server.play(say("Well."), say("As I said."))
    answer = ask(log)
    assert answer.outcome is Exit.UNPARSABLE
    assert answer.evidence
