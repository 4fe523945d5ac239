"""One state of a town: what every view of it shows, and what programs read. See ``docs/state.md``."""
