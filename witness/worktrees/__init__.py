"""A worktree of its own for a polecat: made, looked at, kept or removed."""
