"""Observers of a coding agent, its memory, and questions about huge artifacts.

What a sidecar may import of ``witness``: agents, assignment, clock, config, delivery, errors, events, expressions,
files, ipc, journal, judging, names, process, prompts, tmux, trust. Not what spawns, supervises or ends (``launch``,
``supervise``, ``nuke``, ``daemon``, ``api``, ``state``, ``cli``): import-linter fails on that. Nobody but
``witness.cli`` imports this package.
"""
