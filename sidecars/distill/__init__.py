"""Narrow questions answered about huge artifacts, with evidence that was checked by machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sidecars.distill.answer import Answer, Evidence
from sidecars.distill.errors import Exit
from sidecars.distill.request import Limits
from sidecars.distill.run import distill

if TYPE_CHECKING:
    from sidecars.llm.client import Endpoint

__all__ = ["Answer", "Endpoint", "Evidence", "Exit", "Limits", "distill"]


def __getattr__(name: str) -> Any:
    # The client of models takes as long to load as a search takes, and most questions need none.
    if name == "Endpoint":
        from sidecars.llm.client import Endpoint

        return Endpoint
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
