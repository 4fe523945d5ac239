"""One sidecar: observe, judge, inject, and the process that does it."""
