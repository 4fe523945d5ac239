"""What an agent has used, read from transcripts as the clients write them."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from witness.agents.usage import COUNTED, UsageReader
from witness.events.session_transcript import session_transcript
from witness.events.spool_reader import append_event

_BEGAN = 1_790_000_000.0


def _when(seconds: float = 10.0) -> str:
    return datetime.fromtimestamp(_BEGAN + seconds, UTC).isoformat().replace("+00:00", "Z")


def _answer(id: str, usage: dict[str, Any], model: str = "claude-opus-5-5", at: float = 10.0, **more: Any) -> str:
    message = {"id": id, "model": model, "role": "assistant", "content": [], "usage": usage}
    return json.dumps({"type": "assistant", "timestamp": _when(at), "message": message, **more}) + "\n"


def _usage(plain: int = 0, out: int = 0, cached: int = 0, written: int = 0, hour: int = 0) -> dict[str, Any]:
    return {
        "input_tokens": plain, "output_tokens": out, "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written + hour,
        "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": hour},
    }  # fmt: skip


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "r1"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def _read(run_dir: Path, transcript: Path, **prices: Any) -> Any:
    return UsageReader(run_dir, _BEGAN).read(str(transcript), prices.get("prices"))


def test_a_message_counts_once_and_as_its_last_line_says(run_dir: Path, transcript: Path) -> None:
    transcript.write_text(
        _answer("a", _usage(10, 1, 100_000, 1000))
        + json.dumps({"type": "user", "timestamp": _when(), "message": {"content": 'the words "usage" "assistant"'}})
        + "\n"
        + _answer("b", _usage(5, 7))
        + _answer("a", _usage(10, 500, 100_000, 1000))
        + _answer("c", _usage(), model="<synthetic>")
    )
    found = _read(run_dir, transcript)
    assert (found.input_tokens, found.cached_tokens, found.cache_written_tokens) == (15, 100_000, 1000)
    assert (found.output_tokens, found.tokens, found.models) == (507, 101_522, ("claude-opus-5-5",))
    assert found.dollars == pytest.approx((15 * 4 + 100_000 * 0.2 + 1000 * 5 + 507 * 20) / 1e6)
    assert (found.context_tokens, found.context_share) == (101_510, 0.1015)


def test_it_is_read_on_and_kept_after_the_transcript_went(run_dir: Path, transcript: Path) -> None:
    transcript.write_text(_answer("a", _usage(10, 1)) + _answer("b", _usage(1, 1)))
    reader = UsageReader(run_dir, _BEGAN)
    first = reader.read(str(transcript))
    assert first
    assert first.tokens == 13
    with transcript.open("a") as file:
        file.write(
            _answer("b", _usage(1, 20)) + _answer("c", _usage(2, 2))[:-1]
        )  # the last line is still being written
    for each in (reader, UsageReader(run_dir, _BEGAN)):
        found = each.read(str(transcript))
        assert found
        assert found.tokens == 32
    transcript.unlink()
    kept = UsageReader(run_dir, _BEGAN).read()
    assert kept
    assert (kept.tokens, kept.transcript) == (32, str(transcript))


def test_only_this_run_and_all_of_its_sessions_count(run_dir: Path, transcript: Path) -> None:
    transcript.write_text(_answer("old", _usage(1000, 1000), at=-60) + _answer("a", _usage(1, 1)))
    reader = UsageReader(run_dir, _BEGAN)
    reader.read(str(transcript))
    other = transcript.with_name("other.jsonl")
    other.write_text(_answer("b", _usage(10, 10)))
    found = reader.read(str(other))
    assert found
    assert (found.tokens, found.context_tokens, found.transcript) == (22, 20, str(other))


def test_subagents_cost_and_are_not_the_context(run_dir: Path, transcript: Path) -> None:
    transcript.write_text(_answer("a", _usage(10, 1)))
    folder = transcript.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-1.jsonl").write_text(_answer("s", _usage(100, 100), "claude-haiku-5-5", isSidechain=True))
    found = _read(run_dir, transcript)
    assert (found.tokens, found.context_tokens) == (211, 11)
    assert found.models == ("claude-opus-5-5", "claude-haiku-5-5")


def test_an_hours_cache_and_a_long_input_cost_more(run_dir: Path, transcript: Path) -> None:
    transcript.write_text(
        _answer("a", _usage(hour=1_000_000, out=0)) + _answer("b", _usage(200_000), model="claude-haiku-5-5")
    )
    assert _read(run_dir, transcript).dollars == pytest.approx(8.0 + 0.2 * 0.10 * 5)


def test_a_model_without_a_price_is_unknown_until_the_town_gives_one(run_dir: Path, transcript: Path) -> None:
    transcript.write_text(_answer("a", _usage(1_000_000)) + _answer("b", _usage(1_000_000), model="local-7b"))
    assert _read(run_dir, transcript).dollars is None
    assert _read(run_dir, transcript, prices={"local-": {"input": 1}}).dollars == pytest.approx(5.0)


def test_codex_counts_its_session_and_what_was_before_is_not_this_runs(run_dir: Path, transcript: Path) -> None:
    def counted(plain: int, cached: int, out: int, at: float) -> str:
        total = {"input_tokens": plain, "cached_input_tokens": cached, "output_tokens": out}
        info = {
            "total_token_usage": total,
            "last_token_usage": {"total_tokens": 50_000},
            "model_context_window": 200_000,
        }
        payload = {"type": "token_count", "info": info}
        return json.dumps({"timestamp": _when(at), "type": "event_msg", "payload": payload}) + "\n"

    context = {"timestamp": _when(1), "type": "turn_context", "payload": {"model": "gpt-x"}}
    transcript.write_text(
        counted(1000, 400, 10, -5)
        + json.dumps(context)
        + "\n"
        + counted(3000, 1400, 30, 5)
        + counted(4000, 2400, 40, 6)
    )
    found = _read(run_dir, transcript)
    assert (found.input_tokens, found.cached_tokens, found.output_tokens) == (1000, 2000, 30)
    assert (found.dollars, found.models, found.context_share) == (None, ("gpt-x",), 0.25)


@pytest.mark.parametrize(
    "line",
    [
        'not json "usage" "assistant"',
        _answer("a", {"input_tokens": -5, "output_tokens": 1}),
        _answer("a", {"input_tokens": 10**30, "output_tokens": 1}),
        _answer("a", {"input_tokens": True, "output_tokens": 1}),
        _answer("a", _usage(1, 1), model="claude\x1b[31m"),
        _answer("a", _usage(1, 1), at=1).replace("2026", "9" * 40),
        '{"type":"assistant","timestamp":"2027-01-01T00:00:00Z","message":{"usage":[]}}\n',
        "[" * 100_000 + '"usage" "assistant"\n',
    ],
)
def test_what_is_no_record_is_passed_over(run_dir: Path, transcript: Path, line: str) -> None:
    transcript.write_text(line.rstrip("\n") + "\n")
    assert _read(run_dir, transcript) is None
    with transcript.open("a") as file:
        file.write(_answer("b", _usage(1, 1)))
    assert _read(run_dir, transcript).tokens == 2


def test_what_is_no_transcript_holds_nobody_up(run_dir: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/etc/passwd")
    for name in ("fifo", "link", "missing", "nul\0"):
        assert _read(run_dir, tmp_path / name) is None
    assert _read(run_dir, Path("/dev/zero")) is None


@pytest.mark.parametrize(
    "kept", ["", "[]", '{"version": 1, "files": {"/x": {}}}', '{"version": 9}', '{"version": 1, "files": 3}']
)
def test_a_spoiled_account_is_made_anew(run_dir: Path, transcript: Path, kept: str) -> None:
    (run_dir / COUNTED).write_text(kept)
    transcript.write_text(_answer("a", _usage(10, 1)))
    assert _read(run_dir, transcript).tokens == 11


def test_the_newest_event_says_where_the_session_is(tmp_path: Path) -> None:
    spool = tmp_path / "run" / "spool"
    spool.mkdir(parents=True)
    assert session_transcript(spool) == ""
    for path in ("/a/one.jsonl", "/a/two.jsonl", "relative.jsonl", "/a/\u0007bell"):
        append_event(spool, json.dumps({"hook_event_name": "Stop", "transcript_path": path}).encode())
    append_event(spool, b'{"hook_event_name":"Stop"}')
    assert session_transcript(spool) == "/a/two.jsonl"
    append_event(spool, json.dumps({"hook_event_name": "PostToolUse", "out": "x" * 200_000}).encode())
    assert session_transcript(spool) == "/a/two.jsonl"
