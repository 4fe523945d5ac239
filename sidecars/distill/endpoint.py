"""Where a model is asked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the model is.

    Args:
        key: the API key.
        url: base address of a compatible server, empty for ``ANTHROPIC_BASE_URL`` or Anthropic's own.
    """

    key: str
    url: str = ""

    def __repr__(self) -> str:
        return f"Endpoint(url={self.url!r})"
