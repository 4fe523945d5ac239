"""Processes of this machine: identity, the table, exits, cgroups."""
