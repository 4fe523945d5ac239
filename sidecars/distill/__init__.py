"""Narrow questions answered about huge artifacts, with evidence that was checked by machine."""

from __future__ import annotations

from sidecars.distill.answer import Answer, Evidence
from sidecars.distill.errors import Exit
from sidecars.distill.limits import Limits
from sidecars.distill.run import distill
from sidecars.llm.client import Endpoint

__all__ = ["Answer", "Endpoint", "Evidence", "Exit", "Limits", "distill"]
