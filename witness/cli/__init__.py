"""The command line: parses, calls the library once, prints, exits."""

from witness.cli.root import main

__all__ = ["main"]
