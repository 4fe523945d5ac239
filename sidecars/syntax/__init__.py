"""Grammars: what a shell line names, and what a piece of source code defines. Nothing is expanded, opened or run."""
