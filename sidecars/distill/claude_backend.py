"""The backend that lets a separate Claude Code look, headless and with nothing but two reading tools.

The client's own tools know no borders; its permission rules do. With ``dontAsk`` all is refused that is not allowed,
and allowed is the stage. Glob is not among the tools: its pattern may be an absolute path, and no rule stops that;
the names of the staged files are told instead. No settings of user or project are read, so no hook of theirs runs, no
MCP server starts, and no CLAUDE.md speaks.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from sidecars.distill.answer import Claim, Draft, Spending
from sidecars.distill.decompress import PIECE
from sidecars.distill.errors import BudgetError, NoBackendError, TimeoutSpentError, UnparsableError, UnreadableError
from sidecars.distill.model_messages import instructions, opening, read_reply
from sidecars.distill.request import Inquiry
from sidecars.distill.text import Text, shown
from sidecars.distill.text_pool import TextPool
from sidecars.distill.tools import Tools
from witness.config.town import Town
from witness.names import MARKER_VARIABLE

_TOOLS = "Read,Grep"
# What of an ended helper's reading is told to the one that answers for it.
_LONGEST_SEEN = 16_000
_LONGEST_COMPLAINT = 300
_LAST = "No tools are left. Answer now with the JSON object, from what was seen; name in gaps what is missing."

# Of the variables of the client from which we may have been called, only those by which a user logs in.
_KEPT = ("CLAUDE_CODE_OAUTH_TOKEN", MARKER_VARIABLE)


@dataclass(slots=True)
class _Run:
    """What came of one run of the client.

    Args:
        ended: the ``subtype`` of its result: ``success``, ``error_max_turns``, …
        text: its last words.
        seen: the results of its tools.
    """

    ended: str = ""
    text: str = ""
    seen: list[str] = field(default_factory=list)


class ClaudeHelper:
    """One question on its way to a headless Claude Code and back.

    Args:
        inquiry: the question.
        program: the client's program; found on PATH when empty.
    """

    def __init__(self, inquiry: Inquiry, program: str = "") -> None:
        self._inquiry = inquiry
        self._program = program or shutil.which("claude") or ""
        self.spending = Spending("claude", inquiry.limits.model)
        self.passages: tuple[Claim, ...] = ()

    def run(self) -> Draft:
        """Ask until there is an answer.

        Raises:
            NoBackendError: there is no client, or it cannot work.
            BudgetError, TimeoutSpentError, UnparsableError: a limit came before the answer.
        """
        if not self._program:
            raise NoBackendError("the claude backend needs Claude Code on PATH: install it, or use --backend index")
        with _ended_in_order(), Stage(self._inquiry.shelf) as stage:
            staged = {name: relative for relative, name in stage.names.items()}
            question, self.passages = opening(self._inquiry, Tools(self._inquiry.shelf), staged)
            draft = self._answer(stage, question)
            claims = tuple(replace(claim, path=stage.original(claim.path)) for claim in draft.claims)
            return replace(draft, claims=claims)

    def _answer(self, stage: Stage, question: str) -> Draft:
        steps = self._inquiry.limits.max_steps
        run = _Run()
        if steps > 1:
            run = self._start(stage, question, _TOOLS, steps - 1)
            if draft := read_reply(run.text):
                return draft
        if run.ended == "error_max_budget_usd":
            raise BudgetError(f"the client has spent its ${self._inquiry.limits.budget_usd:g}")
        if run.ended not in ("", "success", "error_max_turns"):
            raise NoBackendError(f"Claude Code ended with {run.ended}: {shown(run.text.encode())[:200]}")
        # Out of turns, or no answer in its words: one more, without tools, that is told what was seen.
        seen = "\n".join(run.seen)[-_LONGEST_SEEN:]
        parts = [
            question,
            *(["What was read so far:\n" + seen] if seen else []),
            *([run.text] if run.text else []),
            _LAST,
        ]
        last = self._start(stage, "\n\n".join(parts), "", 1)
        if draft := read_reply(last.text):
            return draft
        raise UnparsableError(f"the client's reply holds no answer: {shown(last.text.encode())[:120]!r}")

    def _start(self, stage: Stage, prompt: str, tools: str, turns: int) -> _Run:
        left = self._inquiry.limits.budget_usd - self.spending.dollars
        if left <= 0:
            raise BudgetError(f"the client has spent its ${self._inquiry.limits.budget_usd:g}")
        self._inquiry.progress(f"Claude Code looks, at most {turns} turns")
        command = [
            self._program,
            *("-p", "--no-session-persistence", "--output-format", "stream-json", "--verbose"),
            *("--tools", tools, "--permission-mode", "dontAsk", "--strict-mcp-config", "--setting-sources", ""),
            *("--settings", json.dumps(_settings(stage.place))),
            *("--system-prompt", instructions("Read and Grep"), "--model", self._inquiry.limits.model),
            *("--max-turns", str(turns), "--max-budget-usd", f"{left:.6f}"),
        ]
        return self._read(*_run_to_its_end(command, prompt, stage, self._inquiry.shelf.deadline.left))

    def _read(self, output: bytes, complaints: bytes) -> _Run:
        run = _Run()
        for line in output.splitlines():
            with suppress(ValueError):
                event = json.loads(line)
                if isinstance(event, dict):
                    self._take(event, run)
        if not run.ended:
            words = shown(complaints or output[-_LONGEST_COMPLAINT:]).strip()
            raise NoBackendError(f"Claude Code gave no result: {' '.join(words.split()) or 'no word'}")
        return run

    def _take(self, event: dict[str, Any], run: _Run) -> None:
        if event.get("type") == "user":
            content = event.get("message", {}).get("content")
            for block in content if isinstance(content, list) else ():
                if block.get("type") == "tool_result" and isinstance(block.get("content"), str):
                    run.seen.append(block["content"])
        elif event.get("type") == "result":
            run.ended, run.text = str(event.get("subtype", "")), str(event.get("result") or "")
            if event.get("is_error") and run.ended == "success":
                run.ended = "an error"  # the service refused: its words are the result
            used = event.get("usage", {})
            cached = used.get("cache_read_input_tokens") or 0
            written = used.get("cache_creation_input_tokens") or 0
            self.spending.steps += event.get("num_turns") or 0
            self.spending.input_tokens += (used.get("input_tokens") or 0) + cached + written
            self.spending.cached_tokens += cached
            self.spending.output_tokens += used.get("output_tokens") or 0
            self.spending.dollars += event.get("total_cost_usd") or 0.0


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Let TERM and HUP end us as an exception does, so that neither the client nor the stage outlives us."""

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield  # signals go to the main thread, which belongs to somebody else
        return
    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _settings(place: Path) -> dict[str, Any]:
    # Two slashes begin an absolute path in a permission rule.
    return {"disableAllHooks": True, "permissions": {"allow": [f"{tool}(/{place}/**)" for tool in ("Read", "Grep")]}}


