"""Ratios are told against the first row, and only where something was measured."""

from __future__ import annotations

from tests.bench.__main__ import benches
from tests.bench.machine import describe
from tests.bench.table import Row, cells, columns, markdown


def test_ratio_is_to_the_first_row_of_systems() -> None:
    rows = [Row({"system": "us", "stop, ms": 10.0, "kinds": 3}), Row({"system": "them", "stop, ms": 25.0, "kinds": 1})]
    assert cells(rows) == [["us", "10", "3"], ["them", "25 (×2.5)", "1"]]


def test_a_table_of_something_else_has_no_ratios() -> None:
    assert cells([Row({"kind": "a", "ms": 1.0}), Row({"kind": "b", "ms": 2.0})]) == [["a", "1"], ["b", "2"]]


def test_what_was_not_measured_shows_as_a_dash() -> None:
    rows = [Row({"system": "us", "ms": 1234.5}), Row({"system": "them", "note": "not installed"})]
    assert columns(rows) == ["system", "ms", "note"]
    assert cells(rows) == [["us", "1234", "–"], ["them", "–", "not installed"]]


def test_markdown_keeps_bars_apart() -> None:
    text = markdown("title", "words", [Row({"a": "x | y"})])
    assert text.splitlines()[-1] == "| x \\| y |"


def test_every_bench_says_what_it_measures() -> None:
    found = list(benches())
    assert {"supervision.kinds", "supervision.respawn", "supervision.footprint"} <= {bench.name for bench in found}
    assert all(bench.words for bench in found)


def test_the_machine_is_described_without_its_name() -> None:
    import platform

    text = "\n".join(describe())
    assert "cores" in text
    assert platform.node() not in text
