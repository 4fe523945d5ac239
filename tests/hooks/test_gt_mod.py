"""The mod's server without a client: this process plays the client, as its parent and as who connects."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import until
from witness.clock import SystemClock
from witness.config.resources import hooks_dir
from witness.delivery import queue_files
from witness.delivery.nudge_queue import Nudge, NudgeQueue
from witness.events.spool_reader import SpoolReader, WakeSocket

SERVER = str(hooks_dir() / "gt_mod.py")
HOOK = str(hooks_dir() / "gt_hook.py")
PYTHON = [sys.executable, "-S", "-I"]


class Mod:
    """What the mod does, in Python.

    Args:
        folder: where the run's files go.
        program: the server; another one to crash it at a place.
    """

    def __init__(self, folder: Path, program: list[str] | None = None, **environment: str) -> None:
        self.spool, self.queue = folder / "run" / "spool", folder / "queue"
        self.spool.mkdir(parents=True, exist_ok=True)
        self.queue.mkdir(exist_ok=True)
        self.environment = {
            "PATH": os.environ["PATH"],
            "GT_WITNESS_GROUP": "main/toast/r1",
            "GT_WITNESS_SPOOL": str(self.spool),
            "GT_WITNESS_QUEUE": str(self.queue),
            "GT_WITNESS_HOOK_WAIT": "100",
            **environment,
        }
        self.nudges = NudgeQueue(self.queue, SystemClock())
        self.process = subprocess.Popen(
            program or [*PYTHON, SERVER], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        self._lines = b""
        self.facts: dict[str, Any] = {}
        self.taken: list[str] = []

    def hear(self, key: str, timeout: float = 20.0) -> Any:
        """The next fact of that name that the server tells of itself."""
        assert self.process.stdout
        deadline = time.monotonic() + timeout
        while True:
            *lines, self._lines = self._lines.split(b"\n")
            for number, line in enumerate(lines):
                fact = json.loads(line)
                self.facts |= fact
                if key in fact:
                    self._lines = b"\n".join([*lines[number + 1 :], self._lines])
                    return fact[key]
            left = deadline - time.monotonic()
            assert select.select([self.process.stdout], [], [], max(left, 0))[0], f"never heard of {key}"
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, f"the server ended with {self.process.wait()} and never told of {key}"
            self._lines += data

    def begin(self) -> Mod:
        """Wait until it answers, and tell it what was used."""
        self.path = self.hear("ready")
        assert self.post("hello", {"taken": self.taken}) == {}
        return self

    def post(self, path: str, body: object = None) -> dict[str, Any] | None:
        """One request; None when the server hung up without an answer."""
        data = json.dumps(body).encode()
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(20)
            try:
                peer.connect(self.path)
                peer.sendall(b"POST /%b HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (path.encode(), len(data), data))
                answer = b""
                while b"\r\n\r\n" not in answer and (part := peer.recv(65536)):
                    answer += part
            except OSError:
                return None
        found = json.loads(answer.partition(b"\r\n\r\n")[2] or b"null")
        assert found is None or isinstance(found, dict)
        return found

    def ask(self, event: dict[str, Any], waited: float = -8.0) -> dict[str, Any] | None:
        """Ask about an event, ``waited`` seconds after the mod began to wait: before it, so that a busy machine does
        not make it late."""
        sent = int((time.time() - waited) * 1000)
        reply = self.post(f"ask/{event['hook_event_name']}/{sent}", event)
        if reply and "more" in reply:
            reply = self.post(f"rest/{reply['more']}/{int((time.time() + 8) * 1000)}")
        return reply

    def hook(self, event: dict[str, Any]) -> str:
        """Run the command hook for an event, as the client does when the mod has no answer; what it tells the model."""
        done = subprocess.run(
            [*PYTHON, HOOK, event["hook_event_name"]], input=json.dumps(event), env=self.environment,
            capture_output=True, text=True, timeout=30, check=True,
        )  # fmt: skip
        if not done.stdout:
            return ""
        answer = json.loads(done.stdout)
        return str(answer.get("reason") or answer["hookSpecificOutput"]["additionalContext"])

    def nudge(self, text: str, sender: str = "sidecar:scope") -> None:
        self.nudges.enqueue(Nudge(sender, text))

    def events(self) -> list[dict[str, Any]]:
        return [event.payload for event in SpoolReader(self.spool).read(1000)]

    def stages(self) -> list[str]:
        ledger = self.queue / queue_files.LEDGER
        lines = ledger.read_text().split("\n") if ledger.exists() else []
        return [json.loads(line)["stage"] for line in lines if line]

    def waiting(self) -> list[str]:
        """Messages that wait, or are claimed by somebody."""
        names = [*queue_files.waiting(str(self.queue)), *queue_files.claims(str(self.queue))]
        return [json.loads((self.queue / name).read_text())["message"] for name in names]

    def end(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()


@pytest.fixture
def mod(tmp_path: Path) -> Iterator[Mod]:
    mod = Mod(tmp_path)
    try:
        yield mod.begin()
    finally:
        mod.end()


def call(number: int = 1, event: str = "PostToolUse", **more: Any) -> dict[str, Any]:
    fields = {"session_id": "s", "hook_event_name": event, "tool_name": "Write", "tool_use_id": f"toolu_{number}"}
    return fields | {"tool_input": {"file_path": "a.py"}, **more}


def test_an_event_is_recorded_and_answered_with_what_waits(mod: Mod) -> None:
    mod.nudge("[sidecar:scope] one")
    assert mod.ask(call()) == {"text": "[sidecar:scope] one", "call": "toolu_1"}
    assert mod.ask(call(2)) == {}
    assert mod.events() == [call(), call(2)]
    assert mod.stages() == ["offered", "drained"]
    assert mod.waiting() == []


def test_a_subagents_event_is_recorded_and_leaves_what_waits_to_the_main_agent(mod: Mod) -> None:
    mod.nudge("for the main agent")
    assert mod.ask(call(agent_id="a1")) == {}
    assert mod.events() == [call(agent_id="a1")]
    assert mod.waiting() == ["for the main agent"]


def test_a_stop_is_turned_into_going_on_once_for_a_turn(mod: Mod) -> None:
    stop = {"session_id": "s", "hook_event_name": "Stop", "prompt_id": "p", "stop_hook_active": False}
    mod.nudge("first")
    assert mod.ask(stop) == {"text": "[from sidecar:scope] first", "call": "Stop:p:0"}
    mod.nudge("second")
    assert mod.ask({**stop, "stop_hook_active": True}) == {}
    assert mod.ask(stop) == {}
    assert mod.waiting() == ["second"]


def test_what_the_mod_waits_for_no_more_is_left_to_the_hook(mod: Mod) -> None:
    mod.nudge("once")
    assert mod.ask(call(), waited=0.06) == {"pass": True}
    assert mod.events() == []
    assert mod.hook(call()) == "[from sidecar:scope] once"
    assert mod.events() == [call()]


def test_an_answer_that_was_dropped_waits_again(mod: Mod) -> None:
    mod.nudge("once")
    assert mod.ask(call())
    assert mod.post("untaken/toolu_1") == {}
    assert mod.waiting() == ["once"]
    assert mod.ask(call(2)) == {"text": "[from sidecar:scope] once", "call": "toolu_2"}


def test_a_sidecar_that_needs_longer_is_waited_for(mod: Mod) -> None:
    """Longer than the mod waits for the first answer; the remark still comes with this very call."""
    told = threading.Event()

    def judge(socket: WakeSocket) -> None:
        select.select([socket], [], [], 20)
        for wake in socket.accept():
            wake.hold()
            told.wait(20)
            mod.nudge("[sidecar:scope] slow")
            wake.answer()

    with WakeSocket(mod.spool, "scope", asked=True) as asked:
        sidecar = threading.Thread(target=judge, args=(asked,))
        sidecar.start()
        reply = mod.post(f"ask/PostToolUse/{int((time.time() + 0.5) * 1000)}", call())
        assert reply
        told.set()
        rest = mod.post(f"rest/{reply['more']}/{int((time.time() + 8) * 1000)}")
        assert rest == {"text": "[sidecar:scope] slow", "call": "toolu_1"}
        sidecar.join()


def test_only_the_client_itself_is_answered(mod: Mod) -> None:
    program = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({mod.path!r}); s.sendall(b'x'); s.recv(9)"
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=False)
    assert other.returncode == 0 or "ConnectionResetError" in other.stderr or "BrokenPipe" in other.stderr
    assert mod.events() == []


@pytest.mark.parametrize("missing", ["GT_WITNESS_SPOOL", "GT_WITNESS_QUEUE"])
def test_outside_of_a_polecat_it_ends_at_once(tmp_path: Path, missing: str) -> None:
    mod = Mod(tmp_path, None, **{missing: ""})
    assert mod.process.wait(20) == 3
    mod.end()


def test_below_a_nested_client_it_ends_at_once(mod: Mod, tmp_path: Path) -> None:
    """The agent has started another client, which inherits all of the polecat's variables."""
    nested = f"import subprocess, sys; sys.exit(subprocess.call({[*PYTHON, SERVER]!r}))"
    done = subprocess.run([sys.executable, "-c", nested], env=mod.environment, timeout=30, check=False)
    assert done.returncode == 3


