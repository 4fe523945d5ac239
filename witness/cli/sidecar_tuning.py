"""``gt sidecar replay`` and ``gt sidecar eval``: tuning a sidecar before it is trusted."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from witness.cli.context import print_json, tell_withheld
from witness.cli.tables import write_table
from witness.config.keys import find_key
from witness.config.settings import Settings
from witness.config.town import Town
from witness.errors import NotFoundError, TownNotFoundError, UsageError
from witness.trust.settings import trusted_settings

if TYPE_CHECKING:
    from sidecars.observer.observe.recorded import RecordedEvent
    from sidecars.tuning.compile_guide import Compiled
    from sidecars.tuning.evaluate import Case, Score
    from sidecars.tuning.replay import Replay

_file = click.Path(exists=True, dir_okay=False, path_type=Path)
_workdir = click.option(
    "--workdir", type=click.Path(exists=True, file_okay=False, path_type=Path), default=None,
    help="The project (default: where the recording was made, else here).",
)  # fmt: skip


def _settings() -> tuple[Path | None, str, Settings]:
    try:
        town = Town.find()
    except TownNotFoundError:
        return None, "", Settings()
    rig = town.rig_of(Path.cwd())
    return town.root, rig, trusted_settings(town.root, rig)


@click.command("replay")
@click.option("--transcript", type=_file, help="A Claude Code transcript.")
@click.option(
    "--events", type=click.Path(exists=True, path_type=Path),
    help="An event spool of a polecat's run: its folder, or one of its files.",
)  # fmt: skip
@click.option(
    "--pane", "panes", type=_file, multiple=True, help="Captured screens, in order; form feeds divide a file."
)
@click.option("--pane-interval", default=10.0, show_default=True, help="Seconds between two screens.")
@click.option("--type", "spec", required=True, metavar="TYPE[:ARGUMENT]", help="The sidecar, as in --sidecars.")
@click.option("--task", default="", help="The task's text, or @FILE.")
@click.option("--prompt", type=_file, help="The polecat's prompt, for sidecars that look at its blocks.")
@click.option("--judge", default="", metavar="JUDGE", help="rules, model, rules+model, model:ID or a prompt's file.")
@click.option("--estimate", is_flag=True, help="Ask no model; count what it would have cost.")
@click.option("--all", "everything", is_flag=True, help="Show every decision, not only what is said or refused.")
@_workdir
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def replay_command(
    transcript: Path | None, events: Path | None, panes: tuple[Path, ...], pane_interval: float, spec: str, task: str,
    prompt: Path | None, judge: str, estimate: bool, everything: bool, workdir: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Run a sidecar over a recorded session at full speed: what it would have said, when, why, for how much."""
    if sum(map(bool, (transcript, events, panes))) != 1:
        raise UsageError("give one recording: --transcript, --events or --pane")
    from sidecars.observer.observe.recorded import read_events, read_screens, read_transcript

    if transcript:
        moments = read_transcript(transcript)
    elif events:
        moments = read_events(events)
    else:
        moments = read_screens(panes, pane_interval)
    text = Path(task[1:]).read_text(encoding="utf-8") if task.startswith("@") else task
    with tempfile.TemporaryDirectory(prefix="gt-replay-") as folder:
        if prompt:
            (Path(folder) / "prompt.xml").write_bytes(prompt.read_bytes())
        done = _replay(moments, spec, text, judge, estimate, workdir, folder)
    _show_replay(done, everything, as_json)


def _replay(
    moments: list[RecordedEvent], spec: str, task: str, judge: str, estimate: bool, workdir: Path | None, run_dir: str
) -> Replay:
    from sidecars.observer.context.gather import gather
    from sidecars.observer.factory import build_components
    from sidecars.observer.standalone import private_assignment
    from sidecars.tuning.replay import replay
    from sidecars.type_reader.sidecar_type import variant
    from sidecars.type_reader.type_loader import load_type

    name, _, argument = spec.partition(":")
    root, rig, settings = _settings()
    place = workdir or _recorded_in(moments) or Path.cwd()
    kind = load_type(name, root, rig, place)
    tell_withheld(kind.withheld)
    if judge:
        kind = variant(kind, judge)
    assignment = replace(private_assignment(name, argument, place.resolve(), run_dir), task=task)
    material = gather(kind, assignment)
    parts = build_components(kind, material, settings, place)
    if estimate and kind.asks_model:
        return replay(replace(parts, kind=kind), assignment, moments, estimate=True)
    if parts.lack:
        click.echo(f"{name}: {parts.lack}; --estimate counts what a model would cost", err=True)
    try:
        return replay(parts, assignment, moments)
    finally:
        parts.judge.close()


