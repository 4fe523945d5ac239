"""The retrieval bench judges by its labels: they must hold, and its rules must not give points away."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import baselines, memory_stores
from tests.bench.distill_corpus import HALVES, Evidence, Quote, artifact, carries, faults, questions, squeezed
from tests.bench.retrieval import stated

# Documents need readers that only the bench installs, packages need the net; the ten-megabyte dump takes its time.
_PLAIN = (
    "orders.log",
    "ci.log",
    "gateway.log",
    "deploy.yaml",
    "lock.toml",
    "tickets.csv",
    "payments.csv",
    "experiment.ipynb",
)


@pytest.mark.parametrize("half", HALVES)
def test_labels_hold_in_what_the_generator_makes(half: str, tmp_path: Path) -> None:
    checked = [each for each in questions(half) if each.artifact.removeprefix("made:") in _PLAIN]
    assert len(checked) > 20
    assert [fault for each in checked for fault in faults(each, tmp_path)] == []


def test_a_label_that_does_not_hold_is_told(tmp_path: Path) -> None:
    from dataclasses import replace

    known = questions("tune")[0]
    moved = replace(known, evidence=(replace(known.evidence[0], line=1), Evidence("this stands nowhere")))
    assert len(list(faults(moved, tmp_path))) == 2


def test_the_generator_makes_the_same_bytes_again(tmp_path: Path) -> None:
    for name in _PLAIN:
        first, second = (artifact(f"made:{name}", tmp_path / each) for each in ("a", "b"))
        assert first.read_bytes() == second.read_bytes(), name


def test_the_halves_are_as_large_as_one_another_and_share_no_question() -> None:
    tune, measure = (questions(half) for half in HALVES)
    assert not {each.text for each in tune} & {each.text for each in measure}
    for kind in {each.kind for each in tune + measure}:
        sizes = [sum(each.kind == kind for each in half) for half in (tune, measure)]
        assert min(sizes) >= 10, kind
        assert max(sizes) - min(sizes) <= 1, kind


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text('{\n "a": {"port": 80, "name": "edge"},\n "b": {"port": 80}, "c": 17\n}\n')
    return path


@pytest.mark.parametrize(
    ("quote", "locator", "counts"),
    [
        ('"port": 80', "L3", True),
        ('"port":80', "L2-L4", True),
        ('"port": 80', "L2", False),
        ('"port": 80', "/b/port", True),
        ('{"port": 80}', "/b", True),
        ('"port": 80', "/a/port", False),
        ('"port": 8', "/b/port", False),
    ],
)
def test_words_that_stand_elsewhere_too_count_at_their_place_only(
    config: Path, quote: str, locator: str, counts: bool
) -> None:
    assert carries(Quote(quote, locator), Evidence('"port": 80', line=3, at="/b/port"), config) is counts


def test_words_that_stand_once_count_wherever_the_quote_says_it_is_from(config: Path) -> None:
    assert carries(Quote('  "c":  17', ""), Evidence('"c": 17'), config)


def test_a_text_beside_tells_a_record_apart(config: Path) -> None:
    wanted = Evidence('"port": 80', beside="edge")
    assert carries(Quote('{"port": 80, "name": "edge"}', ""), wanted, config)
    assert not carries(Quote('{"port": 80}', ""), wanted, config)


def test_a_page_and_its_text_squeeze_to_the_same() -> None:
    shown = squeezed("Set <code>lock</code> to 5&nbsp;s", markup=True)
    assert shown == squeezed("Set lock to 5 s")
    assert squeezed("if (code < 100 || code > 999)", markup=True) == squeezed("if (code < 100 || code > 999)")


@pytest.mark.parametrize(
    ("sentence", "numbers"),
    [
        ("Extractive, no model: 6 passages of 12000 lines, quoted. Lines with error: 305.", [305]),
        ("2,120 records match; 40 lines hold the word.", [2120, 40]),
        ("13 lines match `ERROR.*502 17`.", [13]),
        ("57 requests ended with 502.", [57]),
        ("no number was asked for", []),
        ("1 and 2 and 3 and 4", [1, 2, 3]),
        ("median 18.6 of 3 runs", [3]),
    ],
)
def test_only_numbers_that_are_stated_count(sentence: str, numbers: list[int]) -> None:
    assert stated(sentence, "How many requests were answered with 502?") == numbers


def test_baselines_get_no_more_characters_than_ours() -> None:
    ranked = [Quote("x" * 30, "L1"), Quote("y" * 30, "L2")]
    assert [each.text for each in baselines.within(ranked, 40, False)] == ["x" * 30, "y" * 10]
    assert [each.text for each in baselines.within(ranked, 40, True)] == ["x" * 30, "y" * 2]


def test_grep_ranks_by_distinct_words() -> None:
    texts = ["disk disk disk", "nothing", "the disk is full", "full"]
    assert baselines.grep(texts, "Which disk is full?") == [2, 0, 3]


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("size", [50, 500, 5_000])
def test_a_store_holds_each_pair_once_and_nothing_twice(half: str, size: int) -> None:
    stored = memory_stores.store(half, size)
    assert len(stored) == len({each.identity for each in stored}) == len({each.memory for each in stored}) == size
    assert {each.identity for each in memory_stores.pairs(half)} <= {each.identity for each in stored}
    assert stored == memory_stores.store(half, size)
