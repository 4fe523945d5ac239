"""Ending a group and proving that it is gone."""
