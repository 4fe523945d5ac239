"""A party held for real: order, rounds, word limits, what is kept when it breaks off, and all of it over HTTP."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecars.llm.client import Endpoint
from sidecars.memory.model import AnthropicModel, ModelError, Tool
from sidecars.memory.store import MemoryStore
from sidecars.party.forms import WORDS, within_words
from sidecars.party.party import MOST_ROUNDS, PARTIES, start_party, write_record
from sidecars.party.reading import read_record
from sidecars.party.record import FOLDER, PartyRecord
from sidecars.party.run import PartyRun
from tests.memory.files import validator
from witness.cli import main
from witness.testing import Answer, MessagesServer, Request, Step, call, fail, message, say, think

_AGENTS = ("ada", "bob", "eve")


class Scripted:
    """Answers each form; what was asked is kept."""

    def __init__(self, **answers: Any) -> None:
        self.asked: list[tuple[str, str, str, str]] = []
        self._answers = answers

    def answer(self, agent: str, briefing: str, prompt: str, form: Tool) -> Mapping[str, Any]:
        self.asked.append((agent, briefing, prompt, form.name))
        given = self._answers.get(form.name, {})
        answer: Mapping[str, Any] = given(agent, prompt) if callable(given) else given
        return answer


def _decision(outcome: str) -> dict[str, Any]:
    return {
        "decision": "One repository.",
        "rationale": "Simpler.",
        "confidence": 0.8,
        "dissent": "Builds.",
        "outcome": outcome,
    }


def _hold(store: MemoryStore, mode: str, speaker: Any, rounds: int = MOST_ROUNDS) -> tuple[PartyRun, list[PartyRecord]]:
    party, briefings = start_party(store, _AGENTS, "one repository or many", mode)
    kept: list[PartyRecord] = []
    run = PartyRun(party, briefings, speaker, kept.append)
    run.hold(rounds)
    return run, kept


def test_a_debate_goes_by_its_rounds_and_ends_with_a_ruling(store: MemoryStore) -> None:
    speaker = Scripted(take_turn={"content": "My case."}, decide=_decision("opponent"))
    run, kept = _hold(store, "debate", speaker, rounds=2)
    assert [(each.round, each.agent, each.type) for each in run.record.contributions] == [
        (1, "ada", "proposition"),
        (1, "bob", "proposition"),
        (1, "eve", "summary"),
        (2, "ada", "rebuttal"),
        (2, "bob", "rebuttal"),
        (2, "eve", "summary"),
        (2, "eve", "ruling"),
    ]
    decision = run.record.decisions[0]
    assert (decision.proponent, decision.opponent, decision.arbitrator) == _AGENTS
    assert decision.outcome == "opponent"
    assert len(kept) >= 7
    validator("party-record")(run.record.to_json())


def test_everybody_hears_what_was_said_before_and_speaks_from_their_own_briefing(store: MemoryStore) -> None:
    speaker = Scripted(take_turn=lambda agent, prompt: {"content": f"{agent} says so."}, decide=_decision("proponent"))
    _hold(store, "debate", speaker, rounds=1)
    assert "Nobody has spoken" in speaker.asked[0][2]
    assert '1 ada (proponent, proposition): "ada says so."' in speaker.asked[1][2]
    assert "You are bob" in speaker.asked[1][1]
    assert "At most 150 words" in speaker.asked[1][2]


@pytest.mark.parametrize(("rounds", "held"), [(0, 1), (2, 2), (9, 3)])
def test_rounds_are_kept_within_their_limit(store: MemoryStore, rounds: int, held: int) -> None:
    run, _ = _hold(store, "discussion", Scripted(take_turn={"content": "Yes."}), rounds)
    assert max(each.round for each in run.record.contributions) == held
    assert len(run.record.contributions) == held * 3


def test_a_consensus_ends_as_soon_as_all_agree(store: MemoryStore) -> None:
    speaker = Scripted(take_turn={"content": "Fine.", "aligned": True}, decide=_decision("consensus"))
    run, _ = _hold(store, "consensus", speaker)
    types = [each.type for each in run.record.contributions]
    assert types == ["position"] * 3 + ["map"] + ["concession"] * 3 + ["synthesis"]
    assert run.record.decisions[0].outcome == "consensus"


def test_a_consensus_that_is_not_reached_stops_after_three_rounds(store: MemoryStore) -> None:
    speaker = Scripted(take_turn={"content": "No."}, decide=_decision("compromise"))
    run, _ = _hold(store, "consensus", speaker)
    assert [each.type for each in run.record.contributions].count("concession") == 9


def test_word_limits_are_kept_whatever_is_said(store: MemoryStore) -> None:
    chatter = "Sure! " + "word " * 400
    speaker = Scripted(take_turn={"content": chatter}, decide={**_decision("proponent"), "decision": chatter})
    for mode in ("discussion", "debate"):
        run, _ = _hold(store, mode, speaker)
        for each in run.record.contributions:
            assert len(each.content.split()) <= WORDS[each.type]
            assert not each.content.startswith("Sure")


@given(st.text(max_size=400), st.integers(1, 30))
def test_the_cut_never_exceeds_the_limit(text: str, words: int) -> None:
    assert len(within_words(text, words).split()) <= words


def test_the_cut_ends_with_a_whole_sentence_where_it_can() -> None:
    assert within_words("One two three. Four five six seven.", 5) == "One two three."
    assert within_words("a b c d e f g", 3) == "a b c…"


def test_nothing_to_say_is_a_pass_in_a_discussion_only(store: MemoryStore) -> None:
    run, _ = _hold(store, "discussion", Scripted(take_turn={"content": ""}))
    assert run.record.contributions == ()
    with pytest.raises(ModelError, match="said nothing"):
        _hold(store, "debate", Scripted(take_turn={"content": " "}))


def test_a_secret_that_is_said_is_neither_kept_nor_passed_on(store: MemoryStore) -> None:
    speaker = Scripted(take_turn={"content": "The password is hunter2."})
    run, _ = _hold(store, "discussion", speaker, rounds=1)
    assert "hunter2" not in str(run.record.to_json())
    assert not any("hunter2" in prompt for _, _, prompt, _ in speaker.asked)


def test_only_others_in_the_room_can_be_agreed_with(store: MemoryStore) -> None:
    turn = {"content": "x", "agrees_with": ["bob", "ada", "joe", "bob", 3], "complements": "bob"}
    run, _ = _hold(store, "discussion", Scripted(take_turn=turn), rounds=1)
    assert run.record.contributions[0].relations == {"agrees_with": ("bob",)}
    assert run.record.contributions[1].relations == {"agrees_with": ("ada",)}


@pytest.mark.parametrize(
    "answer", [{}, {"decision": "x"}, {"decision": "", "outcome": "proponent"}, {"decision": "x", "outcome": "draw"}]
)
def test_a_ruling_that_cannot_be_recorded_is_an_error(store: MemoryStore, answer: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="ruling"):
        _hold(store, "debate", Scripted(take_turn={"content": "x"}, decide=answer))


def test_a_memory_must_quote_what_was_said(store: MemoryStore) -> None:
    def remember(agent: str, prompt: str) -> dict[str, Any]:
        base = {"type": "observation", "basis": "observed"}
        return {
            "memories": [
                {**base, "content": f"{agent} heard it", "evidence": "the split cost a week"},
                {**base, "content": "made up", "evidence": "nobody ever said this"},
                {**base, "content": "no such type", "type": "wish", "evidence": "the split cost a week"},
            ],
            "used": [],
        }

    speaker = Scripted(take_turn={"content": "The split cost a week."}, remember=remember)
    run, _ = _hold(store, "discussion", speaker, rounds=1)
    assert [memory["content"] for memory in run.record.memories] == [f"{agent} heard it" for agent in _AGENTS]


def test_what_was_said_before_a_break_is_kept(store: MemoryStore) -> None:
    def turn(agent: str, prompt: str) -> dict[str, Any]:
        if "bob (opponent, rebuttal)" in prompt:
            raise ModelError("gone")
        return {"content": f"{agent}."}

    party, briefings = start_party(store, _AGENTS, "x", "debate")
    run = PartyRun(party, briefings, Scripted(take_turn=turn), lambda record: write_record(store.root, party, record))
    with pytest.raises(ModelError):
        run.hold()
    path = write_record(store.root, party, run.record)
    kept = read_record(path.read_bytes(), str(path))
    assert [each.type for each in kept.contributions][-2:] == ["rebuttal", "rebuttal"]


def test_a_bad_turn_is_asked_for_once_more_and_then_skipped(store: MemoryStore) -> None:
    answers: dict[str, Iterator[Any]] = {
        "ada": iter(["", "Ada."]),
        "bob": repeat(""),
        "eve": repeat("Eve."),
    }
    party, briefings = start_party(store, _AGENTS, "x", "consensus")
    held = PartyRun(
        party,
        briefings,
        Scripted(
            take_turn=lambda agent, prompt: {"content": next(answers[agent], "Ada."), "aligned": True},
            decide=_decision("compromise"),
        ),
        lambda record: None,
    )
    record = held.hold()
    assert {each.agent for each in record.contributions} == {"ada", "eve"}
    skipped = [each for each in record.extra["turns"] if each["outcome"] == "skipped"]
    assert {each["agent"] for each in skipped} == {"bob"}
    assert "said nothing" in skipped[0]["reason"]
    assert record.decisions


# -- over HTTP --------------------------------------------------------------------------------------------------------


def _forms(script: Callable[[dict[str, Any]], Any]) -> Step:
    """Answers each form as a script says: with its fields behind some thoughts, an error's status, or words."""

    def answer(request: Request) -> Answer:
        given = script(request.body)
        if isinstance(given, int):
            return fail(given)
        said = say(given) if isinstance(given, str) else call(request.forced_tool, given)
        return message(think("hm"), said, usage={"input_tokens": 10, "output_tokens": 5})

    return answer


