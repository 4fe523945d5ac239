"""Where a town is and what it has set."""