def _environment() -> dict[str, str]:
    from witness.process.child_programs import filtered_environ

    kept = filtered_environ() | {name: os.environ[name] for name in _KEPT if name in os.environ}
    quiet = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER")
    return {**kept, **dict.fromkeys(quiet, "1")}


def _run_to_its_end(command: list[str], prompt: str, stage: Stage, seconds: float) -> tuple[bytes, bytes]:
    """Run the client and give its output and its complaints. However this ends, the client ends with its whole tree.

    Raises:
        NoBackendError: it cannot be started.
        TimeoutSpentError: it took longer than it had.
    """
    from witness.process.child_programs import TOKEN_VARIABLE, end_tree

    token = secrets.token_hex(8)
    with tempfile.TemporaryFile() as complaints:
        try:
            program = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                cwd=stage.place,
                env={**_environment(), "TMPDIR": str(stage.scratch), TOKEN_VARIABLE: token},
                start_new_session=True,
            )
        except OSError as error:
            raise NoBackendError(f"{command[0]} cannot be started: {error.strerror}") from error
        try:
            output, _ = program.communicate(prompt.encode("utf-8", "replace"), timeout=max(0.01, seconds))
        except subprocess.TimeoutExpired as error:
            raise TimeoutSpentError(seconds) from error
        finally:
            end_tree(program, token)
            for pipe in (program.stdin, program.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
        complaints.seek(0)
        return output, complaints.read(_LONGEST_COMPLAINT)


# A copy of the artifacts, read-only and alone in a folder, for a helper whose own tools know no borders.

MOST_STAGED = 4 << 30
# A copy with another ending could be taken for a picture, a notebook, or for instructions to the client (CLAUDE.md).
_LONGEST_NAME = 100
_PLAIN = (".log", ".txt", ".json")


class Stage:
    """The folder. A context manager; at its end nothing is left of it.

    The copies hold what is read elsewhere in this package: text, unfolded and in UTF-8, so that lines are the same.

    Args:
        shelf: the artifacts.

    Attributes:
        place: the folder, outside of every town.
        scratch: an empty folder beside it for the helper's own temporary files.
        names: for each staged file, relative to the folder, the artifact's name.
    """

    def __init__(self, shelf: TextPool) -> None:
        self._shelf = shelf
        self.names: dict[str, str] = {}
        self._folders = {"."}

    def __enter__(self) -> Self:
        self._own = Path(tempfile.mkdtemp(prefix="gt-distill-", dir=_outside_of_towns())).resolve()
        self.place, self.scratch = self._own / "artifacts", self._own / "tmp"
        try:
            self.place.mkdir()
            self.scratch.mkdir()
            self._fill()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def _fill(self) -> None:
        size = sum(entry.size for entry in self._shelf.artifacts.entries())
        if size > MOST_STAGED or size > shutil.disk_usage(self._own).free // 2:
            raise NoBackendError(f"{size} bytes are too many to be copied for the claude backend: use model or index")
        for number, name in enumerate(self._shelf.names):
            try:
                text = self._shelf.text(name)
            except UnreadableError:
                continue  # the shelf keeps the reason
            self._copy(text, number)
        for folder, _, _ in os.walk(self.place, topdown=False):
            Path(folder).chmod(0o500)

    def _copy(self, text: Text, number: int) -> None:
        parts = [
            re.sub(r"[^\w.-]", "_", part).lstrip("-.") or "_" for part in Path(text.name).parts[-3:] if part != "/"
        ]
        parts = [part[:_LONGEST_NAME] for part in parts]
        stem = parts.pop()
        if not stem.endswith(_PLAIN):
            stem += ".txt"
        relative = Path(*parts, stem)
        if any(
            (self.place / above).exists() for above in (relative, *relative.parents) if str(above) not in self._folders
        ):
            relative = Path(f"{number}", *parts, stem)
        self._folders |= {str(above) for above in relative.parents}
        target = self.place / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as out:
            for piece in text.each_piece(lambda offset: text.read(offset, min(offset + PIECE, text.size))):
                out.write(piece)
        target.chmod(0o400)
        self.names[str(relative)] = text.name

    def original(self, path: str) -> str:
        """The artifact that a path in or below the folder means; another path unchanged."""
        relative = os.path.relpath(path, self.place) if os.path.isabs(path) else os.path.normpath(path or ".")  # noqa: PTH117
        if relative in self.names:
            return self.names[relative]
        ending = [name for staged, name in self.names.items() if staged.endswith(f"/{relative}")]
        return ending[0] if len(ending) == 1 else path

    def _remove(self) -> None:
        for folder, _, _ in os.walk(self.place):
            Path(folder).chmod(0o700)
        shutil.rmtree(self._own, ignore_errors=True)


def _outside_of_towns() -> str:
    """A folder for temporary files that lies in no town, so that nothing of a town is found from there."""
    candidates = [os.environ.get("TMPDIR", ""), "/var/tmp", tempfile.gettempdir(), "/tmp"]  # noqa: S108
    for each in candidates:
        if each and Path(each).is_dir() and os.access(each, os.W_OK):
            real = Path(each).resolve()
            if not any(Town.is_town(above) for above in (real, *real.parents)):
                return str(real)
    raise NoBackendError("no folder for temporary files lies outside of the town: set TMPDIR")
