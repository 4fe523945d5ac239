"""Delivery with the real client and real sidecars: in the very next request, once, in order, whatever comes between."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import PERMITTED, wait_until
from witness.api import Witness
from witness.clock import SystemClock
from witness.config.town import Town
from witness.delivery.nudge_queue import Nudge, NudgeQueue
from witness.events.spool_reader import SpoolReader
from witness.journal import Decision
from witness.testing import Block, MessagesServer, Request, make_town, say, supervised, use

PREFIX = "[sidecar:scope]"


class Scene:
    """A town, its sample repository, and a polecat in it that the script drives."""

    def __init__(self, witness: Witness, town: Town, repo: Path, claude: Path, server: MessagesServer) -> None:
        self.witness, self.town, self.repo, self.claude, self.server = witness, town, repo, claude, server

    def spawn(
        self, *steps: Block | list[Block] | Callable[[Request], Block], sidecars: str = "scope:docs/issue.md"
    ) -> None:
        self.server.play(*steps)
        spawned = self.witness.spawn(
            "toast",
            workdir=self.repo,
            sidecars=sidecars,
            task="do the work",
            agent=shlex.join([str(self.claude), *PERMITTED]),
        )
        self.run, self.session = spawned.group.run, spawned.session
        self.queue = NudgeQueue(self.town.queue_dir(spawned.session), SystemClock())

    def write(self, name: str) -> Block:
        return use("Write", file_path=str(self.repo / name), content="X = 0\n")

    def turn_over(self) -> None:
        """Wait until the agent has come to the end of its script."""
        wait_until(lambda: "Stop" in self.events(), "the end of the turn", 60)

    def events(self) -> list[str]:
        spool = self.town.run_dir(self.run) / "spool"
        return [str(event.payload.get("hook_event_name")) for event in SpoolReader(spool).read(1000)]

    def decisions(self) -> list[Decision]:
        return self.witness.journal.decisions.injected(self.run)

    def told(self, text: str) -> int:
        """How often the model has been told it; the longest conversation holds all the others.

        What a command hook says at a turn's end newer clients repeat themselves, on one line with its command.
        """
        whole = max(self.server.of("main"), key=lambda request: len(request.messages)).text
        return re.sub(r"^Stop hook blocking error from command: .*$", "", whole, flags=re.MULTILINE).count(text)

    def gt(self, *arguments: str) -> str:
        argv = [sys.executable, "-m", "witness.cli", *arguments]
        return subprocess.run(argv, cwd=self.repo, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def scene(
    claude: Path, server: MessagesServer, home: Path, trust: Callable[[Path], Path], tmp_path: Path
) -> Iterator[Scene]:
    town = make_town(tmp_path / "a town")
    repo = trust(town.root / "repo")
    with supervised(town) as witness:
        yield Scene(witness, town, repo, claude, server)


@pytest.mark.timeout(240)
def test_a_hundred_of_a_hundred_are_in_the_very_next_request(scene: Scene) -> None:
    settings = scene.town.root / "settings" / "witness.yaml"
    settings.parent.mkdir()
    settings.write_text("types: {scope: {cap: 1000, duplicate_window: 0s}}\n")
    names = [f"billing/part{number:03d}.py" for number in range(100)]
    scene.spawn(*[scene.write(name) for name in names], say("Fin."))
    scene.server.wait_for_count(101, timeout=200)
    late = []
    for name, request in zip(names, scene.server.of("main")[1:], strict=False):
        if request.news.count(PREFIX) != 1 or f"{PREFIX} {name} " not in request.news:
            late.append((name, request.news[-300:]))
    assert late == []
    scene.turn_over()
    assert scene.told(PREFIX) == 100


def test_three_parallel_calls_are_each_told_once(scene: Scene) -> None:
    names = ["billing/a.py", "billing/b.py", "billing/c.py"]
    scene.spawn([scene.write(name) for name in names], say("Fin."))
    news = scene.server.wait_for_count(2).news
    assert [news.count(f"{PREFIX} {name} ") for name in names] == [1, 1, 1]
    scene.turn_over()
    assert scene.told(PREFIX) == 3


def test_a_failing_bash_is_told_too(scene: Scene) -> None:
    scene.spawn(use("Bash", command="echo x > billing/bad.py; exit 3"), say("Fin."))
    assert f"{PREFIX} billing/bad.py " in scene.server.wait_for_count(2).news
    scene.turn_over()
    assert "PostToolUseFailure" in scene.events()
    assert scene.told(PREFIX) == 1


def test_what_a_subagent_does_is_told_to_the_main_agent(scene: Scene) -> None:
    scene.server.play(scene.write("billing/sub.py"), say("looked around"), kind="subagent")
    scene.spawn(
        use(
            "Agent",
            description="look",
            prompt="look around, subagent",
            subagent_type="general-purpose",
            run_in_background=False,
        ),
        say("Fin."),
    )
    after = scene.server.wait_for(lambda request: request.kind == "main" and PREFIX in request.news)
    assert f"{PREFIX} By subagent general-purpose: billing/sub.py was created" in after.news
    scene.turn_over()
    assert scene.told(PREFIX) == 1
    assert not any(PREFIX in request.text for request in scene.server.of("subagent"))


def own_type(town: Town, name: str, words: str) -> None:
    """A rules sidecar of the town's own that keeps five seconds' distance from others."""
    folder = town.root / ".gt" / "sidecars" / name
    folder.mkdir(parents=True)
    (folder / "sidecar.yaml").write_text(
        "summary: guards\njudge: rules\nargument: none\ntools: [Write]\ngap: 5s\ncooldown: 0s\n"
        f'rules:\n  - {{name: guarded, writes: ["billing/**"], say: "{words}"}}\n'
    )
    (folder / "snippets.yaml").write_text("{}\n")
    (folder / "prompt.md").write_text("Nothing is asked.\n")


def test_two_sidecars_at_once_speak_five_seconds_apart_and_in_order(scene: Scene) -> None:
    names = ["guard", "warden"]
    own_type(scene.town, "guard", "Invoices are computed by another team.")
    own_type(scene.town, "warden", "This folder is generated at night.")
    prefixes = [f"[sidecar:{name}]" for name in names]
    began = time.monotonic()

    def until_told(request: Request) -> Block:
        """The agent works on; each call is a chance to be told."""
        if all(prefix in request.text for prefix in prefixes) or time.monotonic() - began > 40:
            return say("Fin.")
        scene.server.play(until_told)
        return use("Bash", command="sleep 0.5")

    scene.spawn(scene.write("billing/a.py"), until_told, sidecars=",".join(names))
    heard = [scene.server.wait_for(lambda request, of=prefix: of in request.news, 40) for prefix in prefixes]  # type: ignore[misc]
    first, second = sorted(heard, key=lambda request: request.number)
    assert first is scene.server.of("main")[1]
    assert 4.5 < second.arrived - first.arrived < 9
    scene.turn_over()
    decided = [f"[sidecar:{decision.sidecar}]" for decision in scene.decisions()]
    assert decided == [
        prefix for prefix, request in sorted(zip(prefixes, heard, strict=True), key=lambda p: p[1].number)
    ]
    assert [scene.told(prefix) for prefix in prefixes] == [1, 1]


def test_a_nudge_for_an_idle_polecat_arrives_within_five_seconds(scene: Scene) -> None:
    scene.spawn(say("Fin."))
    scene.turn_over()
    wait_until((scene.town.run_dir(scene.run) / "spool" / "idle").exists, "the watch beside the prompt")
    before = time.monotonic()
    scene.queue.enqueue(Nudge("mayor", "there is news", run=scene.run))
    request = scene.server.wait_for(lambda request: "[from mayor] there is news" in request.news)
    assert request.arrived - before < 5
    wait_until(lambda: scene.events().count("Stop") == 2, "the end of the turn")
    assert scene.told("there is news") == 1

    def seen() -> bool:
        scene.witness.patrol()
        return "nudge-seen" in [event.kind for event in scene.witness.journal.history(scene.run)]

    wait_until(seen, "the receipt", 20)


def test_a_restart_of_the_witness_between_enqueue_and_drain_loses_and_doubles_nothing(
    scene: Scene, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    scene.spawn(use("Bash", command=f"until test -e {gate}; do sleep 0.05; done"), say("Fin."))
    wait_until(lambda: "UserPromptSubmit" in scene.events(), "the prompt's event")
    scene.gt("nudge", "toast", "kept through the restart", "--mode", "queue")
    scene.witness.stop()
    scene.witness.start()
    gate.touch()
    assert "kept through the restart" in scene.server.wait_for_count(2).news
    scene.turn_over()
    scene.witness.patrol()
    assert scene.told("kept through the restart") == 1
    assert scene.queue.pending() == []


def test_with_the_witness_down_events_are_recorded_and_nudges_drained(scene: Scene, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    scene.spawn(
        use("Bash", command=f"until test -e {gate}; do sleep 0.05; done"), scene.write("billing/a.py"), say("Fin.")
    )
    wait_until(lambda: "UserPromptSubmit" in scene.events(), "the prompt's event")
    scene.witness.stop()
    scene.gt("nudge", "toast", "nobody is in charge", "--mode", "queue")
    gate.touch()
    assert "nobody is in charge" in scene.server.wait_for_count(2).news
    assert f"{PREFIX} billing/a.py " in scene.server.wait_for_count(3).news
    scene.turn_over()
    assert scene.events().count("PostToolUse") == 2


def test_the_receipt_says_seen(scene: Scene) -> None:
    scene.spawn(scene.write("billing/a.py"), say("Fin."))
    scene.turn_over()

    def seen() -> bool:
        scene.witness.patrol()
        return [decision.stage for decision in scene.decisions()] == ["seen"]

    wait_until(seen, "the receipt", 20)
