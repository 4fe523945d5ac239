"""Generated artifacts with known answers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


def _words(text: str) -> list[str]:
    return text.split()


_CASES = _words(
    "parse-config rename-symbol fix-import add-endpoint sort-table retry-upload merge-conflict cache-key split-module "
    "format-date read-csv lint-clean type-hints close-file sum-column find-dupes quote-shell bump-version"
)
_WORDS = _words(
    "worker request handled cache miss sync chunk upload scheduler queue token sampler step loss batch shard"
)


@dataclass(frozen=True)
class EvalLog:
    """What is true of a generated evaluation log.

    Args:
        cases, passed: how many.
        failed: the name of the case that failed.
        check: the name of the check that it failed on.
        needed: the texts that an answer has to quote.
    """

    cases: int
    passed: int
    failed: str
    check: str
    needed: tuple[str, ...]


QUESTION = "How many of the eval cases passed, which case failed, and on which check?"


def write_eval_log(path: Path, *, lines: int = 1111, size: int = 190_000, seed: int = 7) -> EvalLog:
    """Write an evaluation log of ``lines`` lines and about ``size`` bytes: 18 cases, one of which failed."""
    rng = random.Random(seed)  # noqa: S311
    failed, check = "merge-conflict", "clean-tree"
    outcome = f"case 07/18 {failed}: check {check} FAILED: expected no changes, got ' M src/app.py'"
    verdict = f"case 07/18 {failed}: FAIL (2 of 3 checks)"
    summary = f"summary: 18 cases, 17 passed, 1 failed: {failed} ({check})"
    body: list[str] = [f"eval suite=practical model=small-1 cases=18 seed={seed}"]
    filler = (lines - 2) - 18 * 5 - 1
    for number, name in enumerate(_CASES, 1):
        case = f"case {number:02}/18 {name}:"
        bad = name == failed
        body.append(f"{case} start")
        share = filler // 18 + (1 if number <= filler % 18 else 0)
        body += [_filler(rng, name, size // lines) for _ in range(share)]
        body.append(f"{case} check exit-code ok")
        body.append(f"{case} check output ok")
        body.append(outcome if bad else f"{case} check clean-tree ok")
        body.append(verdict if bad else f"{case} PASS (3 of 3 checks)")
    body += [summary, "finished in 412.7 s"]
    clock = 0
    with path.open("w", encoding="utf-8") as out:
        for line in body:
            clock += rng.randrange(1, 900)
            stamp = f"[2026-05-14 09:{clock // 60000 % 60:02}:{clock // 1000 % 60:02}.{clock % 1000:03}]"
            out.write(f"{stamp} {line}\n")
    return EvalLog(18, 17, failed, check, (outcome, verdict, summary))


def _filler(rng: random.Random, name: str, width: int) -> str:
    kind = rng.randrange(12)
    if kind == 0:
        text = f"tool shell: pytest -q tests/{name} -> 12 passed in {rng.random() * 9:.2f}s"
    elif kind == 1:
        text = f"warning: connection to cache failed, retry {rng.randrange(3)} of 3 in {rng.randrange(900)} ms"
    elif kind == 2:
        text = f"assistant: let me check whether {rng.choice(_WORDS)} {rng.choice(_WORDS)} still holds before I edit"
    else:
        level = rng.choice(["debug", "info", "trace"])
        text = f"{level}: {rng.choice(_WORDS)}-{rng.randrange(64)} took {rng.randrange(900)} ms"
    while len(text) < width - 20:
        text += " " + rng.choice(_WORDS)
    return text


def big_lines(seed: int = 11) -> Iterator[str]:
    """Endless lines of a busy service, in blocks of about 2 MB; what they say is of no interest."""
    rng = random.Random(seed)  # noqa: S311
    while True:
        block = []
        for _ in range(15_000):
            words = " ".join(rng.choices(_WORDS, k=8))
            stamp = f"2026-05-14T10:{rng.randrange(60):02}:{rng.randrange(60):02}.{rng.randrange(1000):03}Z"
            level = rng.choice(("INFO", "DEBUG", "INFO", "WARN"))
            block.append(
                f"{stamp} {level} [{rng.choice(_WORDS)}-{rng.randrange(64)}] {words} "
                f"id={rng.getrandbits(48):012x} took {rng.randrange(900)}ms"
            )
        yield "\n".join(block) + "\n"


def write_big_log(path: Path, size: int = 200_000_000) -> EvalLog:
    """Write an evaluation log of at least ``size`` bytes: the small one's lines spread between a service's lines."""
    small = path.with_suffix(".part")
    facts = write_eval_log(small)
    lines = small.read_text().splitlines(keepends=True)
    small.unlink()
    # Three generated blocks over and over: writing 200 MB of fresh random numbers takes minutes.
    source = big_lines()
    blocks = [next(source) for _ in range(3)]
    reconciler = max(2, size // len(blocks[0]) + 1)
    share = -(-len(lines) // (reconciler - 1))
    with path.open("w", encoding="utf-8") as out:
        for number in range(reconciler):
            out.write(blocks[number % 3])
            out.writelines(lines[number * share : (number + 1) * share])
    return facts
