"""First lines of Python programs that tests write: they must start from a checkout whose path holds spaces too."""

from __future__ import annotations

import os
import shlex
import sys

# The kernel splits a #! line at spaces. The base interpreter's own path has none as a rule; it knows nothing of
# our packages, which programs run with -S do without.
BASE_PYTHON = os.path.realpath(sys.executable)


def with_our_packages() -> str:
    """The head of a program that needs our environment: read by sh first, by Python then, as pip writes it."""
    return f"#!/bin/sh\n'''exec' {shlex.quote(sys.executable)} \"$0\" \"$@\"\n' '''\n"
