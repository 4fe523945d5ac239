"""The table of a party: turns are fetched and answered by commands, in the form that was asked for."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from sidecars.memory.learn import REMEMBER
from sidecars.memory.model import ModelError
from sidecars.memory.store import MemoryStore
from sidecars.party.forms import decision_form, described, faults, turn_form
from sidecars.party.party import start_party
from sidecars.party.turn_mailbox import Table, TableSpeaker
from witness.cli import main
from witness.clock import ManualClock, SystemClock
from witness.errors import UsageError

_FORM = turn_form(("bob",))


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ({"content": "x"}, ""),
        ({"content": "x", "agrees_with": ["bob"], "aligned": True, "more": 1}, ""),
        ([], "an object"),
        ({}, "content is missing"),
        ({"content": 3}, "a string"),
        ({"content": "x", "agrees_with": "bob"}, "an array"),
        ({"content": "x", "agrees_with": ["eve"]}, "one of bob"),
        ({"content": "x", "aligned": "yes"}, "a boolean"),
    ],
)
def test_an_answer_is_held_against_its_form(answer: Any, fault: str) -> None:
    found = list(faults(answer, _FORM.schema))
    assert (fault in found[0]) if fault else found == []


def test_numbers_lists_and_nested_objects_are_checked() -> None:
    good = {"decision": "d", "rationale": "r", "confidence": 1, "dissent": "", "outcome": "proponent"}
    schema = decision_form(("proponent",)).schema
    assert list(faults(good, schema)) == []
    assert list(faults({**good, "confidence": True}, schema)) == ["answer.confidence must be a number"]
    many = {"memories": [{"type": "wish", "content": "x", "basis": "observed", "evidence": "e"}] * 6, "used": []}
    assert "has 6 entries, at most 5" in next(faults(many, REMEMBER.schema))
    assert "answer.memories[0].type must be one of" in list(faults(many, REMEMBER.schema))[1]


def test_a_form_is_told_in_words() -> None:
    lines = list(described(_FORM.schema))
    assert lines[0] == "content: string, required"
    assert lines[1].startswith("agrees_with: list of one of bob, whom")
    assert any(line.startswith("  each content: string, required") for line in described(REMEMBER.schema))


def test_only_whose_turn_it_is_can_answer_and_only_once(tmp_path: Path) -> None:
    table = Table(tmp_path, "party-1")
    ask = table.ask("ada", "Speak.", _FORM)
    assert table.turn_of("bob") is None
    with pytest.raises(UsageError, match="not bob's turn"):
        table.answer("bob", {"content": "x"})
    with pytest.raises(UsageError, match="content is missing"):
        table.answer("ada", {})
    assert table.answered(ask) is None
    assert "Speak." in table.turn_of("ada").text()  # type: ignore[union-attr]
    table.answer("ada", {"content": "x"})
    assert table.answered(ask) == {"content": "x"}
    with pytest.raises(UsageError, match="not ada's turn"):
        table.answer("ada", {"content": "y"})


def test_a_party_name_cannot_lead_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        Table(tmp_path, "../x")


def test_the_holder_waits_for_the_answer(tmp_path: Path) -> None:
    table, clock = Table(tmp_path, "party-1"), SystemClock()

    def guest() -> None:
        assert table.wait_for_turn("ada", clock, 20) is not None
        table.answer("ada", {"content": "x"})

    thread = threading.Thread(target=guest)
    thread.start()
    try:
        assert TableSpeaker(table, clock, lambda agent: True, 20).answer("ada", "", "Speak.", _FORM) == {"content": "x"}
    finally:
        thread.join()


def test_a_guest_that_is_gone_or_silent_ends_the_wait(tmp_path: Path) -> None:
    table = Table(tmp_path, "party-1")
    with pytest.raises(ModelError, match="ended before"):
        TableSpeaker(table, ManualClock(), lambda agent: False, 20).answer("ada", "", "Speak.", _FORM)
    with pytest.raises(ModelError, match="did not answer within 0 s"):
        TableSpeaker(table, ManualClock(), lambda agent: True, 0).answer("ada", "", "Speak.", _FORM)


def test_nobody_waits_when_it_is_over(tmp_path: Path) -> None:
    table = Table(tmp_path, "party-1")
    table.close()
    assert table.wait_for_turn("ada", ManualClock(), 1e9) is None


def test_the_commands_of_a_guest(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    party, _ = start_party(store, ("ada", "bob"), "x", "discussion")
    table = Table(store.root, party.id)
    monkeypatch.chdir(store.root)
    monkeypatch.setenv("GT_PARTY", party.id)
    monkeypatch.setenv("GT_PARTY_AGENT", "ada")

    def gt(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        try:
            main(["party", *arguments])
            code = 0
        except SystemExit as error:
            code = int(error.code or 0)
        return (code, *capsys.readouterr())

    assert gt("turn", "--wait", "0s")[1] == "Not your turn yet. Run again: gt party turn\n"
    ask = table.ask("ada", "Speak.", _FORM)
    told = gt("turn")[1]
    assert told.startswith("Speak.")
    assert "gt party answer <<'ANSWER'" in told
    assert gt("answer", stdin="I speak")[0] == 2
    assert gt("answer", stdin="{}") == (2, "", "gt: answer.content is missing\n")
    table.close()
    assert gt("answer", stdin=json.dumps({"content": "x"})) == (0, "The party is over. Run: gt done\n", "")
    assert table.answered(ask) == {"content": "x"}
    assert gt("turn", "--wait", "soon")[0] == 2
