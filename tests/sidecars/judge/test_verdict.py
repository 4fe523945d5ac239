from __future__ import annotations

import pytest

from sidecars.observer.judge.verdict import quoted_from
from sidecars.type_reader.sidecar_type import Confidence
from witness.judging.observation import Observation

SEEN = [
    Observation("one", tool="Edit", written=("src/a.py",), text="def add(a, b):\n    return a - b\n"),
    Observation("two", tool="Bash", command="pytest  -q", output="3 failed"),
]


@pytest.mark.parametrize(
    ("evidence", "source"),
    [
        ("return a - b", "one"),
        ("def add(a, b): return a - b", "one"),
        ("RETURN  A - B", "one"),
        ("`wrote: src/a.py`", "one"),
        ("def add … return a - b", "one"),
        ("pytest -q ... 3 failed", "two"),
        ("return a + b", None),
        ("return a - b … def add", None),
        ("", None),
        ("…", None),
        ("a", None),
    ],
)
def test_a_quote_is_found_in_what_was_seen(evidence: str, source: str | None) -> None:
    assert quoted_from(evidence, SEEN) == source


def test_confidence_has_an_order_and_names() -> None:
    assert Confidence.LOW < Confidence.MEDIUM < Confidence.HIGH
    assert Confidence.named(" High ") is Confidence.HIGH
    assert str(Confidence.MEDIUM) == "medium"
    with pytest.raises(ValueError, match="one of low, medium, high"):
        Confidence.named("sure")
