"""gt-witness: spawns coding agents in tmux together with their sidecars, keeps them alive, ends them completely."""

__version__ = "0.1.0"