def _recorded_in(moments: list[RecordedEvent]) -> Path | None:
    found = next((str(each.payload["cwd"]) for each in moments if each.payload and each.payload.get("cwd")), "")
    return Path(found) if found and Path(found).is_dir() else None


def _show_replay(done: Replay, everything: bool, as_json: bool) -> None:
    from witness.cli.sidecar_ledger import _row

    shown = [each for each in done.decisions if everything or each.outcome != "silent"]
    figures = {
        "moments": done.moments, "seconds": round(done.seconds, 1), "decisions": len(done.decisions),
        "said": len(done.spoken), "calls": done.calls, "dollars": round(done.dollars, 6),
        "naive_calls": done.naive_calls, "naive_dollars": round(done.naive_dollars, 6),
        "not_looked_at": done.not_looked_at, "unfinished": done.unfinished,
    }  # fmt: skip
    if as_json:
        print_json({**figures, "log": [_row(each) for each in shown]})
        return
    for each in shown:
        at = datetime.fromtimestamp(each.time).astimezone().strftime("%H:%M:%S")
        what = each.message or each.evidence
        click.echo(
            f"{at} (+{each.time - done.began:.0f} s) {each.outcome}: {what}"
            + (f"  [{each.reason}]" if each.reason else "")
        )
    share = 100 * done.calls / done.naive_calls
    click.echo(
        f"{done.moments} moments in {done.seconds:.0f} s, {len(done.spoken)} said; {done.calls} model calls, "
        f"${done.dollars:.5f}; a call every 10 s would be {done.naive_calls} calls, ${done.naive_dollars:.5f} "
        f"({share:.1f} % of its calls were made)"
    )
    if done.not_looked_at:
        click.echo(
            f"not recorded what {done.not_looked_at} shell commands did to the files: what their text surely did was"
            " judged, and a file that it does not name was not"
        )
    if done.unfinished:
        click.echo(f"not judged: {done.unfinished} calls whose end was not recorded")


