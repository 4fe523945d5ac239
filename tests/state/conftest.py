from __future__ import annotations

from tests.real.conftest import make_place, place

__all__ = ["make_place", "place"]
