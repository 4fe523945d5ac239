"""Which client an agent's command starts."""

from __future__ import annotations

import pytest

from witness.agents.clients import ANY, CLIENTS, client_for, client_named


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["claude"], "claude"),
        (["/opt/my tools/claude", "--model", "x"], "claude"),
        (["env", "A=b", "claude"], "claude"),
        (["npx", "--yes", "codex", "exec"], "codex"),
        (["node", "/x/gemini.js"], "gemini"),
        (["opencode", "run"], "opencode"),
        (["python3", "claude"], "any"),
        (["my-agent", "claude"], "any"),
        (["claude-wrapper"], "any"),
        ([], "any"),
    ],
)
def test_a_client_is_known_by_its_program(argv: list[str], name: str) -> None:
    assert client_for(argv).name == name


def test_every_row_is_found_by_its_name() -> None:
    assert [client_named(client.name) for client in CLIENTS] == list(CLIENTS)
    assert client_named("nobody") is None


def test_what_is_unknown_is_never_typed_into() -> None:
    assert ANY.prompt is None
