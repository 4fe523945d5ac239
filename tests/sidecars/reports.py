"""What a scripted model reports to a sidecar."""

from __future__ import annotations

from typing import Any

from witness.testing import Answer, call, message

USAGE = {"input_tokens": 40, "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 200, "output_tokens": 60}


def report(**fields: Any) -> dict[str, Any]:
    """The input of ``report_signal``."""
    return {"signal": False, "evidence": "", "confidence": "low", "snippet": None, "message": ""} | fields


def tool(given: Any) -> Answer:
    """The forced tool, called."""
    return message(call("report_signal", given), usage=USAGE)
