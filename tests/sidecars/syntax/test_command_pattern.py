"""Patterns over commands that ran."""

from __future__ import annotations

import pytest

from sidecars.syntax.command_pattern import CommandPattern
from sidecars.syntax.shell import read_shell


@pytest.mark.parametrize(
    ("pattern", "line", "expected"),
    [
        ("git push -f|--force", "git push --force", True),
        ("git push -f|--force", "timeout 60 env X='a b' git -C sub push -uf origin main", True),
        ("git push -f|--force", "git add -A && git commit -qm wip && git push -f", True),
        ("git push -f|--force", "bash -c 'git push --force'", True),
        ("git push -f|--force", "git commit -m 'git push --force'", False),
        ("git push -f|--force", "echo git push --force", False),
        ("git push -f|--force", "grep -rn 'push --force' docs", False),
        ("git push -f|--force", "rm -f x && git push", False),
        ("git push @+*", "git push origin +main", True),
        ("git push @+*", "git push origin main", False),
        ("git clean -f !-n|--dry-run", "git clean -nfd", False),
        ("git checkout @.", "git checkout -- .", True),
        ("docker compose down -v|--volumes", "docker compose -f a.yml down -v", True),
        ("npm|pnpm add|install +", "pnpm --filter web add zod", True),
        ("npm|pnpm add|install +", "pnpm install --frozen-lockfile", False),
        ("pip* install +", "python -m pip install 'pydantic>=2'", True),
        ("pip* install +", "pip install -r requirements.txt", False),
        ('psql "@*drop table*"', "psql -c 'DROP  TABLE orders'", True),
        ('psql "@*drop table*"', "psql <<'E'\nDROP TABLE orders;\nE", True),
        ("python* !by:uv", "uv run python manage.py", False),
        ("python* !by:uv", "python manage.py", True),
        ("!cat|grep", "grep x log", False),
        ("!cat|grep", "pytest | grep x", True),
        ("git commit -m !@feat:*", 'git commit -m "$(cat message)"', False),
        ("git commit -m !@feat:*", "git commit -m 'Update'", True),
        ("git commit -m !@feat:*", "git commit -m 'feat: x'", False),
        ("tmux send-keys", "tmux -L gt-abc send-keys -t x Enter", True),
    ],
)
def test_command_matches(pattern: str, line: str, expected: bool) -> None:
    matcher = CommandPattern(pattern)
    assert any(matcher.matches(ran) for ran in read_shell(line).ran) is expected


@pytest.mark.parametrize("pattern", ["", "-f", "@x", "+ git"])
def test_pattern_needs_a_program(pattern: str) -> None:
    with pytest.raises(ValueError, match="begins with no program"):
        CommandPattern(pattern)
