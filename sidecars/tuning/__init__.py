"""Linting, measuring and replaying a sidecar type."""
