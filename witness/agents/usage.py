"""What an agent's own model calls cost, as the transcript that its client writes tells it.

A transcript grows, and may be long; so each is read on from where the last reading ended, and what was counted is kept
in the run's folder (``usage.json``): a command that looks once reads what is new, and after the end the figures stay.

Claude Code writes a line for each block of a message, and the message's whole usage into each of them: the last line of
a message counts. Its subagents have transcripts of their own beside it (``SESSION/subagents/agent-*.jsonl``), which
cost as well. Codex writes the session's total into ``token_count`` lines; the last one counts, less what had been used
before this run began. Of other clients nothing is known.

The files are the client's and may say anything: numbers are bounded, names are shown without control characters, and
what is no record is passed over. A reading may hang with the disk: whoever must not wait reads in a thread.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from witness.files import parse_json, read_bytes, read_from, replace_file
from witness.prices import STEP, STEP_FACTOR, Prices, known_price

#: What was counted so far, in the run's folder.
COUNTED = "usage.json"
_VERSION = 1
_COUNTED_MOST = 4 << 20
# Bytes of a transcript that one look reads; as long as more is left, nothing is told.
_CHUNK = 64 << 20
_FILES_MOST = 1000
_TOKENS_MOST = 10**12
# Messages whose later lines may still come; the blocks of one stand close together.
_RECENT = 32
_DEPTH = 200
_NAME_MOST = 80
# A cache entry that is kept for an hour costs twice the plain input.
_HOUR_FACTOR = 2.0
_LONG = " long"


@dataclass(frozen=True, slots=True)
class AgentUsage:
    """What the agent itself has used in a run; its sidecars' calls are not in it.

    Args:
        input_tokens, cached_tokens, cache_written_tokens, output_tokens: as its client counted them, subagents too.
        dollars: by the price list and the town's own prices, None where a model's price is not known.
        models: that were asked.
        context_tokens: that its conversation holds now, None before the first answer.
        context_share: of the model's window that this is, 0 to 1; None where the window is not known.
        transcript: where its session is recorded.
    """

    input_tokens: int
    cached_tokens: int
    cache_written_tokens: int
    output_tokens: int
    dollars: float | None
    models: tuple[str, ...]
    context_tokens: int | None
    context_share: float | None
    transcript: str

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.input_tokens + self.cached_tokens + self.cache_written_tokens + self.output_tokens


@dataclass(slots=True)
class _Counts:
    """Tokens of one model: plain, from the cache, into it for five minutes and for an hour, and those of answers."""

    input: int = 0
    cached: int = 0
    written: int = 0
    hour: int = 0
    output: int = 0

    def add(self, other: _Counts, sign: int = 1) -> None:
        for key in self.__slots__:
            setattr(self, key, min(max(getattr(self, key) + sign * getattr(other, key), 0), _TOKENS_MOST))

    def as_list(self) -> list[int]:
        return [getattr(self, key) for key in self.__slots__]


@dataclass(slots=True)
class _File:
    """How far one transcript was read, and what it told."""

    inode: int = 0
    offset: int = 0
    whole: bool = False
    counts: dict[str, _Counts] = field(default_factory=dict)
    recent: dict[str, tuple[str, list[int]]] = field(default_factory=dict)
    model: str = ""
    context: int | None = None
    window: int | None = None
    base: list[int] = field(default_factory=list)


class UsageReader:
    """Reads on what one run has used.

    Args:
        run_dir: the run's folder; what was counted is kept there.
        since: wall clock of the run's begin: what a session had used before is not this run's.
    """

    def __init__(self, run_dir: Path, since: float) -> None:
        self._run_dir, self._since = run_dir, since
        self._files = _kept(run_dir)
        self._last = next(reversed(self._files), "") if self._files else ""

    @property
    def has_counted(self) -> bool:
        """Whether anything was counted yet."""
        return bool(self._files)

    def read(self, transcript: str = "", prices: Prices | None = None) -> AgentUsage | None:
        """What was used up to now.

        Args:
            transcript: that the client has named last; one that was named before when empty.
            prices: the town's own.

        Returns:
            None where nothing is known: no transcript, one that cannot be read or holds no usage, or one of which more
            is left than one look reads.
        """
        main = transcript or self._last
        if not main:
            return None
        if transcript and transcript != self._last:
            # Kept in order, the newest last: after a start of the session anew its predecessor's figures stay.
            self._files[transcript] = self._files.pop(transcript, _File())
            self._last = transcript
        mains = [path for path in self._files if _stem(path) == path or path == main] or [main]
        changed = False
        for path in [*mains, *_subagents(main)]:
            if len(self._files) >= _FILES_MOST and path not in self._files:
                return None
            changed |= self._read_on(path)
        if changed:
            with suppress(OSError):
                replace_file(self._run_dir / COUNTED, self._as_json(), durable=False, below=self._run_dir.parent)
        if not all(each.whole for each in self._files.values()):
            return None
        return self._total(main, prices)

    def _read_on(self, path: str) -> bool:
        """Whether there was something new."""
        known = self._files.setdefault(path, _File())
        try:
            status = os.lstat(path)
            if (status.st_ino, status.st_size) == (known.inode, known.offset):
                known.whole = True
                return False
            if status.st_ino != known.inode or status.st_size < known.offset:
                known = self._files[path] = _File(status.st_ino)
            data = read_from(path, known.offset, _CHUNK)
        except (OSError, ValueError):
            known.whole = True  # it went, or is not there yet: what it told before stays true
            return False
        whole, newline, rest = data.rpartition(b"\n")
        if not newline and len(data) == _CHUNK:
            whole, newline, rest = b"", b"", b""  # one line without an end: nothing of ours
            known.offset += _CHUNK
        for line in whole.split(b"\n"):
            _take_in(known, line, self._since)
        known.offset += len(whole) + len(newline)
        known.whole = known.offset + len(rest) >= status.st_size
        return bool(newline)

    def _total(self, main: str, prices: Prices | None) -> AgentUsage | None:
        total, dollars, models = _Counts(), 0.0, dict[str, None]()
        unpriced = False
        for each in self._files.values():
            for key, counts in each.counts.items():
                model = key.removesuffix(_LONG)
                total.add(counts)
                models[model] = None
                cost = _dollars(key, counts, prices)
                unpriced |= cost is None
                dollars += cost or 0.0
        if not models:
            return None
        now = self._files.get(main) or _File()
        window = now.window or _window(now.model, prices)
        share = round(now.context / window, 4) if now.context is not None and window else None
        return AgentUsage(
            input_tokens=total.input,
            cached_tokens=total.cached,
            cache_written_tokens=total.written + total.hour,
            output_tokens=total.output,
            dollars=None if unpriced else round(dollars, 6),
            models=tuple(models),
            context_tokens=now.context,
            context_share=share if share is not None and share <= 1 else None,
            transcript=main,
        )

    def _as_json(self) -> bytes:
        files = {
            path: {
                "inode": each.inode, "offset": each.offset, "model": each.model, "context": each.context,
                "window": each.window, "base": each.base, "recent": each.recent,
                "counts": {model: counts.as_list() for model, counts in each.counts.items()},
            }
            for path, each in self._files.items()
            if each.inode
        }  # fmt: skip
        return json.dumps({"version": _VERSION, "files": files}).encode()


def _kept(run_dir: Path) -> dict[str, _File]:
    """What an earlier reader has counted; nothing where it is not as we wrote it."""
    try:
        raw = parse_json(read_bytes(run_dir / COUNTED, _COUNTED_MOST, below=run_dir.parent))
        if raw["version"] != _VERSION:
            return {}
        return {
            str(path): _File(
                _number(each["inode"], 1 << 64),
                _number(each["offset"], 1 << 60),
                False,
                {str(model): _Counts(*map(_number, counts)) for model, counts in each["counts"].items()},
                {str(id): (str(key), [*map(_number, counts)]) for id, (key, counts) in each["recent"].items()},
                str(each["model"]),
                None if each["context"] is None else _number(each["context"]),
                None if each["window"] is None else _number(each["window"]),
                [_number(one) for one in each["base"]],
            )
            for path, each in raw["files"].items()
        }  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _stem(path: str) -> str:
    """The path itself for a session's own transcript, that of the session for a subagent's."""
    parent = os.path.dirname(path)  # noqa: PTH120 - a path of a stranger, only compared
    return f"{os.path.dirname(parent)}.jsonl" if parent.endswith("/subagents") else path  # noqa: PTH120


def _subagents(transcript: str) -> Iterator[str]:
    folder = Path(transcript.removesuffix(".jsonl"), "subagents")
    with suppress(OSError, ValueError):
        yield from sorted(
            str(path) for path in folder.iterdir() if path.name.startswith("agent-") and path.suffix == ".jsonl"
        )


# -- one line of a transcript ---------------------------------------------------------------------------------------


def _take_in(known: _File, line: bytes, since: float) -> None:
    codex = b'"token_count"' in line or b'"turn_context"' in line
    if not codex and not (b'"usage"' in line and b'"assistant"' in line):
        return
    with suppress(ValueError, KeyError, TypeError, AttributeError, OverflowError):
        entry = parse_json(line, _DEPTH)
        when = datetime.fromisoformat(str(entry["timestamp"])).timestamp()
        if codex:
            _codex_line(known, entry["payload"], entry["type"], before=when < since)
        elif entry["type"] == "assistant" and when >= since:
            _claude_line(known, entry["message"], side=bool(entry.get("isSidechain")))


def _claude_line(known: _File, message: Mapping[str, Any], *, side: bool) -> None:
    usage, model = message["usage"], _name(message["model"])
    if model == "<synthetic>":  # the client's own words, for which no model was asked
        return
    kept = usage.get("cache_creation") or {}
    hour = _number(kept.get("ephemeral_1h_input_tokens") or 0)
    written = _number(usage.get("cache_creation_input_tokens") or 0)
    cached, output = _number(usage.get("cache_read_input_tokens") or 0), _number(usage["output_tokens"])
    counts = _Counts(_number(usage["input_tokens"]), cached, max(written - hour, 0), hour, output)
    context = counts.input + counts.cached + counts.written + counts.hour
    price = known_price(model)
    key = model + (_LONG if price and price.stepped and context > STEP else "")
    id = _name(message["id"])
    if id in known.recent:
        before, numbers = known.recent.pop(id)
        known.counts[before].add(_Counts(*numbers), -1)
    known.counts.setdefault(key, _Counts()).add(counts)
    known.recent[id] = (key, counts.as_list())
    while len(known.recent) > _RECENT:
        del known.recent[next(iter(known.recent))]
    if not side:
        known.model, known.context = model, context + counts.output


def _codex_line(known: _File, payload: Mapping[str, Any], kind: str, *, before: bool) -> None:
    if kind == "turn_context":
        known.model = _name(payload["model"])
        return
    if payload["type"] != "token_count":
        return
    info = payload["info"]
    total, last = info["total_token_usage"], info["last_token_usage"]
    cached = _number(total.get("cached_input_tokens") or 0)
    numbers = [max(_number(total["input_tokens"]) - cached, 0), cached, 0, 0, _number(total["output_tokens"])]
    if before:
        known.base = numbers
        return
    used = _Counts(*numbers)
    used.add(_Counts(*known.base), -1)
    known.counts = {known.model or "unknown": used}
    known.context = _number(last["total_tokens"])
    known.window = _number(info.get("model_context_window") or 0) or None


def _number(value: object, most: int = _TOKENS_MOST) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError("no count")
    return value


def _name(value: object) -> str:
    text = str(value)[:_NAME_MOST]
    if not text.isprintable():
        raise ValueError("no name")
    return text


# -- prices ---------------------------------------------------------------------------------------------------------


def _dollars(key: str, counts: _Counts, prices: Prices | None) -> float | None:
    price = known_price(key.removesuffix(_LONG), prices)
    if price is None:
        return None
    factor = STEP_FACTOR if key.endswith(_LONG) and price.stepped else 1.0
    parts: Iterable[tuple[int, float]] = (
        (counts.input, price.input),
        (counts.cached, price.cached),
        (counts.written, price.written),
        (counts.hour, price.input * _HOUR_FACTOR),
        (counts.output, price.output),
    )
    return factor * sum(number * each for number, each in parts) / 1_000_000


def _window(model: str, prices: Prices | None) -> int | None:
    price = known_price(model) or known_price(model, prices)
    return price.window if price else None