def _script(request: dict[str, Any]) -> Any:
    name = request["tool_choice"]["name"]
    if name == "decide":
        return _decision("proponent")
    if name == "remember":
        evidence = "One repository is simpler"
        memory = {"type": "context", "content": "one repository was chosen", "basis": "explicit", "evidence": evidence}
        return {"memories": [memory], "used": []}
    others = request["tools"][0]["input_schema"]["properties"]["agrees_with"]["items"]["enum"]
    return {"content": "One repository is simpler.", "agrees_with": others[:1]}


def _run_cli(monkeypatch: pytest.MonkeyPatch, url: str, *arguments: str) -> int:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    monkeypatch.setenv("GT_WITNESS_API_KEY", "key-of-the-sidecars")
    try:
        main(["party", "run", "--agents", "ada,bob,eve", "--topic", "one repository or many", *arguments])
    except SystemExit as error:
        return int(error.code or 0)
    return 0


def test_a_party_is_run_against_a_messages_server_and_saved(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(store.root)
    store.change("ada", "add", "s", {"content": "the repository split cost a week"})
    with MessagesServer(otherwise=_forms(_script)) as server:
        assert _run_cli(monkeypatch, server.url, "--mode", "debate", "--json") == 0
    printed = capsys.readouterr()
    out = json.loads(printed.out)
    assert "13 calls of claude-haiku-5-5, 130 tokens in, 65 out, $0.0000" in printed.err
    assert out["decisions"] == ["DR-001"]
    validator("decision-record")(json.loads((store.root / FOLDER / "DR-001.json").read_text()))
    assert store.read("ada").relationships["agrees_with"] == ("bob",)
    assert {m.content for m in store.read("bob").memories} == {"DR-001: One repository.", "one repository was chosen"}
    # 3 rounds of 3, the ruling, and what each takes home.
    assert len(server.requests) == 13
    assert {request.key for request in server.requests} == {"key-of-the-sidecars"}
    assert "the repository split cost a week" in server.bodies[0]["system"][0]["text"]
    for request in server.bodies:
        assert not {"temperature", "top_p", "top_k"} & request.keys()
        assert [message["role"] for message in request["messages"]] == ["user"]
    assert all(b"key-of-the" not in path.read_bytes() for path in store.root.rglob("*") if path.is_file())


def test_a_server_that_breaks_off_leaves_a_record_that_can_be_saved(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(store.root)
    turns = chain([{"content": "Yes indeed."}] * 4, repeat(400))
    with MessagesServer(otherwise=_forms(lambda _: next(turns))) as server:
        assert _run_cli(monkeypatch, server.url) == 1
    costs, error = capsys.readouterr().err.splitlines()
    # Three turns in a row, each asked for twice.
    assert costs.startswith("10 calls")
    # It was no session, so nothing is nearer to fading by it.
    assert store.read("eve").sessions_participated == 0
    main(["party", "list", "--json"])
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["state"], listed["failed"][:5]) == ("broken off", "claud")
    (line,) = (store.root / PARTIES / "costs.jsonl").read_text().splitlines()
    assert (json.loads(line)["party"], json.loads(line)["calls"]) == (listed["party"], 10)
    command = shlex.split(error.partition("until then: ")[2])
    assert command[:3] == ["gt", "party", "end"]
    main(command[1:])
    assert store.read("eve").sessions_participated == 1


def test_without_a_key_nothing_is_started(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(store.root)
    with pytest.raises(SystemExit) as error:
        main(["party", "run", "--agents", "a,b", "--topic", "x"])
    assert error.value.code == 2
    assert "GT_WITNESS_API_KEY" in capsys.readouterr().err
    assert list(store.root.iterdir()) == []


def test_start_prints_briefings_and_end_takes_the_record(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(store.root)
    main(["party", "start", "--agents", "ada, bob", "--topic", "tabs", "--json"])
    started = json.loads(capsys.readouterr().out)
    assert set(started["briefings"]) == {"ada", "bob"}
    record = store.root / "r.json"
    record.write_text(
        json.dumps(
            {
                "topic": "tabs",
                "mode": "discussion",
                "agents": ["ada", "bob"],
                "contributions": [{"agent": "ada", "content": "Tabs."}],
            }
        )
    )
    main(["party", "end", "--record", str(record)])
    assert "ada: 1 sessions" in capsys.readouterr().out


@pytest.mark.parametrize("answer", [400, "in words", {}])
def test_an_answer_in_no_usable_form_is_one_line(answer: Any) -> None:
    with MessagesServer(otherwise=_forms(lambda _: answer)) as server:
        model = AnthropicModel(Endpoint("k", "claude-haiku-5-5", server.url))
        try:
            if answer == {}:
                assert model.ask("s", "p", Tool("take_turn", "d", {"type": "object"})) == {}
                return
            with pytest.raises(ModelError) as error:
                model.ask("s", "p", Tool("take_turn", "d", {"type": "object"}))
        finally:
            model.close()
    assert len(str(error.value).splitlines()) == 1


def _party_cli(*arguments: str) -> int:
    try:
        main(["party", *arguments])
    except SystemExit as error:
        return int(error.code or 0)
    return 0


def test_a_party_stops_at_its_budget_and_goes_on_where_it_was(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(store.root)
    with MessagesServer(otherwise=_forms(_script)) as server:
        # Two calls of 10 tokens in and 5 out cost more than that.
        assert _run_cli(monkeypatch, server.url, "--mode", "debate", "--budget-usd", "0.00004") == 1
        error = capsys.readouterr().err
        assert "the budget of $4e-05 is spent" in error
        said = len(server.requests)
        assert 1 < said < 13
        assert _party_cli("list") == 0
        assert "broken off" in capsys.readouterr().out
        assert _party_cli("resume", "--json") == 0
        assert json.loads(capsys.readouterr().out)["decisions"] == ["DR-001"]
        assert len(server.requests) == 13
        assert _party_cli("list", "--json") == 0
        (listed,) = json.loads(capsys.readouterr().out)
        assert (listed["state"], listed["failed"]) == ("ended", "")
        assert listed["dollars"] > 0.00004
        assert _party_cli("resume", listed["party"]) == 2
    lines = [json.loads(line) for line in (store.root / PARTIES / "costs.jsonl").read_text().splitlines()]
    assert [line["calls"] for line in lines] == [said, 13 - said]
    assert {store.read(agent).sessions_participated for agent in _AGENTS} == {1}


def test_a_party_stops_at_its_time(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(store.root)
    with MessagesServer(otherwise=_forms(_script)) as server:
        assert _run_cli(monkeypatch, server.url, "--timeout", "1ms") == 1
        assert "the party has taken its 0.001 s" in capsys.readouterr().err
        assert len(server.requests) < 13
    assert store.read("ada").sessions_participated == 0


def test_what_polecats_spend_is_not_ours_to_bound(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(store.root)
    line = ("run", "--agents", "a,b", "--topic", "x", "--polecats", "--budget-usd", "1")
    assert _party_cli(*line) == 2
    assert list(store.root.iterdir()) == []
