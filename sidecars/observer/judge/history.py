"""Conditions of rules that look further than one action: how often, since what, after what, undone.

A rule that asks for any of these has one ``History``. Each action of the run passes by it once, in order, whether or
not the rule's other conditions hold, so that it knows when to begin anew (``since_last``) and what came before
(``after``, ``undoes``). Where the other conditions hold, ``count`` says whether these do too.

What is alike is a key made of the parts that ``repeats.same`` names. Of a failure that is the lines that tell it,
without what differs from run to run (durations, addresses, times of day, places in a file); how many tests failed stays
in, because fewer is progress. A history is bounded whatever a run does: the keys that were met least recently are
forgotten first. It lives with its process: a sidecar that is started again counts from there on.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from hashlib import blake2b

from sidecars.observer.judge.action_conditions import Values
from sidecars.type_reader.sidecar_type import Rule
from witness.judging.observation import Observation

_KEYS = 256
_EDITS = 512
_LONGEST = 160
_LINES = 20
_SHOWN_COMMAND = 80


class History:
    """What one rule remembers of a run.

    Args:
        rule: the rule; ``repeats``, ``since_last``, ``after`` and ``undoes`` are what counts here.
        begins_anew: whether an action is one that ``since_last`` speaks of.
        came_before: whether an action is one that ``after`` speaks of.
    """

    def __init__(
        self,
        rule: Rule,
        begins_anew: Callable[[Observation], bool] | None = None,
        came_before: Callable[[Observation], bool] | None = None,
    ) -> None:
        self._rule, self._begins_anew, self._came_before = rule, begins_anew, came_before
        self._times: OrderedDict[Hashable, deque[float]] = OrderedDict()
        # By file and the two texts: which of them was replaced last.
        self._edits: OrderedDict[tuple[str, ...], str] = OrderedDict()
        self._states: OrderedDict[str, str] = OrderedDict()
        self._before: Observation | None = None
        self._undone, self._pair = False, ""

    def pass_by(self, seen: Observation) -> None:
        """Take in an action, whatever it is; before ``count`` is asked about it."""
        if self._begins_anew and self._begins_anew(seen):
            self._times.clear()
            self._before = None
        repeats = self._rule.repeats
        if repeats and self._rule.failed and not seen.failed and not seen.untold:
            # It works now: the next failure is a new one.
            worked = _key(seen, [part for part in repeats.same if part != "failure"])
            for key in [key for key in self._times if isinstance(key, tuple) and key[: len(worked)] == worked]:
                del self._times[key]
        if self._rule.undoes or (repeats and "edit" in repeats.same):
            self._undone, self._pair = self._undoes(seen)

    def count(self, seen: Observation) -> Sequence[Values]:
        """Whether these conditions hold at an action for which all others do, and the values for its words."""
        values: Values = {}
        before = self._before
        if self._came_before and self._came_before(seen):
            self._before = seen
        if self._came_before:
            if before is None:
                return ()
            values["after"] = _short_command(before) or before.tool
        if self._rule.undoes and not self._undone:
            return ()
        repeats = self._rule.repeats
        if not repeats:
            return [values or {"times": "1"}]
        signature, line = _failure(seen) if "failure" in repeats.same else ("", "")
        key = _key(seen, [part for part in repeats.same if part not in ("failure", "edit")])
        if "edit" in repeats.same:
            key = (*key, self._pair)
        times = self._times.setdefault((*key, signature) if signature else key, deque(maxlen=max(repeats.times, 64)))
        self._times.move_to_end((*key, signature) if signature else key)
        while len(self._times) > _KEYS:
            self._times.popitem(last=False)
        while times and seen.time - times[0] > repeats.within:
            times.popleft()
        times.append(seen.time)
        if len(times) < repeats.times:
            return ()
        values |= {
            "times": str(len(times)),
            "since": time.strftime("%H:%M", time.localtime(times[0])),
            "command": _short_command(seen),
            "call": _short_command(seen) or f"{seen.tool} {seen.given}"[:_SHOWN_COMMAND].strip(),
            "failure": line,
            # What it is told of only once: not the wording of this one time.
            "name": " ".join([_digest(repr(key)), signature]).strip()[:_LONGEST],
        }
        if path := next(iter(seen.paths), ""):
            values |= {"path": path, "done": seen.done()[path]}
        return [values]

    def note(self, seen: Observation) -> None:
        """Take in what ``after`` waits for, where ``count`` was not asked about the action."""
        if self._came_before and self._came_before(seen):
            self._before = seen

    def _undoes(self, seen: Observation) -> tuple[bool, str]:
        """Whether an edit puts back what an earlier one has replaced; and what the two have in common."""
        if len(seen.written) != 1 or not seen.text or seen.command:
            return False, ""
        path, new = seen.written[0], _digest(seen.text)
        old = _digest(seen.replaced) if seen.replaced else self._states.get(path, "")
        if not seen.replaced:
            _remember(self._states, path, new)
        if not old or old == new:
            return False, ""
        pair = (path, *sorted((old, new)))
        undone = self._edits.get(pair) == new
        _remember(self._edits, pair, old)
        return undone, " ".join(pair)


def _remember(store: OrderedDict, key: Hashable, value: object) -> None:  # type: ignore[type-arg]
    store[key] = value
    store.move_to_end(key)
    while len(store) > _EDITS:
        store.popitem(last=False)


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


# What is alike.


def _key(seen: Observation, parts: Sequence[str]) -> tuple[str, ...]:
    # What a subagent does is its own circle.
    return (seen.subagent_id, *(_PARTS[part](seen) for part in parts))


def _call(seen: Observation) -> str:
    """The tool with what it was given, as far as an observation tells it."""
    given = (seen.tool, seen.given, seen.command, seen.opened, seen.text, seen.replaced)
    return _digest(repr(given if seen.given or seen.command else (*given, seen.written)))


def _command(seen: Observation) -> str:
    """A command without what only shortens its answer and without the way to its folder."""
    text = " ".join(seen.command.split())
    text = _TAIL.sub("", _INTO.sub("", text))
    return text or seen.tool


_INTO = re.compile(r"^(?:cd [^;&|]+ ?&& ?)+")
_TAIL = re.compile(r"(?: ?2>&1| ?\|& ?(?:tail|head|cat|tee)\b[^|;&]*| ?\| ?(?:tail|head|cat|tee)\b[^|;&]*)+$")

_PARTS: dict[str, Callable[[Observation], str]] = {
    "tool": lambda seen: seen.tool,
    "command": _command,
    "path": lambda seen: " ".join(seen.paths),
    "call": _call,
    "output": lambda seen: _digest(_plain(seen.output)),
}


def _short_command(seen: Observation) -> str:
    text = _command(seen) if seen.command else ""
    return text if len(text) <= _SHOWN_COMMAND else text[: _SHOWN_COMMAND - 1] + "…"


# How a failure is told. The strong words come at the head of a line of their own; the weak ones stand in it somewhere.
_STRONG = re.compile(
    r"^(?:E\s+)?(?:[\w.$:-]*(?:Error|Exception)\b|(?:npm )?err(?:or)?\b|fatal:|panic:|FAILED |FAIL\b|✕|×|--- FAIL|"
    r"thread '.*' panicked|make: \*\*\*)|\berror(?:\[\w+\]| TS\d+)?:|[Cc]annot find|[Nn]o such file|command not found",
    re.MULTILINE,
)
_WEAK = re.compile(
    r"error|fail|exception|cannot|can't|not found|no such|undefined|denied|refused|assert|expected|unable|invalid|"
    r"unknown|missing|timed? ?out",
    re.IGNORECASE,
)
_VARYING = re.compile(
    r"0x[0-9a-fA-F]+|\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?Z?)?|\b\d\d:\d\d:\d\d(?:\.\d+)?|"
    r"\b\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|sec|secs|seconds?|min|minutes?)\b|(?<=:)\d+(?::\d+)?\b|\(\d+(?:,\d+)?\)|"
    r"\blines? \d+\b|\bpid \d+|\[\d+\]|/tmp/\S+|/var/folders/\S+|\b[0-9a-f]{12,40}\b"
)


def _plain(text: str) -> str:
    return _VARYING.sub("·", text)


def _failure(seen: Observation) -> tuple[str, str]:
    """What a failure has in common with others of its kind, and the line that tells it best; empty for a success."""
    if not seen.failed:
        return "", ""
    lines = [" ".join(line.split()) for line in seen.output.splitlines() if line.strip()]
    telling = [line for line in lines if _STRONG.search(line)] or [line for line in lines if _WEAK.search(line)]
    chosen = telling[:_LINES] or lines[-_LINES:]
    # In the order of the alphabet: runners that work in parallel tell the same failures in another one.
    signature = _digest("\n".join(sorted({_plain(line) for line in chosen})))
    return f"failure {signature}", (telling or lines[-1:] or ["no words"])[0][:_LONGEST]
