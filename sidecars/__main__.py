"""``python -m sidecars --assignment FILE``: what the Witness starts. Anything else is ``gt-sidecar``, by hand."""

from __future__ import annotations

import sys
from pathlib import Path


def main(argv: list[str] | None = None) -> None:
    """Run one sidecar and exit with its code."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] == ["--assignment"] and len(arguments) == 2:
        sys.exit(_assigned(Path(arguments[1])))
    if arguments[:1] == ["--forkserver"] and len(arguments) in (2, 3):
        from sidecars.observer.forkserver import main as serve

        sys.exit(serve(Path(arguments[1]), with_model=arguments[2:] == ["--model"]))
    from sidecars.observer.standalone import main as by_hand

    sys.exit(by_hand(arguments))


def _assigned(path: Path) -> int:
    from sidecars.observer.process import BAD_CONFIGURATION, run
    from witness.assignment import Assignment
    from witness.files import read_text

    try:
        assignment = Assignment.from_json(read_text(path))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"sidecar: the assignment {path} cannot be used: {error}\n")
        return BAD_CONFIGURATION
    _name_process(assignment)
    return run(assignment, _say_ready)


def _say_ready() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()


def _name_process(assignment: object) -> None:
    from witness.process.title import set_title

    name = getattr(assignment, "name", "")
    group = getattr(assignment, "group", None)
    set_title(f"gt-sidecar {group.address if group else ''}/{name}")


if __name__ == "__main__":
    main()
