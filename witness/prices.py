"""What model calls cost: those of our sidecars, and those of the agents themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from witness.journal.records import Usage

#: A town's own prices: dollars for a million tokens by beginning of a model's id.
Prices = Mapping[str, Mapping[str, float]]
# Above that many tokens of input, the Haiku 5.5 family charges five times as much for everything.
STEP = 100_000
STEP_FACTOR = 5.0


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for a million tokens, and the shortest prefix that is cached.

    Args:
        input, output: plain tokens.
        written: tokens written to the five-minute cache.
        cached: tokens read from it.
        cache_minimum: tokens; a shorter prefix is not cached, and nothing says so.
        stepped: whether long inputs cost more.
        window: tokens that a conversation may hold, None where that depends on how the model is asked for.
    """

    input: float
    output: float
    written: float
    cached: float
    cache_minimum: int
    stepped: bool = False
    window: int | None = None


# From the public price lists of October 2026. Where a model's shortest cached prefix was not looked up, the longest of
# all stands: sidecars judge by small models, and what is said of others errs on the safe side.
_PRICES = {
    "claude-haiku-5": Price(0.10, 0.50, 0.125, 0.01, 512, stepped=True, window=1_000_000),
    "claude-haiku-4": Price(1.00, 5.00, 1.25, 0.10, 4096, window=200_000),
    "claude-sonnet-5-5": Price(2.00, 10.00, 2.50, 0.10, 4096, window=1_000_000),
    "claude-sonnet-5": Price(2.00, 10.00, 2.50, 0.20, 4096, window=1_000_000),
    "claude-sonnet-4": Price(3.00, 15.00, 3.75, 0.30, 4096),
    "claude-opus-5-5": Price(4.00, 20.00, 5.00, 0.20, 4096, window=1_000_000),
    "claude-opus-5": Price(5.00, 25.00, 6.25, 0.50, 4096, window=1_000_000),
    **{f"claude-opus-4-{minor}": Price(5.00, 25.00, 6.25, 0.50, 4096) for minor in (5, 6, 7, 8)},
    "claude-opus-4": Price(15.00, 75.00, 18.75, 1.50, 4096, window=200_000),
    "claude-fable-5-1": Price(10.00, 50.00, 12.50, 0.25, 4096, window=1_000_000),
    "claude-fable-5": Price(10.00, 50.00, 12.50, 1.00, 4096, window=1_000_000),
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
    return known_price(model, own) or UNKNOWN


def known_price(model: str, own: Prices | None = None) -> Price | None:
    """As ``price``, but None for a model that no list has: what an agent has spent is then unknown, not guessed at."""
    prices = {**_PRICES, **{name: _own(each) for name, each in (own or {}).items()}}
    found = [name for name in prices if model.startswith(name)]
    return prices[max(found, key=len)] if found else None


def _own(given: Mapping[str, float]) -> Price:
    plain = given.get("input", 0.0)
    return Price(plain, given.get("output", 0.0), given.get("written", plain), given.get("cached", plain), 0)


def dollars(usage: Usage, own: Prices | None = None) -> float:
    """What the tokens of one or several calls of one model cost; each call is taken to be of average length."""
    each = price(usage.model, own)
    total = usage.input_tokens + usage.cached_tokens + usage.cache_written_tokens
    factor = STEP_FACTOR if each.stepped and total / max(1, usage.calls) > STEP else 1.0
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
