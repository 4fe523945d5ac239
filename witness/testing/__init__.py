"""What tests of programs that use gt-witness stand on; its own tests do.

A scratch town ends whatever was started in it and proves that nothing is left. A scripted Messages server stands in for
the model: of an agent's client, of a sidecar, of ``gt ask``. Nothing here needs pytest; fixtures for it are in
``witness.testing.fixtures``.

Examples:
    >>> from witness.testing import scratch_town
    >>> with scratch_town() as witness:
    ...     spawned = witness.spawn("toast", workdir=witness.town.root / "repo", agent=["sleep", "60"], sidecars="")
    ...     [each.name for each in witness.processes("toast")].count("sleep")
    1
"""

from __future__ import annotations

from witness.testing.answers import (
    Answer,
    Block,
    Exchange,
    Request,
    Step,
    call,
    drip,
    fail,
    fail_inside,
    fill_form,
    hang_up,
    hold,
    message,
    raw,
    say,
    think,
    use,
)
from witness.testing.messages_server import MessagesServer
from witness.testing.towns import living_of, make_town, scratch_town, supervised

__all__ = [
    "Answer",
    "Block",
    "Exchange",
    "MessagesServer",
    "Request",
    "Step",
    "call",
    "drip",
    "fail",
    "fail_inside",
    "fill_form",
    "hang_up",
    "hold",
    "living_of",
    "make_town",
    "message",
    "raw",
    "say",
    "scratch_town",
    "supervised",
    "think",
    "use",
]
