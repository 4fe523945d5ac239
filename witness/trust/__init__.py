"""What declares a sidecar, whose each declaration is, and which of them count.

A type's declaration has layers: shipped, the town's, the rig's, the project's. The first three are the user's. The
project's comes with a repository, and an agent can write it: of what stands there, data for rules counts (globs,
words, snippets, a new type's own rules), and whatever runs a program, spends, reaches outside or changes what the user
has chosen counts once the user has pinned it (``gt sidecar trust``) or the town's settings allow the project.

``resolve`` puts the layers that count together, once, when a polecat is spawned; the ``Definition`` that comes out is
journaled, and every start of the sidecar uses it.
"""

from witness.trust.definition import Definition, resolve
from witness.trust.layers import OWN_FOLDER, shipped_types, type_names
from witness.trust.pins import Pins

__all__ = ["OWN_FOLDER", "Definition", "Pins", "resolve", "shipped_types", "type_names"]
