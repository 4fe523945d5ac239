"""Looking over a sidecar type before it is trusted, and saying in words what its rules do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sidecars.observer.context.files import read_text
from sidecars.observer.inject.deliver import LONGEST
from sidecars.observer.judge.verdict import placeholders, stands_in
from sidecars.tuning.evaluate import CASES_FILE, load_cases
from sidecars.type_reader.sidecar_type import NearMiss, Rule, SidecarType
from sidecars.type_reader.type_loader import load_type
from witness.errors import Problem, UsageError
from witness.prices import price

_KNOWN_SETS = frozenset(["@files", "@not"])
# Text that reads as an order can set off the agent's defence against injected instructions; facts do not.
_ORDER = re.compile(
    r"^(please|do not|don't|never|always|stop|use|you (must|should)|remember|make sure|ensure)\b", re.IGNORECASE
)
_CHARACTERS_PER_TOKEN = 3.1
_LINES_OF_A_SENTENCE = 12
# Emphasis and the marks of lists, which a quotation leaves out.
_MARKUP = re.compile(r"[*_]{1,2}|^\s*(?:[-+>]|\d+[.)])\s")


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a look over one type.

    Args:
        type: the type.
        warnings: what is legal and was probably not meant.
        rules: each rule in words, in the order in which they are tried.
    """

    type: SidecarType
    warnings: tuple[Problem, ...]
    rules: tuple[str, ...]


def lint(place: str, town: Path | None = None, rig: str = "", workdir: Path | None = None) -> Finding:
    """Look over a type.

    Args:
        place: its name, its folder, or a file in it.
        town, rig, workdir: where layers of types are looked for.

    Raises:
        NotFoundError: there is no such type.
        DeclarationError: it is wrong; every fault with file, line and key.
    """
    path = Path(place)
    folder = path if path.is_dir() else path.parent
    if path.exists() and (folder / "sidecar.yaml").is_file():
        # A folder anywhere is looked over as the project's own.
        kind = load_type(folder.resolve().name, town, rig, workdir, own=folder, believe=True)
    elif "/" in place or path.suffix:
        raise UsageError(f"{place}: no sidecar.yaml there: name the folder of the type, which holds one")
    else:
        kind = load_type(place, town, rig, workdir, believe=True)
    warnings = (*_warnings(kind), *_stale_citations(kind, workdir or Path.cwd()))
    return Finding(kind, warnings, tuple(explain(rule) for rule in kind.rules))


def _warnings(kind: SidecarType) -> list[Problem]:
    found: list[Problem] = []

    def problem(message: str, key: str) -> Problem:
        origin = kind.origins.get(key) or kind.origins.get(key.partition(".")[0], kind.name)
        file, _, line = origin.rpartition(":")
        return Problem(message, file or line, int(line) if file and line.isdigit() else 0, key)

    def warn(message: str, key: str) -> None:
        found.append(problem(message, key))

    used = {rule.snippet for rule in kind.rules}
    for name, text in kind.snippets.items():
        if name not in used and not kind.asks_model:
            warn("no rule says it", f"snippets.{name}")
        if len(text) > LONGEST:
            warn(f"{len(text)} characters; what is said is cut at {LONGEST}", f"snippets.{name}")
        if _ORDER.match(text):
            warn("reads as an order; state the fact, the agent draws the conclusion", f"snippets.{name}")
    for index, rule in enumerate(kind.rules):
        for name in placeholders(kind.snippets.get(rule.snippet, rule.say)):
            if name not in _values(rule):
                warn(
                    f"rule {rule.name!r} has no value for {{{name}}}; it has {', '.join(_values(rule))}",
                    f"rules.{index}",
                )
        for glob in rule.opens + rule.writes + rule.touches + rule.writes_outside + rule.touches_outside:
            if glob.startswith("@") and glob not in _KNOWN_SETS:
                warn(f"{glob} is no set; known are {', '.join(sorted(_KNOWN_SETS))}", f"rules.{index}")
    if kind.asks_model:
        found += [
            problem(fault, f"near_misses.{index}")
            for index, miss in enumerate(kind.near_misses)
            if (fault := _no_near_miss(miss, kind))
        ]
        tokens = round(len(kind.prompt) / _CHARACTERS_PER_TOKEN)
        least = price(kind.model or "claude-haiku-5-5").cache_minimum
        if tokens < least and not kind.context:
            warn(f"about {tokens} tokens and no context: below the model's cache minimum of {least}", "prompt")
    return found


def _stale_citations(kind: SidecarType, workdir: Path) -> Iterator[Problem]:
    """Rules that cite a line of the project which is not there, or does not say what they quote."""
    for index, rule in enumerate(kind.rules):
        cited, _, line = rule.cites.rpartition(":")
        if not cited:
            continue
        path = workdir / cited
        quote = rule.say.rpartition("“")[2].partition("”")[0]
        # A sentence may go on in the lines that follow.
        lines = read_text(path).splitlines()[int(line) - 1 :][:_LINES_OF_A_SENTENCE] if path.is_file() else []
        text = " ".join(_MARKUP.sub("", each) for each in lines).replace("{", "(").replace("}", ")")
        if not lines or (quote and not stands_in(quote, [text])):
            file, _, at = rule.source.rpartition(":")
            yield Problem(f"{rule.cites} does not say so any more", file, int(at or 0), f"rules.{index}.cites")


