"""A stand-in for a model: it never finds anything, and counts what asking would have cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sidecars.llm.prices import Prices, dollars, price
from sidecars.observer.context.context import Context
from sidecars.observer.judge.model_prompt import describe, system_prompt
from sidecars.observer.judge.verdict import Verdict
from sidecars.observer.observe.observation import Observation
from sidecars.type_reader.sidecar_type import SidecarType
from witness.clock import Clock
from witness.journal.records import Usage

# Haiku 5.5 counts about three tenths more tokens for the same text than its predecessors' four characters a token.
_CHARACTERS_PER_TOKEN = 3.1
_ANSWER_TOKENS = 60
# The cache of the API forgets after five minutes.
_CACHE_SECONDS = 300.0


class EstimatingJudge:
    """Counts calls, tokens and dollars.

    Args:
        kind, material: as for the model judge.
        model: whose prices count.
        clock: by which the cache grows old.
        prices: the town's own prices.
    """

    def __init__(
        self, kind: SidecarType, material: Context, model: str, clock: Clock, prices: Prices | None = None
    ) -> None:
        self._model, self._clock, self._prices = model, clock, prices or {}
        self._system = len(system_prompt(kind, material)) / _CHARACTERS_PER_TOKEN
        self._cached_until = -1.0

    def close(self) -> None:
        """It holds nothing open."""

    def sift(self, seen: Sequence[Observation]) -> tuple[list[Verdict], list[Observation]]:
        return [], list(seen)

    def judge(self, seen: Sequence[Observation], hint: str = "") -> list[Verdict]:
        return [Verdict(False, usage=self.usage(describe(seen)))] if seen else []

    def usage(self, question: str) -> Usage:
        """What asking that question now would cost."""
        system, asked = round(self._system), round(len(question) / _CHARACTERS_PER_TOKEN)
        now = self._clock.monotonic()
        usage = Usage(model=self._model, input_tokens=asked, output_tokens=_ANSWER_TOKENS, calls=1)
        if system < price(self._model, self._prices).cache_minimum:
            usage = replace(usage, input_tokens=asked + system)
        elif now < self._cached_until:
            usage = replace(usage, cached_tokens=system)
        else:
            usage = replace(usage, cache_written_tokens=system)
        self._cached_until = now + _CACHE_SECONDS
        return replace(usage, dollars=dollars(usage, self._prices))
