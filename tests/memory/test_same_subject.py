"""What a new memory is to an old one: said again, said against, or another matter."""

from __future__ import annotations

import pytest

from sidecars.memory.same_subject import Relation, pairs, relation

AGAINST = [
    ("the deploy branch is main", "the deploy branch is release"),
    ("the staging database runs on port 5432", "the staging database runs on port 5433"),
    ("feature flags are read once at start", "feature flags are not read once at start"),
    ("the CI cache is enabled", "the CI cache is disabled"),
    ("prefers tabs over spaces in Go files", "prefers spaces over tabs in Go files"),
    ("sessions expire after 30 minutes", "sessions expire after 60 minutes"),
    ("the web app uses npm", "the web app uses pnpm"),
    ("release notes live in docs/releases.md", "release notes live in CHANGELOG.md"),
    ("the importer doesn't retry failed rows", "the importer does retry failed rows"),
    ("the API timeout is 30 s", "the API timeout is 5 s"),
    ("integration tests run in docker", "integration tests run in CI"),
    ("the minimum supported Python is 3.10", "the minimum supported Python is 3.12"),
    ("migrations run before the workers start", "migrations run after the workers start"),
]
AGAIN = [
    ("the queue drops messages above 64 KB", "messages above 64 KB are dropped by the queue"),
    ("the queue drops messages", "the queue drops messages above 64 KB"),
    ("never commit generated files to the repository", "generated files are never committed to the repository"),
    ("Thumbnails are rendered by the thumbd sidecar", "the thumbd sidecar renders thumbnails"),
]
NEITHER = [
    ("owner of carts in the api is the platform team", "owner of orders in the api is the platform team"),
    ("issue 12 is fixed in the parser", "issue 13 is fixed in the parser"),
    ("the api talks to carts on port 80", "the worker talks to carts on port 90"),
    ("tests of orders need 300 MB of memory", "the api counts orders twice after a restart"),
    ("migrations run in db/migrate.py before the workers start", "migrations run in the CI"),
    ("small commits for the parser", "small commits for the router"),
    ("uses tabs", "uses spaces"),
    ("the cache of worker 3 is warm", "the cache of worker 4 is warm"),
    ("service 1 listens on its own port", "service 2 listens on its own port"),
    ("orders belong to the api alone", "carts belong to the api alone"),
    ("no new columns for orders", "index.ts drops orders that have no owner"),
    ("step 3 of the release needs a tag", "step 4 of the release needs a tag"),
]


@pytest.mark.parametrize(("new", "old"), AGAINST)
def test_the_same_subject_with_another_value_contradicts(new: str, old: str) -> None:
    assert relation(new, old) is relation(old, new) is Relation.CONTRADICTS


@pytest.mark.parametrize(("new", "old"), AGAIN)
def test_the_same_in_other_words_restates(new: str, old: str) -> None:
    assert relation(new, old) is relation(old, new) is Relation.RESTATES


@pytest.mark.parametrize(("new", "old"), NEITHER)
def test_another_matter_is_neither(new: str, old: str) -> None:
    assert relation(new, old) is relation(old, new) is None


def test_thousands_of_different_facts_are_no_pairs_of_one_another() -> None:
    facts = [f"the {part} number {n} keeps its {thing} apart" for n in range(40) for part, thing in _PARTS]
    assert list(pairs([*facts, *AGAINST[0]])) == [(len(facts), len(facts) + 1, Relation.CONTRADICTS)]


_PARTS = [("parser", "tokens"), ("router", "tables"), ("worker", "jobs")]