def _no_near_miss(miss: NearMiss, kind: SidecarType) -> str:
    """Why something is no silent case of the type's own, empty when it is."""
    path = next((file for folder in kind.folders if (file := folder / CASES_FILE).is_file()), None)
    if path is None:
        return f"{miss.case!r} is no case: there is no {CASES_FILE} beside it"
    case = next((each for each in load_cases(path) if each.name == miss.case), None)
    if case is None:
        return f"{path} has no case {miss.case!r}"
    if case.signal:
        return f"the case {miss.case!r} expects a signal"
    actions = [" ".join(str(value) for value in event.values()) for event in case.events]
    return "" if stands_in(miss.seen, actions) else f"no action of the case {miss.case!r} has {miss.seen!r}"


def _values(rule: Rule) -> list[str]:
    values = ["tool"]
    if rule.opens or rule.writes or rule.touches or rule.writes_outside or rule.touches_outside or rule.changes:
        values += ["path", "done", "set"]
    if rule.creates:
        values += ["path", "done", "set"]
    if rule.runs:
        values.append("ran")
    if rule.adds_dependency:
        values += ["path", "done", "name"]
    if rule.named:
        values += ["name", "match"]
    if rule.command or rule.text or rule.output or rule.code or rule.comments:
        values.append("match")
    if rule.lines_over >= 0 or rule.function_over:
        values.append("lines")
    if rule.function_over:
        values += ["name", "match"]
    if rule.lacks_block:
        values += ["block", "content"]
    if rule.defines:
        values += ["name", "api", "match"]
    if rule.after:
        values.append("after")
    if rule.repeats:
        values += ["times", "since", "command", "call", "failure", "path", "done"]
    return list(dict.fromkeys(values))


def _repeated(rule: Rule) -> str:
    each = rule.repeats
    return (
        f"it is time {each.times} of it within {each.within:g} s with the same {' and '.join(each.same)}"
        if each
        else ""
    )


def _earlier(rule: Rule | None) -> str:
    return ", and ".join(_conditions(rule)) if rule else ""


def explain(rule: Rule) -> str:
    """A rule in words."""
    parts = _conditions(rule)
    head = f"{rule.name} ({rule.confidence}{', once a run' if rule.once else ''})"
    given = f" where the project's documents have /{rule.given}/," if rule.given else ""
    return f"{head}:{given} fires when {', and '.join(parts)}; says {rule.snippet or 'its own words'}"


def _conditions(rule: Rule) -> list[str]:
    parts = [f"{_listed(rule.tools)} was called" if rule.tools else "any tool was called"]
    if rule.failed is not None:
        parts.append("it failed" if rule.failed else "it did not fail")
    excepted = f" (never counted: {_listed(rule.but_not)})" if rule.but_not else ""
    for globs, words in (
        (rule.opens, "a file was opened that matches"),
        (rule.writes, "a file was written that matches"),
        (rule.touches, "a file was opened or written that matches"),
        (rule.writes_outside, "a file was written that matches none of"),
        (rule.touches_outside, "a file was opened or written that matches none of"),
        (rule.creates, "a file was made that matches"),
        (rule.changes, "a file that stood there before was changed or removed that matches"),
    ):
        if globs:
            parts.append(f"{words} {_listed(globs)}{excepted}")
    over = f" in more than {rule.lines_over} lines" if rule.lines_over > 0 else ""
    told = (
        (rule.within, f"the file is within {_listed(rule.within)}"),
        (rule.runs, f"a program ran as in {_listed(rule.runs)}"),
        (rule.adds_dependency, "a manifest names a package that it did not name before"),
        (rule.named, f"the name of a new function has /{rule.named}/"),
        (rule.command, f"the shell command has /{rule.command}/"),
        (rule.text, f"the new text has /{rule.text}/"),
        (rule.output, f"the answer has /{rule.output}/"),
        (rule.code, f"the new code has /{rule.code}/"),
        (rule.comments, f"the new comments have /{rule.comments}/"),
        (rule.lines_over >= 0 and not rule.defines, f"more than {rule.lines_over} lines were written"),
        (rule.function_over, f"a function of more than {rule.function_over} lines was written"),
        (rule.lacks_block, f"the prompt has no {rule.lacks_block} block and there is one to give"),
        (rule.block_has, f"that block has /{rule.block_has}/"),
        (rule.defines, f"a name is defined{over} that the argument's files define already"),
        (rule.undoes, "an edit was taken back or made again"),
        (rule.repeats, _repeated(rule)),
        (rule.after, f"an action came before in which {_earlier(rule.after)}"),
        (rule.since_last, f"counted since the last action in which {_earlier(rule.since_last)}"),
        (rule.unless, f"nothing in the action has /{rule.unless}/"),
    )
    return parts + [words for holds, words in told if holds]


def _listed(globs: tuple[str, ...]) -> str:
    return "".join(globs) if len(globs) < 2 else f"{', '.join(globs[:-1])} or {globs[-1]}"
