"""``gt distill`` and ``gt ask``: a narrow question about something huge, answered elsewhere."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witness.errors import UsageError

if TYPE_CHECKING:
    from sidecars.distill import Answer
    from witness.settings import Settings


class _Duration(click.ParamType[float]):
    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from witness.settings import parse_duration

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
        click.option("--model", help="the model's id"),
        click.option("--timeout", type=_Duration(), default="120s", show_default=True, help="for everything"),
        click.option("--budget-usd", type=float, default=0.25, show_default=True, help="dollars it may spend"),
        click.option("--max-steps", type=int, default=12, show_default=True, help="requests to the model"),
        click.option("--max-output-chars", type=int, default=4000, show_default=True, help="longest answer"),
    ):
        command = option(command)
    return command


@click.command()
@click.option("--artifact", "artifacts", multiple=True, metavar="PATH", help="a file or folder; may be repeated")
@click.option("--question", help="what you want to know")
@click.option("--no-ignore", is_flag=True, help="in folders, read what .gitignore leaves out, too")
@_shared
def distill(artifacts: tuple[str, ...], question: str | None, no_ignore: bool, as_json: bool, **given: Any) -> None:
    """Ask a narrow question of huge files without opening them.

    Prints a short answer with evidence that was checked by machine. Exit codes: 0 answered, 2 bad arguments,
    3 answered but unverified, 4 artifact unreadable, 5 no backend, 6 budget spent, 7 timeout, 8 unparsable.
    """
    if not artifacts or not question:
        raise UsageError("write gt distill --artifact PATH --question TEXT")
    from sidecars.distill import distill as run

    answer = run(artifacts, question, ignore=not no_ignore, **_asked(given, as_json))
    _print(answer, as_json)


def _asked(given: dict[str, Any], quiet: bool) -> dict[str, Any]:
    """What the shared options mean to the library."""
    from sidecars.distill import Endpoint, Limits
    from sidecars.distill.errors import NoBackendError

    settings = _settings()
    backend = given.pop("backend")
    key = os.environ.get(settings.key_env, "")
    if backend == "auto":
        backend = "model" if key else "index"
    elif backend == "model":
        # The agent's own key is spent only by who asks for this backend by name.
        key = key or os.environ.get("ANTHROPIC_API_KEY", "")
        if not key:
            raise NoBackendError(f"the model backend needs a key: set {settings.key_env}, or use --backend index")
    given["model"] = given["model"] or settings.model
    return {"backend": backend, "limits": Limits(**given), "endpoint": Endpoint(key), "progress": _progress(quiet)}


def _settings() -> Settings:
    from witness.errors import TownNotFoundError
    from witness.settings import Settings, load_settings
    from witness.town import Town

    try:
        return load_settings(Town.find().root)
    except TownNotFoundError:
        return Settings()  # a question needs no town


def _progress(quiet: bool) -> Any:
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


@click.command()
@click.argument("target")
@click.argument("question")
@_shared
def ask(target: str, question: str, as_json: bool, **given: Any) -> None:
    """Put QUESTION to what a sidecar knows, as in: gt ask toast/specs "Which status for a validation error?"."""
    raise UsageError(f"{target}: {Path.cwd()}")
