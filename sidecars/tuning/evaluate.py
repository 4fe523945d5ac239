"""Labelled cases, and whether a judge speaks where it must and is silent where it must be."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sidecars.observer.context.gather import PROMPT_FILE, gather
from sidecars.observer.factory import build_components
from sidecars.observer.judge.verdict import Judge, Verdict
from sidecars.observer.observe.recorded import RecordedEvent
from sidecars.tuning.replay import replay
from sidecars.type_reader.sidecar_type import SidecarType
from witness.assignment import Assignment
from witness.clock import SystemClock
from witness.config.settings import Settings
from witness.config.yaml_document import Document, load_yaml
from witness.errors import DeclarationError, Problem
from witness.events.effects import Effects
from witness.events.spool_reader import SpooledEvent
from witness.judging.observation import Observation
from witness.names import GroupId
from witness.process import ProcessId

CASES_FILE = "cases.yaml"
_SHARED = ("argument", "files", "task", "variables", "prompt", "type")
_OWN = ("name", "event", "events", "expect", "needs", "knowable", "say", "not_say")
# What was seen of the event, as the spool has it; beside the only event, or in each of several.
EFFECTS = ("changed", "created", "removed", "generated", "exit")
#: Every key of a case.
CASE_KEYS = frozenset([*_SHARED, *_OWN, *EFFECTS])


@dataclass(frozen=True, slots=True)
class Case:
    """One labelled case.

    Args:
        name: what it shows.
        type: the sidecar type.
        events: completed tool calls, as hooks tell them, with what was seen of them (``EFFECTS``).
        signal: whether something should be said.
        needs: the judge without which it cannot be known, empty when rules suffice.
        say: a text that must stand in what is said, empty when any will do.
        not_say: a text that must not stand there.
        argument, task, variables, prompt: as the sidecar would have them.
        files: the project's files by path.
    """

    name: str
    type: str
    events: tuple[Mapping[str, Any], ...]
    signal: bool
    needs: str = ""
    say: str = ""
    not_say: str = ""
    argument: str = ""
    task: str = ""
    prompt: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def load_cases(path: Path) -> list[Case]:
    """Read a file of cases.

    It holds ``cases``, a list; what several share may stand beside it and is overridden by a case's own.

    Raises:
        DeclarationError: it is missing or wrong.
    """
    if not path.is_file():
        raise DeclarationError([Problem("no such file", str(path))])
    document = load_yaml(path)
    problems: list[Problem] = []
    shared = {key: value for key, value in document.values.items() if key != "cases"}
    problems += [document.unknown(key, ["cases", *_SHARED]) for key in shared if key not in _SHARED]
    raw = document.values.get("cases")
    if not isinstance(raw, list) or not raw:
        problems.append(document.problem("must be a list of cases", "cases"))
        raw = []
    shared.setdefault("type", path.resolve().parent.name)
    cases = [case for index, each in enumerate(raw) if (case := _case(document, each, shared, index, problems))]
    if problems:
        raise DeclarationError(problems)
    return cases


def _case(document: Document, raw: Any, shared: Mapping[str, Any], index: int, problems: list[Problem]) -> Case | None:
    at = f"cases.{index}"
    if not isinstance(raw, dict):
        problems.append(document.problem("a case is a mapping with name, event and expect", at))
        return None
    before = len(problems)
    for key in raw:
        if key not in _SHARED + _OWN + EFFECTS:
            problems.append(document.unknown(f"{at}.{key}", _OWN + EFFECTS + _SHARED))
    events = raw.get("events", [raw["event"]] if "event" in raw else [])
    if (
        not isinstance(events, list)
        or not events
        or not all(isinstance(each, dict) and "tool" in each for each in events)
    ):
        problems.append(document.problem("give event: {tool: NAME, …its input}, or a list of them in events", at))
    elif "event" in raw:
        events = [{**raw["event"], **{key: raw[key] for key in EFFECTS if key in raw}}]
    if raw.get("expect") not in ("signal", "silent"):
        problems.append(document.problem("one of signal, silent", f"{at}.expect"))
    if raw.get("knowable", "rules") not in ("rules", "model"):
        problems.append(document.problem("one of rules, model", f"{at}.knowable"))
    if not isinstance(raw.get("name"), str):
        problems.append(document.problem("is missing", f"{at}.name"))
    if len(problems) > before:
        return None
    both = {**shared, **raw}
    return Case(
        name=raw["name"],
        type=str(both["type"]),
        events=tuple(events),
        signal=raw["expect"] == "signal",
        needs=str(raw.get("needs", "model" if raw.get("knowable") == "model" else "")),
        say=str(raw.get("say", "")),
        not_say=str(raw.get("not_say", "")),
        argument=str(both.get("argument", "")),
        task=str(both.get("task", "")),
        prompt=str(both.get("prompt", "")),
        variables=dict(both.get("variables") or {}),
        files={**(shared.get("files") or {}), **(raw.get("files") or {})},
    )


# Does a judge speak when it should, and stay silent when it should?

# What of a case's event is no input of the tool.
_NOT_GIVEN = frozenset(["tool", "failed", "response", "output", "subagent", "cwd", *EFFECTS])


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one case.

    Args:
        case: the case.
        spoke: whether something would have been said.
        message: what, or why not.
        seconds: how long the judge took.
        dollars: what it cost.
        judged: who has judged; without a key a type that wants a model runs on its rules.
        lack: why it was not who was asked for, empty when it was.
        shown: the model that has judged had it among its near misses, so it counts for nothing.
    """

    case: Case
    spoke: bool
    message: str
    seconds: float
    dollars: float
    judged: str = ""
    lack: str = ""
    shown: bool = False

    @property
    def right(self) -> bool:
        """Whether it did as labelled, in words that hold what they should."""
        if not self.spoke or not self.case.signal:
            return self.spoke == self.case.signal
        worded = self.case.say in self.message
        return worded and not (self.case.not_say and self.case.not_say in self.message)


