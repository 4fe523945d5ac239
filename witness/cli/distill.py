"""``gt distill`` and ``gt ask``: a narrow question about something huge, answered elsewhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witness.cli.completion import sidecars
from witness.errors import UsageError

if TYPE_CHECKING:
    from sidecars.distill import Answer
    from witness.cli.distill_service import Asking


class _Duration(click.ParamType[float]):
    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from witness.config.settings import parse_duration

        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _shared(command: Any) -> Any:
    """The options that ``distill`` and ``ask`` have in common."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="JSON to stdout, nothing to stderr but errors"),
        click.option(
            "--backend",
            type=click.Choice(["auto", "model", "claude", "index"]),
            default="auto",
            show_default=True,
            help="auto: model when its key is set, else index (no model, quotes only)",
        ),
        click.option("--model", default="", help="the model's id"),
        click.option("--timeout", type=_Duration(), default="120s", show_default=True, help="for everything"),
        click.option("--budget-usd", type=float, default=0.25, show_default=True, help="dollars it may spend"),
        click.option("--max-steps", type=int, default=12, show_default=True, help="requests to the model"),
        click.option("--max-output-chars", type=int, default=4000, show_default=True, help="longest answer"),
    ):
        command = option(command)
    return command


@click.command()
@click.option(
    "--artifact",
    "artifacts",
    multiple=True,
    metavar="PATH",
    help="a file or folder, - for what is piped in; may be repeated",
)
@click.option("--question", help="what you want to know")
@click.option("--no-ignore", is_flag=True, help="in folders, read what .gitignore leaves out, too")
@click.option("--stats", is_flag=True, help="what was saved so far, by run, in place of a question")
@click.option("--skill", is_flag=True, help="print the skill for Claude Code, in place of a question")
@click.option("--install-skill", metavar="DIR", help="put the skill into DIR, as ~/.claude/skills or .claude/skills")
@_shared
def distill(artifacts: tuple[str, ...], question: str | None, no_ignore: bool, as_json: bool, **given: Any) -> None:
    """Ask a narrow question of huge files without opening them.

    Prints a short answer with evidence that was checked by machine. Exit codes: 0 answered, 2 bad arguments,
    3 answered but unverified, 4 artifact unreadable, 5 no backend, 6 budget spent, 7 timeout, 8 unparsable.
    """
    stats, skill, install = (given.pop(name) for name in ("stats", "skill", "install_skill"))
    if stats:
        _print_stats(as_json)
    elif skill:
        click.echo(_skill().read_text(encoding="utf-8"), nl=False)
    elif install:
        click.echo(f"installed {_install_skill(Path(install))}")
    elif not artifacts or not question:
        raise UsageError('write: gt distill --artifact PATH --question "..."')
    else:
        _print(_asking(given, as_json).artifacts(artifacts, question, ignore=not no_ignore), as_json)


@click.command()
@click.argument("target", metavar="TARGET/SIDECAR", shell_complete=sidecars)
@click.argument("question")
@_shared
def ask(target: str, question: str, as_json: bool, **given: Any) -> None:
    """Put QUESTION to what a sidecar knows, as in: gt ask toast/specs "Which status for a validation error?"

    Inside a polecat its own sidecars are asked by their name alone. Exit codes as of gt distill.
    """
    _print(_asking(given, as_json).sidecar(target, question), as_json)


def _asking(given: dict[str, Any], quiet: bool) -> Asking:
    from witness.cli.distill_service import Asking

    return Asking(given.pop("backend"), given, _progress(quiet))


def _progress(quiet: bool) -> Callable[[str], None]:
    # For people only: a program that reads stderr would take it for a fault.
    if quiet or not sys.stderr.isatty():
        return lambda _: None
    return lambda text: click.echo(f"gt: {text}", err=True)


def _print(answer: Answer, as_json: bool) -> None:
    if as_json:
        click.echo(_clean(json.dumps(answer.to_dict(), ensure_ascii=False)))
    else:
        click.echo(_clean("\n".join(_lines(answer))))
    if answer.outcome:
        click.get_current_context().exit(int(answer.outcome))


def _lines(answer: Answer) -> list[str]:
    lines = [answer.answer]
    for each in answer.evidence:
        mark = "" if each.verified else "  UNVERIFIED"
        lines += ["", f"{each.path}:{each.locator}{mark}" + (f"  ({each.reason})" if each.reason else "")]
        lines += [f"  {line}" for line in each.quote.splitlines()]
    for title, texts in (("Not known:", answer.gaps), ("Ask next:", answer.followups)):
        if texts:
            lines += ["", title, *(f"- {text}" for text in texts)]
    return lines


def _clean(text: str) -> str:
    # A file name may hold bytes that are no text; they must not end the program when it prints them.
    return text.encode("utf-8", "replace").decode("utf-8")


def _print_stats(as_json: bool) -> None:
    from witness.cli.distill_service import ledger

    found = ledger().stats()
    if as_json:
        click.echo(json.dumps(found))
        return
    click.echo(
        f"{found['questions']} questions ({found['answered']} answered, {found['unverified']} unverified, "
        f"{found['failed']} failed): {found['bytes_in']} bytes read, {found['bytes_out']} given back, about "
        f"{found['tokens_saved']} tokens saved for ${found['dollars']:.4f}"
    )
    for each in found["runs"]:
        click.echo(
            f"  {each['run'] or '(no polecat)'}: {each['questions']} questions, about {each['tokens_saved']} tokens "
            f"saved, {each['model_tokens']} model tokens, ${each['dollars']:.4f}"
        )


def _skill() -> Path:
    import importlib.util

    found = importlib.util.find_spec("sidecars.distill")
    assert found is not None  # noqa: S101 - it rides in the same wheel
    assert found.origin is not None  # noqa: S101
    return Path(found.origin).parent / "skill" / "SKILL.md"


def _install_skill(folder: Path) -> Path:
    target = folder.expanduser() / "distill" / "SKILL.md"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_skill().read_text(encoding="utf-8"), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}") from error
    return target
