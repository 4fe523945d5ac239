from __future__ import annotations

from pathlib import Path

from witness.journal import Decision, Group, GroupState, Journal
from witness.names import GroupId
from witness.supervise.delivery_round import prompt_line


def test_it_counts_what_was_reported_said_and_seen(tmp_path: Path) -> None:
    group = Group(GroupId("main", "toast", "r"), "s", GroupState.RUNNING, "b", 0.0, 0.0, "/w")
    found = [
        ("specs", "silent", ""),
        ("scope", "injected", "seen"),
        ("scope", "injected", "drained"),
        ("scope", "refused", ""),
    ]
    with Journal(tmp_path / "witness.db") as journal:
        journal.groups.add(group)
        assert prompt_line(group, journal.decisions.tally("r")) == "gt main/toast RUNNING"
        for number, (sidecar, outcome, stage) in enumerate(found):
            journal.decisions.add(
                Decision(
                    id=f"d{number}", run="r", sidecar=sidecar, time=0.0, monotonic=0.0, outcome=outcome, stage=stage,
                    line=f"d{number}",
                )
            )  # fmt: skip
        tally = journal.decisions.tally("r")
    assert prompt_line(group, tally) == "gt main/toast RUNNING · scope 3→2→1 · specs 0→0→0"
