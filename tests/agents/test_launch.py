"""How each client is started with a prompt."""

from __future__ import annotations

import pytest

from witness.agents.clients import client_for


@pytest.mark.parametrize(
    ("argv", "started"),
    [
        ("claude --allowedTools A B", "claude PROMPT --allowedTools A B --settings S"),
        ("npx claude -c", "npx claude PROMPT -c --settings S"),
        ("env A=b /opt/bin/claude", "env A=b /opt/bin/claude PROMPT --settings S"),
        ("codex --full-auto", "codex --full-auto PROMPT"),
        ("gemini -m pro", "gemini -m pro --prompt-interactive PROMPT"),
        ("opencode", "opencode --prompt PROMPT"),
        ("bash --norc", "bash --norc"),
    ],
)
def test_the_prompt_stands_where_the_client_takes_it(argv: str, started: str) -> None:
    assert client_for(argv.split()).launch(argv.split(), "PROMPT", "S") == started.split()


def test_without_a_prompt_only_the_settings_are_added() -> None:
    assert client_for(["claude"]).launch(["claude"], "", "S") == ["claude", "--settings", "S"]
    assert client_for(["codex"]).launch(["codex"], "", "S") == ["codex"]