def test_it_ends_with_its_client(tmp_path: Path) -> None:
    """The client is killed: nothing tells the server but the end of the pipe."""
    marker = tmp_path / "pid"
    folder = tmp_path / "run"
    client = textwrap.dedent(
        f"""
        import subprocess, sys
        child = subprocess.Popen({[*PYTHON, SERVER]!r}, stdout=subprocess.PIPE)
        child.stdout.readline()
        open({str(marker)!r}, "w").write(str(child.pid))
        sys.stdin.read()
        """
    )
    (folder / "spool").mkdir(parents=True)
    environment = {"PATH": os.environ["PATH"], "GT_WITNESS_SPOOL": str(folder / "spool")}
    environment["GT_WITNESS_QUEUE"] = str(tmp_path / "queue")
    process = subprocess.Popen([sys.executable, "-c", client], env=environment, stdin=subprocess.PIPE)
    until(lambda: marker.exists() and marker.read_text(), "the client did not come up")
    server = os.pidfd_open(int(marker.read_text()))
    process.kill()
    process.communicate()
    assert select.select([server], [], [], 10)[0], "the server outlives its client"
    os.close(server)


def test_deep_folders_are_reached_by_a_short_path(tmp_path: Path) -> None:
    mod = Mod(tmp_path / ("deep" * 20) / ("er" * 40))
    try:
        mod.begin()
        assert len(mod.path) < 100
        assert mod.ask(call()) == {}
        assert mod.events() == [call()]
    finally:
        mod.end()


