"""A sidecar that asks a model, beside the real client: the contradiction is known before the work goes on."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients import claude_program, versions
from tests.e2e.conftest import PERMITTED, wait_until
from witness.journal import GroupState
from witness.testing import Block, MessagesServer, Request, make_town, say, supervised, use

# Of the sample repository's docs/api-spec.md.
SENTENCE = "Input that breaks a rule is answered with status **422**"


def test_what_the_model_finds_is_in_the_agents_next_request(
    claude: Path, server: MessagesServer, home: Path, trust: Callable[[Path], Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    town = make_town(tmp_path / "town")
    repo = trust(town.root / "repo")
    monkeypatch.setenv("GT_WITNESS_API_KEY", "sk-sidecars-own")
    asked: list[str] = []

    def judge(request: Request) -> Block:
        asked.append(request.text)
        return use(
            "report_signal", evidence="status = 400", source_quote=SENTENCE, confidence="high", snippet=None,
            signal=True,
            message="orders/http.py answers 400; docs/api-spec.md, Errors, says 422.",
        )  # fmt: skip

    def go_on(_: Request) -> Block:
        wait_until(lambda: any((town.queue_dir("gt-toast")).glob("*.json")), "the sidecar's word")
        return use("Bash", command="echo the tests have passed")

    server.play(judge, kind="judge")
    server.play(
        use("Write", file_path=str(repo / "orders" / "http.py"), content="status = 400\n"),
        go_on,
        use("Bash", command="gt done"),
        say("Done."),
    )
    with supervised(town) as witness:
        spawned = witness.spawn(
            "toast",
            workdir=repo,
            sidecars="specs:docs/api-spec.md",
            task="Answer bad orders.",
            agent=shlex.join([str(claude), *PERMITTED]),
        )
        told = server.wait_for(lambda request: "[sidecar:specs]" in request.news)
        wait_until(
            lambda: (now := witness.journal.groups.get(spawned.group.run)) and now.state is GroupState.NUKED,
            "the Witness to end the group",
        )
        (decision,) = witness.journal.decisions.injected(spawned.group.run)
    assert "the tests have passed" in told.news
    assert "says 422" in told.news
    assert "status = 400" in asked[0]
    assert decision.usage is not None
    assert (decision.usage.calls, decision.usage.model) == (1, "claude-haiku-5-5")
    # The sidecars' key is the sidecars' own: the agent never had it.
    assert "sk-sidecars-own" not in server.of("main")[0].text


def test_without_a_key_the_agents_own_client_is_asked_where_the_settings_say_so(
    server: MessagesServer, home: Path, trust: Callable[[Path], Path], tmp_path: Path
) -> None:
    newest = claude_program(versions()["CLAUDE_NEWEST"])
    if not newest.exists():
        pytest.skip(f"not installed: .ci/need-claude {versions()['CLAUDE_NEWEST']}")
    town = make_town(tmp_path / "town")
    repo = trust(town.root / "repo")
    (town.root / "settings").mkdir()
    (town.root / "settings" / "witness.yaml").write_text(
        "client_model: claude-haiku-5-5\ntypes: {specs: {judge: client}}\n"
    )
    asked: list[Request] = []

    def judge(request: Request) -> Block:
        asked.append(request)
        report = {
            "evidence": "status = 400", "source_quote": SENTENCE, "confidence": "high", "snippet": None, "signal": True,
            "message": "orders/http.py answers 400; docs/api-spec.md, Errors, says 422.", "action": 1,
        }  # fmt: skip
        return say(json.dumps(report))

    def go_on(_: Request) -> Block:
        wait_until(lambda: any((town.queue_dir("gt-toast")).glob("*.json")), "the sidecar's word")
        return use("Bash", command="echo the tests have passed")

    server.play(judge, kind="judge")
    server.play(use("Write", file_path=str(repo / "orders" / "http.py"), content="status = 400\n"), go_on, say("Done."))
    with supervised(town) as witness:
        spawned = witness.spawn(
            "toast",
            workdir=repo,
            sidecars="specs:docs/api-spec.md",
            task="Answer bad orders.",
            agent=shlex.join([str(newest), *PERMITTED]),
        )
        told = server.wait_for(lambda request: "[sidecar:specs" in request.news)
        (decision,) = witness.journal.decisions.injected(spawned.group.run)
    assert "says 422" in told.news
    assert len(asked) == 1
    assert asked[0].key == server.of("main")[0].key, "the client asks as it asks for its user"
    assert decision.usage is not None
    assert (decision.usage.calls, decision.usage.model) == (1, "claude-haiku-5-5")
    assert decision.usage.output_tokens > 0
