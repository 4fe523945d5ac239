"""What a sidecar knows besides what it sees: its context, gathered once when it starts."""

from sidecars.material.gather import gather
from sidecars.material.material import Material

__all__ = ["Material", "gather"]