def test_an_idle_agent_is_told_by_a_prompt(tmp_path: Path) -> None:
    mod = Mod(tmp_path, CLAUDE_CODE_ENTRYPOINT="cli")
    try:
        mod.begin()
        assert mod.post("idle") == {}
        mod.nudge("there is news", sender="mayor")
        told = mod.hear("submit")
        assert told["text"] == "[from mayor] there is news"
        assert told["asUser"] is False
        # Printed first, acknowledged then; the queue's lock says when.
        with queue_files.Locked(str(mod.queue), 20):
            assert mod.waiting() == []
        # The client refused it: it waits for the next time that the agent is idle.
        mod.post(f"untaken/{told['call']}")
        assert mod.waiting() == ["there is news"]
        mod.post("idle")
        assert mod.hear("submit")["text"] == "[from mayor] there is news"
    finally:
        mod.end()


@pytest.mark.parametrize(
    ("text", "told", "as_user"),
    [
        ("please look\nat the log", "please look\nat the log", True),
        # The client takes a prompt that begins with a slash for a command, and refuses it from a plugin.
        ("/clear", "[from human] /clear", False),
    ],
)
def test_a_persons_own_nudge_is_their_prompt(tmp_path: Path, text: str, told: str, as_user: bool) -> None:
    mod = Mod(tmp_path, CLAUDE_CODE_ENTRYPOINT="cli")
    try:
        mod.begin()
        mod.nudge(text, sender="human")
        mod.post("idle")
        found = mod.hear("submit")
        assert (found["text"], found["asUser"]) == (told, as_user)
    finally:
        mod.end()


def test_a_headless_agent_is_never_given_a_prompt(tmp_path: Path) -> None:
    mod = Mod(tmp_path, CLAUDE_CODE_ENTRYPOINT="sdk-cli")
    try:
        mod.begin()
        mod.nudge("too late")
        mod.post("idle")
        assert not (mod.spool / "idle").exists()
        assert mod.waiting() == ["too late"]
    finally:
        mod.end()


def test_what_is_noted_again_is_recorded_once(mod: Mod) -> None:
    assert mod.post("note/PostToolUse", call()) == {}
    assert mod.post("again/PostToolUse", call()) == {}
    assert mod.post("again/PostToolUse", call(2)) == {}
    assert mod.events() == [call(), call(2)]


def test_usage_is_kept(mod: Mod) -> None:
    mod.post("usage", {"context": {"percent": 7}, "rateLimits": []})
    assert json.loads((mod.spool / "usage.json").read_text())["context"] == {"percent": 7}


def test_tools_that_no_sidecar_looks_at_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "spool"
    folder.mkdir(parents=True)
    (folder / "scope.passes").write_text('["Glob", "Read"]')
    (folder / "specs.passes").write_text('["Read", "Skill"]')
    mod = Mod(tmp_path)
    try:
        mod.begin()
        assert mod.facts["passes"] == ["Read"]
        # One that has not said what it passes over may look at everything.
        with WakeSocket(folder, "new", asked=True):
            mod.nudge("a reason to look")
            assert mod.hear("passes") == []
    finally:
        mod.end()


# -- crashes -----------------------------------------------------------------------------------------------------------

