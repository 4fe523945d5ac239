"""A count is right, told with what it was counted by, or not told."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from sidecars.distill import distill


def numbers(path: Path, question: str) -> list[int]:
    """What the answer says that it counted."""
    answer = distill([path], question).answer
    told = re.sub(r"`[^`]*`", "", answer.partition("Counted:")[2])
    return [int(each) for each in re.findall(r": (\d+)", told)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """1,000 lines: 40 of level ERROR, of which 10 are timeouts of the payment service; traps beside them."""
    lines = []
    for n in range(1000):
        stamp = f"2025-03-11T06:{n // 60:02}:{n % 60:02}.{n % 1000:03}Z"
        if n % 25 == 0:
            service = "payment" if n % 50 == 0 else "mailer"
            what = "timeout after 30 s" if n % 100 == 0 else "refused"
            lines.append(f"{stamp} ERROR [{service}] {what}, request {n}")
        elif n % 30 == 1:
            lines.append(f"{stamp} INFO  [payment] retried after an error, timeout was 30 s")
        elif n % 30 == 2:
            lines.append(f"{stamp} DEBUG [mailer] the last message said: ERROR in template {n}")
        else:
            lines.append(f"{stamp} INFO  [catalog] stock {n}")
    (tmp_path / "a.log").write_text("\n".join(lines))
    return tmp_path / "a.log"


def test_a_level_is_not_a_word_of_a_message(log: Path) -> None:
    assert numbers(log, "How many ERROR lines are there?")[0] == 40


def test_all_that_was_asked_must_hold(log: Path) -> None:
    assert numbers(log, "How many ERROR lines of the payment service are timeouts?") == [10]
    assert numbers(log, "how many ERROR entries has the mailer?")[0] == 20


@pytest.mark.parametrize(
    "question",
    [
        "How many ERROR lines are not timeouts?",
        "How many seconds did the timeout take on average?",
        "How many more errors than warnings were there?",
        "How many ERROR lines mention the giraffe?",
    ],
)
def test_what_cannot_be_counted_for_certain_is_not_told(log: Path, question: str) -> None:
    assert numbers(log, question) == []


def test_the_pattern_that_is_told_gives_the_number_again(log: Path) -> None:
    answer = distill([log], "How many refused requests of the mailer are there?").answer
    found = re.search(r": (\d+), by `([^`]*)`", answer)
    if found:  # told or not, it must be true
        patterns = [re.compile(each) for each in found[2].split(" & ")]
        lines = log.read_text().splitlines()
        assert sum(all(each.search(line) for each in patterns) for line in lines) == int(found[1])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "orders.csv"
    with path.open("w", newline="") as out:
        rows = csv.writer(out, delimiter=";")
        rows.writerow(["order_id", "state", "method", "reason", "pieces", "note"])
        for n in range(600):
            state = "declined" if n % 3 == 0 else "settled"
            reason = ("expired_card" if n % 2 else "no_funds") if state == "declined" else ""
            note = 'said "declined,\nexpired card" twice' if n % 50 == 0 else ""
            rows.writerow([f"O{n}", state, "card" if n % 4 else "wallet", reason, n % 7, note])
    return path


def test_records_are_counted_by_their_fields(table: Path) -> None:
    assert numbers(table, "How many orders were declined?") == [200]
    assert numbers(table, "How many orders were declined because of an expired card?") == [100]
    assert numbers(table, "How many orders with method wallet have state settled?") == [100]


def test_a_column_of_numbers_is_not_counted_as_records(table: Path) -> None:
    assert numbers(table, "How many pieces were declined?") == []
    assert numbers(table, "How many orders were shipped to Mars?") == []


@pytest.mark.parametrize("indent", [None, 1])
def test_members_of_json_are_counted_with_what_they_are_of(tmp_path: Path, indent: int | None) -> None:
    events = [
        {
            "id": n,
            "error": {"code": "E_DNS" if n % 4 == 0 else "E_TLS", "text": "E_DNS was seen"},
            "hint": {"code": "E_DNS"},
        }
        for n in range(400)
    ]
    (tmp_path / "a.json").write_text(json.dumps({"events": events}, indent=indent))
    assert numbers(tmp_path / "a.json", "How many events have the error code E_DNS?") == [100]
    assert set(numbers(tmp_path / "a.json", "How many events have the code E_DNS?")) == {100, 400}
