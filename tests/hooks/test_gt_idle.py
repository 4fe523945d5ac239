"""The watch beside an idle agent's prompt."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hooks.test_gt_hook import HOOK, Polecat
from tests.waiting import until


class Watch:
    """The watch in a process of its own, below a client that can be ended."""

    def __init__(self, polecat: Polecat) -> None:
        self.polecat = polecat
        environ = {**polecat.environ, "CLAUDE_CODE_ENTRYPOINT": "cli", "AI_AGENT": "claude-code_2-1-197_harness"}
        self.process = subprocess.Popen(
            [*HOOK, "Idle"], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def begun(self) -> Watch:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"hook_event_name": "Stop", "session_id": "s"}).encode())
        self.process.stdin.close()
        self.process.stdin = None
        mine = self.polecat.spool / "idle"
        until(lambda: mine.exists() and mine.read_text() == str(self.process.pid), "the watch did not begin")
        return self

    def end(self) -> tuple[int, str]:
        out, err = self.process.communicate(timeout=15)
        assert out == b""
        return self.process.returncode, err.decode()


@pytest.fixture
def polecat(tmp_path: Path) -> Polecat:
    polecat = Polecat(tmp_path)
    polecat.queue.folder.mkdir()
    return polecat


@pytest.fixture
def watch(polecat: Polecat) -> Iterator[Watch]:
    watch = Watch(polecat)
    yield watch
    if watch.process.poll() is None:
        watch.process.kill()
    watch.process.communicate()


def test_a_nudge_wakes_the_agent_with_its_text(polecat: Polecat, watch: Watch) -> None:
    watch.begun()
    before = time.monotonic()
    polecat.say("[sidecar:scope] there is more")
    assert watch.end() == (2, "[sidecar:scope] there is more\n")
    assert time.monotonic() - before < 5
    assert [fact["event"] for fact in polecat.facts()] == ["Idle"]
    assert not (polecat.spool / "idle").exists()


def test_a_new_turn_ends_the_watch(polecat: Polecat, watch: Watch) -> None:
    watch.begun()
    polecat.run("UserPromptSubmit")
    polecat.say("for the turn itself")
    assert watch.end() == (0, "")
    assert len(polecat.queue.pending()) == 1


def test_a_subagents_event_does_not_end_it(polecat: Polecat, watch: Watch) -> None:
    watch.begun()
    polecat.run("PostToolUse", {"agent_id": "a1"})
    polecat.run("SubagentStop", {"agent_id": "a1"})
    polecat.say("hello")
    assert watch.end()[0] == 2


def test_a_later_watch_takes_over(polecat: Polecat, watch: Watch) -> None:
    watch.begun()
    later = Watch(polecat).begun()
    assert watch.end() == (0, "")
    polecat.say("hello")
    assert later.end()[0] == 2


def test_it_does_not_outlive_its_client(polecat: Polecat, tmp_path: Path) -> None:
    environ = {**polecat.environ, "CLAUDE_CODE_ENTRYPOINT": "cli", "AI_AGENT": "claude-code_2-1-197_harness"}
    client = subprocess.Popen(
        ["sh", "-c", '"$@" </dev/null & wait', "client", *HOOK, "Idle"], env=environ, stderr=subprocess.PIPE
    )
    assert client.stderr
    mine = polecat.spool / "idle"
    until(lambda: mine.exists() and mine.read_text(), "the watch did not begin")
    os.kill(client.pid, signal.SIGKILL)
    client.wait()
    # The watch holds the pipe's other end: its end is the pipe's.
    assert client.stderr.read() == b""
    client.stderr.close()


@pytest.mark.parametrize(
    "variables",
    [
        {"CLAUDE_CODE_ENTRYPOINT": "sdk-cli", "AI_AGENT": "claude-code_2-1-197_harness"},
        {"AI_AGENT": "claude-code_2-1-197_harness"},
        {"CLAUDE_CODE_ENTRYPOINT": "cli", "AI_AGENT": "claude-code_2-1-9_harness"},
        {"CLAUDE_CODE_ENTRYPOINT": "cli", "AI_AGENT": "claude-code_next_harness"},
        {"CLAUDE_CODE_ENTRYPOINT": "cli"},
    ],
)
def test_without_a_prompt_to_sit_at_there_is_no_watch(polecat: Polecat, variables: dict[str, str]) -> None:
    polecat.say("hello")
    ran = polecat.run("Idle", env={**polecat.environ, **variables})
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    assert len(polecat.queue.pending()) == 1
