"""``python -m witness.cli``."""

from witness.cli.root import main

main()
