"""Following the polecats of a real Gas Town."""
