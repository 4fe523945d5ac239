"""What the shell completes: ``gt completion SHELL``, and the names that stand where a command takes one.

A completion is asked for at a keystroke, so each source reads what is on the disk and nothing else, and a fault of any
kind completes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from witness.config.town import Town
from witness.errors import UsageError, WitnessError
from witness.journal import Journal, MemberKind

PROGRAMS = ("gt", "gt-witness", "gt-sidecar")
_Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completes(source: Callable[[], Iterable[str]], *, listed: bool = False) -> _Complete:
    """A completion from names.

    Args:
        source: gives the names.
        listed: the word is a list of them by comma, of which the last is completed.
    """

    def complete(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
        before, comma, last = typed.rpartition(",") if listed else ("", "", typed)
        try:
            names = sorted(set(source()))
        except (WitnessError, OSError, ValueError):
            return []
        return [CompletionItem(before + comma + name) for name in names if name.startswith(last)]

    return complete


def _living() -> list[tuple[str, str, list[str]]]:
    """(name, address, sidecars) of each living polecat."""
    town = Town.find()
    if not town.journal_path.exists():
        return []
    with Journal(town.journal_path) as journal:
        members = journal.members.of_living()
        return [
            (
                group.id.polecat,
                group.id.address,
                [each.name for each in members.get(group.id.run, []) if each.kind is MemberKind.SIDECAR],
            )
            for group in journal.groups.living()
        ]


def _polecats() -> list[str]:
    return [name for polecat, address, _ in _living() for name in (polecat, address)]


def _sidecars() -> list[str]:
    return [f"{polecat}/{name}" for polecat, _, names in _living() for name in names]


def _town() -> Town | None:
    try:
        return Town.find()
    except WitnessError:
        return None


def _types() -> list[str]:
    from witness.trust.layers import type_names

    town = _town()
    return type_names(town.root if town else None, workdir=Path.cwd())


def _molecules() -> list[str]:
    from witness.declare.document import ENDINGS, formula_folders

    folders = formula_folders(_town(), Path.cwd())
    return [path.name.partition(".")[0] for each in folders for path in each.glob("*") if path.name.endswith(ENDINGS)]


def _agents() -> list[str]:
    from witness.agents.clients import CLIENTS

    return [program for client in CLIENTS for program in client.programs]


def _memories() -> list[str]:
    from witness.cli.memory_options import open_store

    return list(open_store(None).agents())


memories = _completes(_memories)
polecats = _completes(_polecats)
polecats_and_sidecars = _completes(lambda: [*_polecats(), *_sidecars()])
sidecars = _completes(_sidecars)
any_type = _completes(_types)
type_list = _completes(_types, listed=True)
molecules = _completes(_molecules)
agents = _completes(_agents)


@click.command(
    epilog='Examples:\n\n  eval "$(gt completion bash)"\n\n  gt completion fish > ~/.config/fish/completions/gt.fish'
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what makes a shell complete our commands, their options, and the names in your town."""
    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"no completion for {shell}")
    for program in PROGRAMS:
        variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
        complete = kind(click.Command(program), {}, program, variable)
        # Not its source(): that starts the shell to ask for its version.
        click.echo(complete.source_template % complete.source_vars())
