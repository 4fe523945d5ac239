"""The command line: parses, calls the library once, prints, exits."""

from witness.cli.main import main

__all__ = ["main"]
