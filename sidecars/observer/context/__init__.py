"""What a sidecar knows besides what it sees: its context, gathered once when it starts."""

from sidecars.observer.context.context import Context
from sidecars.observer.context.gather import gather

__all__ = ["Context", "gather"]
