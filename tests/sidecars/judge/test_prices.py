from __future__ import annotations

from pathlib import Path

import pytest

from witness.config.settings import load_settings
from witness.errors import DeclarationError
from witness.journal import Usage
from witness.prices import UNKNOWN, dollars, price


def test_a_dated_id_has_its_familys_price() -> None:
    assert price("claude-haiku-4-5-20251001").input == 1.0
    assert price("claude-haiku-5-5").input == 0.10


def test_long_prompts_cost_five_times_as_much() -> None:
    short = Usage("claude-haiku-5-5", input_tokens=100_000, calls=1)
    long = Usage("claude-haiku-5-5", input_tokens=100_001, calls=1)
    assert dollars(long) == pytest.approx(5 * dollars(short), rel=1e-4)
    assert dollars(Usage("claude-haiku-5-5", input_tokens=150_000, calls=2)) == pytest.approx(0.015)


def test_an_unknown_model_is_counted_dear() -> None:
    assert price("mystery-1") is UNKNOWN


def test_a_towns_own_prices(tmp_path: Path) -> None:
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "witness.yaml").write_text(
        "prices: {local-: {}, claude-haiku-5-5: {input: 2, output: 4}}\n"
    )
    own = load_settings(tmp_path).prices
    assert dollars(Usage("local-7b", input_tokens=10**6, output_tokens=10**6), own) == 0
    assert dollars(Usage("claude-haiku-5-5", input_tokens=10**6, cached_tokens=10**6, output_tokens=10**6), own) == 8


@pytest.mark.parametrize(
    "text", ["prices: 3", "prices: {a: 3}", "prices: {a: {inputs: 1}}", "prices: {a: {input: -1}}"]
)
def test_wrong_prices(tmp_path: Path, text: str) -> None:
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "witness.yaml").write_text(text)
    with pytest.raises(DeclarationError, match=r"witness\.yaml:1: prices: write it as"):
        load_settings(tmp_path)
