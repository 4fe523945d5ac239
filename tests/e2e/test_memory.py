"""A polecat whose second run opens with what its first run learned, with the real client."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from sidecars.memory.briefing import polecat_briefing
from sidecars.memory.learn import transcript_text
from sidecars.memory.sessions import environment, with_memory_hooks
from sidecars.memory.store import MemoryStore
from tests.e2e.conftest import PERMITTED, Session, wait_until
from witness.agents.hook_settings import session_settings
from witness.api import Witness
from witness.cli.memory_options import memory_provider
from witness.clock import SystemClock
from witness.delivery.nudge_queue import Nudge, NudgeQueue
from witness.journal import GroupState
from witness.names import GroupId
from witness.testing import Block, MessagesServer, Request, make_town, say, supervised, use

_FACT = "the queue drops messages above 64 KB"


def _says(text: str, request: Request) -> bool:
    return text in request.news


def _gt(*arguments: str) -> str:
    return shlex.join([sys.executable, "-m", "witness.cli", *arguments])


def _run(witness: Witness, server: MessagesServer, claude: Path, repo: Path, run: str) -> Request:
    """One life of the polecat, to its end; its first request."""
    before = len(server.of("main"))
    spawned = witness.spawn(
        "toast",
        workdir=repo,
        task=f"{run}: mend the queue",
        agent=shlex.join([str(claude), *PERMITTED]),
        memory="ada",
        memory_provider=memory_provider,
    )

    def ended() -> bool:
        group = witness.journal.groups.get(spawned.group.run)
        return group is not None and group.state is GroupState.NUKED

    wait_until(ended, "the Witness to end the group")
    return server.of("main")[before]


def test_the_first_request_of_run_two_holds_what_run_one_learned(
    claude: Path, server: MessagesServer, home: Path, trust: Callable[[Path], Path], tmp_path: Path
) -> None:
    town = make_town(tmp_path / "a town")
    repo = trust(town.root / "repo")
    store = MemoryStore(repo)
    server.play(
        use("Bash", command=_gt("memory", "add", "ada", _FACT, "--basis", "explicit", "--type", "context")),
        use("Bash", command=_gt("done")),
        say("Done."),
        use("Bash", command=_gt("done")),
        say("Done."),
    )
    with supervised(town) as witness:
        first = _run(witness, server, claude, repo, "one")
        assert "gt memory add ada" in first.text
        assert "persistent memory" not in first.text
        second = _run(witness, server, claude, repo, "two")
    assert "Your persistent memory from previous sessions" in second.text
    assert f'"{_FACT}"' in second.text
    # The client tells its end; where it was killed before it could, the next start of the same polecat finds it.
    third = memory_provider("ada", GroupId("main", "toast", "three"), repo, "")
    assert _FACT in third.briefing
    assert store.read("ada").sessions_participated == 2


def test_a_running_session_is_told_at_its_next_step(session: Session, server: MessagesServer, work: Path) -> None:
    """As ``gt memory load ada --target toast`` does it: through the queue that the hooks drain."""
    store = MemoryStore(work)
    store.change("ada", "add", "before", {"content": _FACT})

    def tell(request: Request) -> Block:
        queue = NudgeQueue(session.queue, SystemClock())
        queue.enqueue(Nudge("memory", polecat_briefing(store.read("ada")), kind="memory", thread_id="ada"))
        return use("Bash", command="true")

    server.play(tell, say("Done."))
    session.headless()
    first, second = server.of("main")
    assert _FACT not in first.text
    assert f'"{_FACT}"' in second.news
    assert "</memory>" in second.news


def test_the_clients_own_transcript_can_be_learned_from(
    session: Session, server: MessagesServer, work: Path, home: Path
) -> None:
    server.play(use("Bash", command="echo the deploy is on Fridays"), say("It is on Fridays."))
    session.headless("when is the deploy?")
    (path,) = home.glob(".claude/projects/*/*.jsonl")
    lines = transcript_text(path).splitlines()
    assert any(line.startswith("user: ") and "when is the deploy?" in line for line in lines)
    assert any(line.startswith("assistant: Bash ") and "echo the deploy" in line for line in lines)
    assert "user: the deploy is on Fridays" in lines
    assert "assistant: It is on Fridays." in lines


def test_after_a_compaction_the_memory_is_told_anew(session: Session, server: MessagesServer, work: Path) -> None:
    store = MemoryStore(work)
    store.change("ada", "add", "main", {"content": _FACT})
    session.settings.write_text(json.dumps(with_memory_hooks(session_settings(), "ada")))
    session.environment |= environment(work, "ada")
    session.start()
    # The client compacts only what is long enough to be worth it.
    for number in range(1, 6):
        session.type(f"say hello {number}")
        server.wait_for(partial(_says, f"say hello {number}"))
        wait_until(session.idle, "the end of the turn")
    session.type("/compact")
    # Before it is compacted the journal is in the file.
    wait_until(lambda: not store.place("ada").journal.exists(), "the fold")
    wait_until(session.idle, "the end of the compaction")
    session.type("go on")
    request = server.wait_for(lambda request: "go on" in request.news)
    assert "say hello 1" not in request.text
    assert f'"{_FACT}"' in request.text
