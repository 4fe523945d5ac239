"""Observers of a coding agent, its memory, questions about huge artifacts; ``README.md`` says what they may import."""
