"""Sidecar types: their schema, their files, their rules."""