# Where the server is killed: a function that it calls, and which of its calls that is.
_CRASH = """
import os, signal, sys
sys.path.insert(0, {hooks!r})
import gt_mod, gt_deliver, queue_files, spool_writer

def dies(module, name, when):
    real = getattr(module, name)
    def function(*args, **named):
        before, after = when(*args, **named)
        if before: os.kill(os.getpid(), signal.SIGKILL)
        result = real(*args, **named)
        if after: os.kill(os.getpid(), signal.SIGKILL)
        return result
    setattr(module, name, function)

{point}
os._exit(gt_mod.main())
"""
_STAGE = (
    'dies(queue_files, "log_all", lambda folder, stage, *a, **k: (stage == {stage!r} and {before}, stage == {stage!r}))'
)
_POINTS = {
    "before the record": 'dies(spool_writer, "append_record", lambda *a, **k: (True, True))',
    "after the record": 'dies(spool_writer, "append_record", lambda *a, **k: (False, True))',
    "before the claim": 'dies(queue_files, "claim_due", lambda *a, **k: (True, True))',
    "after the offer": _STAGE.format(stage="offered", before=False),
    "before it is drained": _STAGE.format(stage="drained", before=True),
    "after it is drained": _STAGE.format(stage="drained", before=False),
    "within the end": 'dies(queue_files, "_move_into", lambda *a, **k: (False, True))',
    "after the end": 'dies(queue_files, "finish_all", lambda *a, **k: (False, True))',
}


def crashing(tmp_path: Path, point: str) -> Mod:
    program = _CRASH.format(hooks=str(hooks_dir()), point=_POINTS[point])
    mod = Mod(tmp_path, [*PYTHON, "-c", program])
    return mod.begin()


@pytest.mark.parametrize("point", _POINTS)
def test_killed_anywhere_it_loses_and_doubles_nothing(tmp_path: Path, point: str) -> None:
    """Either the mod has the answer and uses it, or it has none and the command hook does all; never both."""
    mod = crashing(tmp_path, point)
    mod.nudge("[sidecar:scope] once")
    reply = mod.ask(call())
    assert mod.process.wait(20) == -signal.SIGKILL
    mod.end()
    told = [reply["text"]] if reply else [mod.hook(call())]
    successor = Mod(tmp_path)
    try:
        successor.taken = [reply["call"]] if reply else []
        successor.begin()
        more = successor.ask(call(2))
    finally:
        successor.end()
    told += [more["text"]] if more else []
    assert told == ["[sidecar:scope] once"]
    assert [event["tool_use_id"] for event in mod.events()] == ["toolu_1", "toolu_2"]
    assert mod.waiting() == []


def test_killed_with_a_claim_that_nobody_offered_it_waits_again_later(tmp_path: Path) -> None:
    program = _CRASH.format(
        hooks=str(hooks_dir()), point='dies(queue_files, "claim_due", lambda *a, **k: (False, True))'
    )
    mod = Mod(tmp_path, [*PYTHON, "-c", program]).begin()
    mod.nudge("[sidecar:scope] once")
    assert mod.ask(call()) is None
    mod.end()
    assert mod.hook(call()) == ""
    (claimed,) = queue_files.claims(str(mod.queue))
    old = int(time.time() - queue_files.STALE - 60)
    aged = mod.queue / f"{claimed.partition(queue_files.CLAIM)[0]}{queue_files.CLAIM}{old:08x}"
    (mod.queue / claimed).rename(aged)
    os.utime(aged, (old, old))
    assert mod.hook(call(2)) == "[sidecar:scope] once"
    assert mod.waiting() == []


def test_stopped_it_is_passed_by_and_told_nothing_twice_when_it_goes_on(mod: Mod) -> None:
    """Silent, not dead: the request that it reads later finds that nobody waits."""
    mod.nudge("[sidecar:scope] once")
    os.kill(mod.process.pid, signal.SIGSTOP)
    data = json.dumps(call()).encode()
    sent = int(time.time() * 1000)
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(20)
        peer.connect(mod.path)
        peer.sendall(b"POST /ask/PostToolUse/%d HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (sent, len(data), data))
        peer.settimeout(0.05)
        with pytest.raises(TimeoutError):
            peer.recv(1)
        assert mod.hook(call()) == "[sidecar:scope] once"
        os.kill(mod.process.pid, signal.SIGCONT)
        peer.settimeout(20)
        assert b'{"pass": true}' in peer.recv(65536)
    assert mod.events() == [call()]
    assert mod.waiting() == []


def test_with_its_socket_removed_the_hook_does_it(mod: Mod) -> None:
    (mod.spool / "mod.sock").unlink()
    mod.nudge("[sidecar:scope] once")
    assert mod.ask(call()) is None
    assert mod.hook(call()) == "[sidecar:scope] once"
    assert mod.events() == [call()]


def test_two_hooks_of_one_call_behind_a_mod_say_it_once(mod: Mod) -> None:
    """Ours may stand in two settings files; what the first has said is not taken back by the second."""
    mod.nudge("[sidecar:scope] once")
    assert [mod.hook(call()), mod.hook(call())] == ["[sidecar:scope] once", ""]
    assert mod.events() == [call()]
