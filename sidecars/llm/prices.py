"""What model calls cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from witness.journal.records import Usage

#: A town's own prices: dollars for a million tokens by beginning of a model's id.
Prices = Mapping[str, Mapping[str, float]]
# Above that many tokens of input, the Haiku 5.5 family charges five times as much for everything.
_STEP = 100_000
_STEP_FACTOR = 5.0


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for a million tokens, and the shortest prefix that is cached.

    Args:
        input, output: plain tokens.
        written: tokens written to the five-minute cache.
        cached: tokens read from it.
        cache_minimum: tokens; a shorter prefix is not cached, and nothing says so.
        stepped: whether long inputs cost more.
    """

    input: float
    output: float
    written: float
    cached: float
    cache_minimum: int
    stepped: bool = False


# From the public price lists of October 2026.
_PRICES = {
    "claude-haiku-5": Price(0.10, 0.50, 0.125, 0.01, 512, stepped=True),
    "claude-haiku-4": Price(1.00, 5.00, 1.25, 0.10, 4096),
}
# A model that is not in the list is counted dear, so that a budget errs on the safe side.
UNKNOWN = Price(15.0, 75.0, 18.75, 1.50, 4096)


def price(model: str, own: Prices | None = None) -> Price:
    """The price of a model, by the longest known beginning of its id.

    Args:
        model: its id.
        own: the town's own prices by beginning of an id; they beat the list. What is not given costs nothing, but for
            the cache, which then costs what plain input does.
    """
    prices = {**_PRICES, **{name: _own(each) for name, each in (own or {}).items()}}
    found = [name for name in prices if model.startswith(name)]
    return prices[max(found, key=len)] if found else UNKNOWN


def _own(given: Mapping[str, float]) -> Price:
    plain = given.get("input", 0.0)
    return Price(plain, given.get("output", 0.0), given.get("written", plain), given.get("cached", plain), 0)


def dollars(usage: Usage, own: Prices | None = None) -> float:
    """What the tokens of one or several calls of one model cost; each call is taken to be of average length."""
    each = price(usage.model, own)
    total = usage.input_tokens + usage.cached_tokens + usage.cache_written_tokens
    factor = _STEP_FACTOR if each.stepped and total / max(1, usage.calls) > _STEP else 1.0
    return (
        factor
        / 1_000_000
        * (
            usage.input_tokens * each.input
            + usage.cached_tokens * each.cached
            + usage.cache_written_tokens * each.written
            + usage.output_tokens * each.output
        )
    )
