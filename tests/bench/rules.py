"""What rules alone are right about: the labelled events, precision and recall with their intervals."""

from __future__ import annotations

import os
from math import sqrt
from pathlib import Path

from sidecars.tuning.evaluate import Result, evaluate, load_cases
from sidecars.type_reader.type_loader import load_type
from tests.bench.table import Row

_LABELLED = Path(__file__).parents[1] / "labelled"
_TYPES = ("scope", "specs", "tools", "conventions", "blocks")
# Of the normal distribution: 95 in 100 lie within.
_Z = 1.96


def labelled_events() -> list[Row]:
    """Precision and recall of the shipped types without a key, over what rules can know (`knowable: rules`).

    Said with the wrong words counts as wrong and as missed. In brackets: Wilson's interval, 95 %. One half was written
    to tune on, the other only to measure.
    """
    os.environ.pop("GT_WITNESS_API_KEY", None)
    rows = []
    for half in ("tune", "measure"):
        pooled: list[Result] = []
        for name in _TYPES:
            results = evaluate(load_cases(_LABELLED / name / f"{half}.yaml"), load_type(name)).results
            knowable = [each for each in results if not each.case.needs]
            pooled += knowable
            rows.append(_row(half, name, knowable))
        rows.append(_row(half, "all", pooled))
    return rows


def _row(half: str, name: str, results: list[Result]) -> Row:
    said = sum(each.spoke for each in results)
    wanted = sum(each.case.signal for each in results)
    right = sum(each.right and each.case.signal for each in results)
    milliseconds = sorted(1000 * each.seconds / len(each.case.events) for each in results)
    return Row(
        half=half,
        type=name,
        events=len(results),
        said=said,
        right=right,
        wanted=wanted,
        precision=shares(right, said),
        recall=shares(right, wanted),
        verdict_ms=milliseconds[len(milliseconds) // 2],
        verdict_ms_p99=milliseconds[int(len(milliseconds) * 0.99)],
    )


def shares(part: int, whole: int) -> str:
    """A share with Wilson's interval."""
    if not whole:
        return "–"
    low, high = wilson(part, whole)
    return f"{part / whole:.3f} [{low:.3f}, {high:.3f}]"


def wilson(part: int, whole: int) -> tuple[float, float]:
    """The interval in which the share lies, at 95 %."""
    share = part / whole
    middle = (share + _Z**2 / (2 * whole)) / (1 + _Z**2 / whole)
    half = _Z / (1 + _Z**2 / whole) * sqrt(share * (1 - share) / whole + _Z**2 / (4 * whole**2))
    return max(0.0, middle - half), min(1.0, middle + half)
