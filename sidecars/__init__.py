"""Observers of a coding agent: what one sees, thinks and says."""
