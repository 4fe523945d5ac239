"""Those who talk to the running Witness: one JSON object a line, over ``witness.sock`` in its runtime folder.

======================  ============================================================================================
``{"op": "look"}``    look at ``run`` now; answered at once
``{"op": "await"}``     answered with the state of ``run`` when its spawn has ended; may bring ``key``
``{"op": "key"}``       keep ``key`` for the sidecars that are started from now on
``{"op": "patrol"}``    look at the whole town; answered when the ends that this began are over
``{"op": "status"}``    who serves, and how many groups
``{"op": "stop"}``      leave; polecats and sidecars live on
======================  ============================================================================================
"""

from __future__ import annotations

import socket
from dataclasses import dataclass

from witness.ipc.jsonlines import Connection
from witness.supervise.executor import PatrolResult


@dataclass
class AskedPatrol:
    """A patrol that somebody asked for.

    Args:
        checked: how many groups were looked at.
        outcome: what was done so far.
        ending: runs whose end is still under way; the answer waits for them.
    """

    checked: int
    outcome: PatrolResult
    ending: set[str]


class Caller(Connection):
    """A connection to the running Witness, and what it waits for.

    Attributes:
        waits_for: runs whose spawn is to end before it is answered.
        patrols: patrols that are answered when the ends that they began are over.
    """

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self.waits_for: set[str] = set()
        self.patrols: list[AskedPatrol] = []
