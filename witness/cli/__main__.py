"""``python -m witness.cli``."""

from witness.cli.main import main

main()
