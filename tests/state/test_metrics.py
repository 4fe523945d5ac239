"""What Prometheus is given, and the board that reads it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from witness.errors import WitnessError
from witness.journal.decisions import Spend
from witness.state.metrics import metrics_text
from witness.state.records import (
    LineState,
    PolecatState,
    SidecarState,
    TownState,
    UsageState,
    Waiting,
)

BOARD = Path(__file__).parents[2] / "docs" / "grafana.json"


def _state() -> TownState:
    usage = UsageState(10, 1, 2, 3, 4, 0.5, ("m",), 100, 0.25, "/t")
    sidecars = (
        SidecarState("scope", "scope", "RUNNING", 5, "", 1, 4, LineState(4, 3, 2, 1, 0)),
        SidecarState("tools", "tools", "RUNNING", 6, "no key", 0, 0, LineState(0, 0, 0, 0, 0)),
    )
    polecat = PolecatState(
        "main/q", "q", "main", "r", "gt-q", "RUNNING", "", "waiting", None, "", Waiting("permission", None, "may I?"),
        None, "", "/w", "", "", "2026-12-01T00:00:00Z", 60.0, 4, ("claude",), "claude", "hooks", 1000, 2.5, None, None,
        usage, sidecars,
    )  # fmt: skip
    machine = {"cpus": 2, "load": 0.1, "memory_total": 9, "memory_available": 7}
    return TownState("2026-12-01T00:00:00Z", {}, {"running": True, "pid": 3}, machine, (polecat,))


def test_each_fact_of_the_state_is_a_line() -> None:
    pytest.importorskip("prometheus_client")
    from prometheus_client.parser import text_string_to_metric_families

    text = metrics_text(_state(), Spend(1.25, 7))
    found = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["gt_witness_up",] == 1
    assert found["gt_polecats", "waiting"] == 1
    assert found["gt_polecats", "idle"] == 0
    assert found["gt_polecat_waiting", "main", "permission", "q"] == 1
    assert found["gt_polecat_tokens_total", "cached", "main", "q"] == 2
    assert found["gt_polecat_dollars_total", "main", "q"] == 0.5
    assert found["gt_polecat_context_ratio", "main", "q"] == 0.25
    assert found["gt_sidecar_up", "main", "q", "scope"] == 1
    assert found["gt_sidecar_up", "main", "q", "tools"] == 0
    assert found["gt_sidecar_lines_total", "main", "q", "scope", "seen"] == 2
    assert found["gt_sidecars_dollars_total",] == 1.25


def test_the_board_asks_for_nothing_that_there_is_not() -> None:
    pytest.importorskip("prometheus_client")
    text = metrics_text(_state(), Spend(1.25, 7))
    board = json.loads(BOARD.read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(asked) >= 8
    for name in {name for expression in asked for name in re.findall(r"\bgt_\w+", expression)}:
        assert re.search(rf"^{name}[ {{]", text, re.MULTILINE), name


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(WitnessError, match="gt-witness\\[metrics\\]"):
        metrics_text(_state(), Spend(0.0, 0))
