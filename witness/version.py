"""The version: the one place where it stands. The build reads it, too."""

__version__ = "0.2.0.dev0"
