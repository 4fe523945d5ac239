"""The paths that an issue's prose names, in the ways people write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecars.observer.context.issue_paths import paths_in_prose


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for folder in ("src/orders", "billing", "infra/prod", "tests", "docs"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("Makefile", "src/app.py", "docs/api.md"):
        (tmp_path / file).write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "only", "outside"),
    [
        ("Leave billing alone.", "", "billing/**"),
        ("Do not touch `billing/` or infra/prod.", "", "billing/** infra/prod/**"),
        ("Only change files under `src/orders/`.", "src/orders/**", ""),
        ("You may only edit src/**/*.py", "src/**/*.py", ""),
        ("Do not change anything outside of src/.", "src/**", ""),
        ("Do not modify anything but `src/app.py`.", "src/app.py", ""),
        ("Only touch src/orders/, not billing/.", "src/orders/**", "billing/**"),
        ("Change src/ but leave billing alone", "", "billing/**"),
        ("Refactor billing without changing docs/api.md", "", "docs/api.md"),
        (
            "## Out of scope\n- billing/\n- the Makefile\n\n## Notes\nThe tests are in tests/.",
            "",
            "billing/** Makefile",
        ),
        ("Scope:\n- src/orders\n- tests\n\nBilling is next door.", "src/orders/** tests/**", ""),
        ("Out of scope: billing, infra/prod.", "", "billing/** infra/prod/**"),
        ("Docs must remain unchanged (`docs/`).", "", "docs/**"),
        ("Please don't edit the `Makefile`.", "", "Makefile"),
        ("The folder `billing/` is off-limits; do not add `new/thing.py`.", "", "billing/** new/thing.py"),
    ],
)
def test_what_is_named(work: Path, text: str, only: str, outside: str) -> None:
    found = paths_in_prose(text, work)
    assert " ".join(each.glob for each in found if not each.forbidden) == only
    assert " ".join(each.glob for each in found if each.forbidden) == outside


@pytest.mark.parametrize(
    "text",
    [
        "Don't forget to update docs/api.md.",
        "Don't use src/app.py's helper.",
        "It must not read from billing/prices at runtime.",
        "The only test that fails is tests/test_a.py",
        "Fix the bug in src/app.py and say why.",
        "Never divide by zero and/or overflow.",
        "```\ndo not touch billing/\n```",
    ],
)
def test_what_is_not(work: Path, text: str) -> None:
    assert paths_in_prose(text, work) == ()


def test_the_line_is_that_of_the_issue(work: Path) -> None:
    (found,) = paths_in_prose("Orders.\n\nLeave `billing/` alone.", work, first=4)
    assert found.line == 6