@click.command("eval")
@click.argument("cases", metavar="CASES|TYPE")
@click.option("--judge", default="", metavar="JUDGE", help="rules, model, rules+model, model:ID or a prompt's file.")
@click.option("--compare", nargs=2, default=None, metavar="A B", help="Two of these side by side.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def eval_command(cases: str, judge: str, compare: tuple[str, str] | None, as_json: bool) -> None:
    """Run labelled cases: precision, recall, latency, cost; exit code 1 when it spoke where it should not.

    CASES is a file of cases, or the name of a type that ships some.
    """
    from sidecars.tuning.evaluate import CASES_FILE, evaluate, load_cases
    from sidecars.type_reader.sidecar_type import variant
    from sidecars.type_reader.type_loader import load_type

    root, rig, settings = _settings()
    path = Path(cases)
    if not path.is_file():
        folders = load_type(cases, root, rig, Path.cwd()).folders
        path = next((file for folder in folders if (file := folder / CASES_FILE).is_file()), Path())
        if path == Path():
            raise NotFoundError("file of cases", cases, f"write {CASES_FILE} beside its sidecar.yaml")
    loaded = load_cases(path)
    kind = load_type(loaded[0].type, root, rig, Path.cwd())
    tell_withheld(kind.withheld)
    names = list(compare) if compare else [judge or kind.judge]
    scores = {name: evaluate(loaded, variant(kind, name), settings) for name in names}
    if as_json:
        print_json([_score_row(name, score) for name, score in scores.items()])
    else:
        _show_scores(loaded, scores)
    sys.exit(0 if all(score.precision == 1.0 for score in scores.values()) else 1)


def _score_row(name: str, score: Score) -> dict[str, Any]:
    return {
        "judge": name, "judged": score.judged, "cases": len(score.counted), "precision": round(score.precision, 4),
        "recall": round(score.recall, 4), "median_ms": round(score.median_seconds * 1000, 3),
        "dollars": round(score.dollars, 6),
        "results": [{"case": each.case.name, "expect": "signal" if each.case.signal else "silent", "spoke": each.spoke,
                     "right": each.right, "message": each.message} for each in score.results],
    }  # fmt: skip


def _show_scores(cases: list[Case], scores: dict[str, Score]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    names = list(scores)
    for index, case in enumerate(cases):
        results = [scores[name].results[index] for name in names]
        if all(each.right for each in results) and (len(names) == 1 or len({each.message for each in results}) == 1):
            continue
        console.print(f"[bold]{case.name}[/bold] (expected: {'signal' if case.signal else 'silent'}"
                      f"{', needs a ' + case.needs if case.needs else ''})")  # fmt: skip
        for name, each in zip(names, results, strict=True):
            said = each.message if each.spoke else f"silent{' - ' + each.message if each.message else ''}"
            console.print(
                f"  {name}: {'right' if each.right else 'WRONG' if each.spoke else 'missed'}: {said}", markup=False
            )
    table = [
        [
            name, score.judged, str(len(score.counted)), f"{score.precision:.3f}", f"{score.recall:.3f}",
            f"{score.median_seconds * 1000:.2f} ms", f"{score.dollars:.5f}",
        ]
        for name, score in scores.items()
    ]  # fmt: skip
    write_table(("judge", "judged by", "cases", "precision", "recall", "median", "dollars"), table)


@click.command("compile")
@click.argument("guide", type=click.Path(path_type=Path))
@click.option(
    "--name", default="", metavar="NAME", help="The type's name (default: the guide's own, in small letters)."
)
@click.option("--write", is_flag=True, help="Write .gt/sidecars/NAME in place of printing it.")
@click.option("--model", is_flag=True, help="Ask the sidecars' model about what no rule of ours expresses.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compile_command(guide: Path, name: str, write: bool, model: bool, as_json: bool) -> None:
    """Turn what a guide says into rules that cite its lines, each with two cases, for you to read and accept.

    Only what is proven is offered: the sentence stands in the guide, and both cases come out as labelled. What else
    asks for something is listed with the reason why it is left over.

    \b
    gt sidecar compile AGENTS.md
    gt sidecar compile AGENTS.md --write
    gt sidecar lint agents && gt sidecar eval agents
    """
    from sidecars.tuning.compile_guide import cases_text, check_name, type_text, write_type

    name = check_name(name or guide.stem.lower().lstrip("."))
    found = _compiled(guide, model)
    folder = Path(".gt") / "sidecars" / name
    if write and found.offers:
        write_type(found, folder)
    if as_json:
        print_json(
            {
                "guide": found.title,
                "type": name,
                "written": str(folder) if write and found.offers else None,
                "rules": [
                    {"name": each.rule.name, "line": each.line, "sentence": each.sentence, "by": each.by,
                     "breach": each.breach, "near": each.near} for each in found.offers
                ],
                "left": [{"line": each.line, "sentence": each.sentence, "reason": each.reason} for each in found.left],
            }
        )  # fmt: skip
    elif found.offers and not write:
        click.echo(f"# .gt/sidecars/{name}/sidecar.yaml\n{type_text(found)}\n# .gt/sidecars/{name}/cases.yaml")
        click.echo(cases_text(found), nl=False)
    lines = len({each.line for each in found.offers})
    click.echo(
        f"{found.title}: {len(found.offers)} rules from {lines} places, {len(found.left)} left over"
        + (f"; written: {folder}. Read it, then: gt sidecar lint {name}, gt sidecar eval {name}"
           if write and found.offers else ""),
        err=True,
    )  # fmt: skip
    if write and not as_json:
        for each in found.left:
            click.echo(f"left over: {found.title}:{each.line}: {each.sentence} ({each.reason})", err=True)


def _compiled(guide: Path, model: bool) -> Compiled:
    from sidecars.llm.client import Endpoint, ModelClient
    from sidecars.llm.reply import ModelFault
    from sidecars.tuning.compile_guide import compile_guide

    if not model:
        return compile_guide(guide, Path.cwd())
    _, _, settings = _settings()
    if not (key := find_key(settings)):
        raise UsageError(f"--model needs a key: none in {settings.key_env}, see 'gt key'")
    client = ModelClient(Endpoint(key, settings.model, settings.model_url, settings.prices))
    try:
        return compile_guide(guide, Path.cwd(), client)
    except ModelFault as error:
        raise UsageError(f"the model has proposed nothing: {error.reason}; without --model the rest is done") from error
    finally:
        client.close()
        spent = client.usage
        click.echo(f"{spent.calls} model calls, ${spent.dollars:.5f}", err=True)
