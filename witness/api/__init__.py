"""The Witness as a library: all that the command line does."""

from __future__ import annotations

from witness.api.witness import NukeResult, Witness

__all__ = ["NukeResult", "Witness"]
