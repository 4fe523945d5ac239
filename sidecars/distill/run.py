"""One question from beginning to end: open, ask a backend, check the evidence, fit it into the room."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sidecars.distill.answer import Answer, Claim, Draft, Evidence, Source, Spending
from sidecars.distill.artifact import Artifacts
from sidecars.distill.cache import IndexCache
from sidecars.distill.errors import (
    BudgetError,
    Exit,
    NoBackendError,
    QuestionError,
    TimeoutSpentError,
    UnparsableError,
    UnreadableError,
)
from sidecars.distill.evidence import Checker
from sidecars.distill.extractive_backend import extract, room_for
from sidecars.distill.request import Deadline, Inquiry, Limits, Progress
from sidecars.distill.text_pool import TextPool
from witness.clock import Clock, SystemClock

if TYPE_CHECKING:
    from sidecars.llm.client import Endpoint

BACKENDS = ("model", "claude", "index")


# Seconds that the check of the evidence may take beyond the time that was given.
_CHECKING = 3.0


class Helper(Protocol):
    """A backend that reads for us."""

    spending: Spending
    passages: tuple[Claim, ...]

    def run(self) -> Draft:
        """Ask until there is an answer, or raise what came between."""
        ...


def distill(
    paths: Iterable[str | Path],
    question: str,
    *,
    backend: str = "index",
    limits: Limits | None = None,
    endpoint: Endpoint | None = None,
    ignore: bool = True,
    cache: IndexCache | None = None,
    clock: Clock | None = None,
    progress: Progress = lambda _: None,
) -> Answer:
    """Answer a narrow question about files that are too large to open.

    Args:
        paths: the artifacts: files and folders. Nothing else is read.
        question: what is asked.
        backend: ``index`` (no model), ``model`` (Anthropic API) or ``claude`` (a separate Claude Code).
        limits: bounds of output, steps, money and time.
        endpoint: for the ``model`` backend, where it is and with what key.
        ignore: in folders, leave out what their ``.gitignore`` files say.
        cache: where hashes and indexes of large files are kept; the user's own place when None.
        clock: where the time comes from.
        progress: told what is being done, for people.

    Raises:
        QuestionError: question, backend or a limit cannot be meant.
        UnreadableError: an artifact cannot be read.
        NoBackendError: the backend cannot run here. A service that refuses, and other limits, end with what a search
            has found, and say so in ``outcome``.
    """
    limits = limits or Limits()
    if not question.strip():
        raise QuestionError("the question is empty")
    if backend not in BACKENDS:
        raise QuestionError(f"no backend {backend!r}: one of {', '.join(BACKENDS)}")
    deadline = Deadline(limits.timeout, clock or SystemClock())
    with Artifacts(paths, ignore=ignore) as artifacts, TextPool(artifacts, deadline, cache or IndexCache()) as shelf:
        bytes_in = sum(entry.size for entry in artifacts.entries())
        progress(f"searching {len(artifacts.entries())} files, {bytes_in} bytes")
        room = room_for(shelf, bytes_in, limits.max_output_chars) if backend == "index" else limits.max_output_chars
        draft, spending, outcome = _ask(backend, Inquiry(shelf, question, limits, room, progress), endpoint)
        answer = _checked(draft, shelf, spending, outcome)
        if outcome is Exit.ANSWERED and backend != "index":
            answer = _held_against_quotes(answer, question)
        answer = replace(answer, bytes_in=bytes_in, seconds=deadline.spent)
        return fit(answer, room)


def _ask(backend: str, inquiry: Inquiry, endpoint: Endpoint | None) -> tuple[Draft, Spending, Exit]:
    if backend == "index":
        draft = extract(inquiry)
        return draft, Spending("index"), Exit.TIMEOUT if inquiry.shelf.deadline.passed else Exit.ANSWERED
    helper: Helper
    if backend == "model":
        from sidecars.distill.anthropic_backend import ModelLoop

        if endpoint is None or not endpoint.key:
            raise NoBackendError("the model backend needs an API key: set GT_WITNESS_API_KEY, or use --backend index")
        helper = ModelLoop(inquiry, endpoint)
    else:
        from sidecars.distill.claude_backend import ClaudeHelper

        helper = ClaudeHelper(inquiry)
    try:
        return helper.run(), helper.spending, Exit.ANSWERED
    except (BudgetError, NoBackendError, TimeoutSpentError, UnparsableError) as error:
        if isinstance(error, NoBackendError) and not helper.passages:
            raise
        # Never nothing: the passages that the helper was to begin with are an answer of a kind.
        draft = Draft(
            f"No answer from the {backend} backend ({error}). The passages that a search has ranked are below.",
            helper.passages,
            (str(error),),
        )
        return draft, helper.spending, Exit(error.exit_code)


def _checked(draft: Draft, shelf: TextPool, spending: Spending, outcome: Exit) -> Answer:
    gaps = list(draft.gaps)
    evidence: list[Evidence] = []
    if shelf.deadline.left < _CHECKING:
        shelf.extend(_CHECKING)
    try:
        for checked in Checker(shelf).check_all(draft.claims):
            evidence.append(checked.evidence)
            if checked.gap:
                gaps.append(checked.gap)
    except TimeoutSpentError:
        # What was quoted is worth more than a bare error, as long as it is not called checked.
        evidence = [Evidence(each.path, each.locator, each.quote, each.reason, False) for each in draft.claims]
        gaps.append("the time was up before the evidence was checked")
    gaps += shelf.gaps()
    sources = []
    for name in dict.fromkeys(each.path for each in evidence if each.verified):
        with suppress(UnreadableError, TimeoutSpentError):
            text = shelf.text(name)
            digest = text.digest or text.hash_disk(lambda: shelf.deadline.passed)
            sources.append(Source(name, text.disk_size, digest))
    answer = Answer(
        draft.answer, tuple(evidence), tuple(dict.fromkeys(gaps)), draft.followups, spending, tuple(sources)
    )
    if outcome is Exit.ANSWERED and not answer.verified:
        outcome = Exit.UNVERIFIED
    return replace(answer, outcome=outcome)


def _held_against_quotes(answer: Answer, question: str) -> Answer:
    """The answer with a mark at each sentence that no verified quote carries."""
    from sidecars.distill.evidence import marked, uncarried

    found = uncarried(answer.answer, question, [each.quote for each in answer.evidence if each.verified])
    if not found:
        return answer
    gaps = [f"no quote carries {missing} in: {sentence[:120]}" for sentence, missing in found]
    return replace(
        answer,
        answer=marked(answer.answer, [sentence for sentence, _ in found]),
        gaps=(*answer.gaps, *gaps),
        outcome=Exit.UNVERIFIED,
    )


def fit(answer: Answer, room: int) -> Answer:
    """Make the JSON form no longer than ``room`` characters: followups go first, then sources, evidence, gaps, text."""

    def length(each: Answer) -> int:
        return len(json.dumps(each.to_dict(), ensure_ascii=False))

    cut = False
    while length(answer) > room:
        cut = True
        if answer.followups:
            answer = replace(answer, followups=answer.followups[:-1])
        elif len(answer.sources) > 1:
            answer = replace(answer, sources=answer.sources[:-1])
        elif len(answer.gaps) > 3:
            answer = replace(answer, gaps=answer.gaps[:-1])
        elif len(answer.evidence) > 1:
            # A quote that did not stand the check goes before one that did.
            weakest = max(range(len(answer.evidence)), key=lambda at: (not answer.evidence[at].verified, at))
            answer = replace(answer, evidence=tuple(e for at, e in enumerate(answer.evidence) if at != weakest))
        elif len(answer.answer) > 80:
            answer = replace(answer, answer=answer.answer[: max(60, len(answer.answer) - 200)].rstrip() + "…")
        else:
            break
    if cut and len(answer.gaps) < 4:
        answer = replace(answer, gaps=(*answer.gaps, "cut to fit --max-output-chars"))
    return answer