@dataclass(frozen=True, slots=True)
class Score:
    """The figures of one judge over all cases."""

    results: tuple[Result, ...]

    def _count(self, *, spoke: bool, signal: bool) -> int:
        return sum(each.spoke is spoke and each.case.signal is signal for each in self.counted)

    @property
    def counted(self) -> tuple[Result, ...]:
        """All but those whose answer the judge was given."""
        return tuple(each for each in self.results if not each.shown)

    @property
    def precision(self) -> float:
        """The share of what was said that needed saying; 1 when nothing was said."""
        right, wrong = self._count(spoke=True, signal=True), self._count(spoke=True, signal=False)
        return right / (right + wrong) if right + wrong else 1.0

    @property
    def recall(self) -> float:
        """The share of what needed saying that was said; 1 when nothing needed saying."""
        right, missed = self._count(spoke=True, signal=True), self._count(spoke=False, signal=True)
        return right / (right + missed) if right + missed else 1.0

    @property
    def judged(self) -> str:
        """Who has judged, with the reason where that was not who was asked for."""
        return ", ".join(
            dict.fromkeys(f"{each.judged} ({each.lack})" if each.lack else each.judged for each in self.results)
        )

    @property
    def median_seconds(self) -> float:
        return statistics.median(each.seconds for each in self.results) if self.results else 0.0

    @property
    def dollars(self) -> float:
        return sum(each.dollars for each in self.results)


def evaluate(cases: Sequence[Case], kind: SidecarType, settings: Settings | None = None) -> Score:
    """Run a type over cases, each as a session of its own, with all its gates.

    Args:
        cases: labelled cases.
        kind: the type, with the judge, prompt or model to be measured.
        settings: the town's, for key and model.
    """
    return Score(tuple(_run(case, kind, settings or Settings()) for case in cases))


def _run(case: Case, kind: SidecarType, settings: Settings) -> Result:
    with tempfile.TemporaryDirectory(prefix="gt-eval-") as folder:
        root = Path(folder).resolve()
        assignment = assignment_of(case, root)
        parts = build_components(kind, gather(kind, assignment), settings, Path(assignment.workdir))
        moments = [_moment(at, event, Path(assignment.workdir)) for at, event in enumerate(case.events)]
        judge = _Timed(parts.judge)
        try:
            done = replay(replace(parts, judge=judge), assignment, moments)
        finally:
            judge.close()
    silent = next((each.reason for each in reversed(done.decisions) if each.outcome in ("refused", "failed")), "")
    return Result(
        case=case,
        spoke=bool(done.spoken),
        message="\n".join(each.message for each in done.spoken) if done.spoken else silent,
        seconds=judge.seconds,
        dollars=done.dollars,
        judged=parts.kind.judge,
        lack=parts.lack if parts.kind.judge != kind.judge else "",
        shown=parts.kind.asks_model and case.name in {each.case for each in kind.near_misses},
    )


class _Timed:
    """A judge with a watch: the replay's own clock stands still while it thinks."""

    def __init__(self, judge: Judge) -> None:
        self._judge, self._clock = judge, SystemClock()
        self.seconds = 0.0

    def close(self) -> None:
        self._judge.close()

    def sift(self, seen: Sequence[Observation]) -> tuple[list[Verdict], list[Observation]]:
        began = self._clock.monotonic()
        try:
            return self._judge.sift(seen)
        finally:
            self.seconds += self._clock.monotonic() - began

    def judge(self, seen: Sequence[Observation], said: Sequence[str] = ()) -> list[Verdict]:
        began = self._clock.monotonic()
        try:
            return self._judge.judge(seen, said)
        finally:
            self.seconds += self._clock.monotonic() - began


def _moment(at: int, event: Mapping[str, Any], workdir: Path) -> RecordedEvent:
    """A case's event as it would stand in a spool: with what was seen of the call, where the case says it."""
    time, id, payload = 1_000.0 + at, f"e{at}", payload_of(event)
    effects = None
    if any(key in event for key in EFFECTS):
        before = str(workdir / str(event.get("cwd", "")))
        payload["cwd"] = before
        effects = Effects.from_json({**event, "cwd_before": before})
    return RecordedEvent(time, id, payload, event=SpooledEvent(id, time, payload, effects=effects))


def payload_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """What a hook would have been given for a case's event."""
    failed = event.get("failed") or event.get("exit")
    payload = {
        "hook_event_name": "PostToolUseFailure" if failed else "PostToolUse",
        "tool_name": event["tool"],
        "tool_input": {key: value for key, value in event.items() if key not in _NOT_GIVEN},
        "tool_response": event.get("response", event.get("output", "")),
    }
    if event.get("subagent"):
        payload["agent_id"], payload["agent_type"] = "1", event["subagent"]
    return payload


def assignment_of(case: Case, root: Path) -> Assignment:
    """A sidecar's assignment for one case, with the case's files in place below ``root``."""
    workdir, run_dir = root / "work", root / "run"
    workdir.mkdir()
    run_dir.mkdir()
    for name, text in case.files.items():
        path = workdir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if case.prompt:
        (run_dir / PROMPT_FILE).write_text(case.prompt, encoding="utf-8")
    return Assignment(
        group=GroupId("main", "case", "run"),
        name=case.type,
        type=case.type,
        argument=case.argument,
        session="",
        socket="",
        town="",
        workdir=str(workdir),
        run_dir=str(run_dir),
        journal="",
        queue="",
        agent=ProcessId(0, 0),
        task=case.task,
        variables={name: str(value) for name, value in case.variables.items()},
    )
