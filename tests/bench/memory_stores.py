"""Stores of memories to rank in: the pairs' own and as many others as wanted, from a seed.

The others sound like the pairs' (the same subjects, verbs and kinds of file) but say something else, so that one shared
word is not enough.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

AGENT = "ada"
_NOW = datetime(2025, 9, 1, tzinfo=UTC)
_SUBJECTS = (
    "orders payments invoices carts shipments customers sessions webhooks exports uploads thumbnails tenants leases "
    "migrations retries timeouts caches partitions locks backups tokens flags translations reports dashboards sensors "
    "barcodes prices discounts coupons refunds tickets mails templates fonts tiles links calendars schedulers workers"
)
_PARTS = "api worker gateway importer renderer router store relay parser client indexer scheduler proxy cli"
_FILES = "handlers.py models.go queue.rs index.ts store.rb main.kt config.toml schema.sql client.swift utils.py"
_SAYINGS = (
    ("observation", "{subject} of the {part} are slow when more than {number} arrive at once, seen in {file}"),
    ("observation", "{file} in the {part} drops {subject} that have no owner, on purpose"),
    ("observation", "the {part} counts {subject} twice after a restart until {file} has run"),
    ("observation", "tests of {subject} need {number} MB of memory, the {part} runner has less"),
    ("decision", "{subject} belong to the {part} alone; others ask it through {file}"),
    ("decision", "we keep {subject} for {number} days, the {part} removes them"),
    ("decision", "no new columns for {subject}: the {part} writes a JSON field, see {file}"),
    ("preference", "name things about {subject} in the plural, as {file} of the {part} does"),
    ("preference", "small commits for the {part}; {subject} and their tests in one commit"),
    ("preference", "in {file} early returns instead of nested conditions, also for {subject}"),
    ("context", "{subject} are described in docs/{part}.md, the code is in {part}/{file}"),
    ("context", "the {part} talks to {subject} on port {number}, see {file}"),
    ("context", "owner of {subject} in the {part} is the platform team, ask before changing {file}"),
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A task and the memory that belongs to it.

    Args:
        identity: the memory's id in the store.
        task: what the session is about.
        memory: the memory's text.
        kind: observation, preference, context or decision.
    """

    identity: str
    task: str
    memory: str
    kind: str


def pairs(half: str) -> list[Pair]:
    """The pairs of ``tune`` or ``measure``."""
    known = yaml.safe_load(Path(__file__).with_name("memory_pairs.yaml").read_text())[half]
    # As long and as mixed as the product's own ids, so that nothing but the text tells them from the others.
    ids = random.Random(f"pairs-{half}")
    return [Pair(f"{ids.getrandbits(32):08x}", each["task"], each["memory"], each["type"]) for each in known]


def others(count: int, seed: str) -> list[Pair]:
    """So many memories that no task of ours asks for."""
    dice, found = random.Random(seed), dict[str, Pair]()
    while len(found) < count:
        kind, saying = dice.choice(_SAYINGS)
        text = saying.format(
            subject=dice.choice(_SUBJECTS.split()),
            part=dice.choice(_PARTS.split()),
            file=dice.choice(_FILES.split()),
            number=dice.randrange(3, 9000),
        )
        found[text] = Pair(f"{dice.getrandbits(32):08x}", "", text, kind)
    return list(found.values())


def store(half: str, size: int) -> list[Pair]:
    """The memories of a half's pairs among others, ``size`` in all, in an order that says nothing."""
    own = pairs(half)
    mixed = own + others(size - len(own), f"{half}-{size}")
    random.Random(size).shuffle(mixed)
    return mixed


def write(memories: list[Pair], project: Path) -> None:
    """Lay a store into a project, in the published format, with confidences and ages that say nothing either."""
    dice = random.Random(len(memories))
    sessions = 12
    entries = []
    for each in memories:
        session = dice.randrange(sessions)
        made = _NOW - timedelta(days=7 * (sessions - session), minutes=dice.randrange(10_000))
        entries.append(
            {
                "id": each.identity,
                "type": each.kind,
                "content": each.memory,
                "source_session": _stamp(_NOW - timedelta(days=7 * (sessions - session))),
                "confidence": dice.choice((0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
                "tags": [],
                "created_at": _stamp(made),
                "last_reinforced_session": max(session, sessions - 4),
            }
        )
    path = project / "_mdan" / "state" / "sidecars" / f"{AGENT}.sidecar.json"
    path.parent.mkdir(parents=True)
    path.write_text(
        json.dumps(
            {
                "agent": AGENT,
                "displayName": AGENT,
                "created_at": _stamp(_NOW - timedelta(days=100)),
                "last_updated": _stamp(_NOW),
                "sessions_participated": sessions,
                "memories": entries,
                "relationships": {"agrees_with": [], "disagrees_with": [], "complements": []},
                "decision_history": [],
            }
        )
    )


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")
