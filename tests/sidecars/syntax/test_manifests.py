"""Packages that manifests name."""

from __future__ import annotations

import pytest

from sidecars.syntax.manifests import packages


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("requirements.txt", "flask==3.0.0\n# redis\nredis>=5  # why\n-r base.txt\n", {"flask", "redis"}),
        ("requirements-dev.txt", "pytest\n", {"pytest"}),
        ("pyproject.toml", 'name = "shop"\nversion = "1.1.0"\nrequires-python = ">=3.11"\n', set()),
        ("pyproject.toml", 'dependencies = ["flask>=3", "Typing_Extensions"]\n', {"flask", "typing-extensions"}),
        ("pyproject.toml", '[tool.poetry.dependencies]\nhttpx = "^0.27"\n', {"httpx"}),
        ("pyproject.toml", '    "httpx>=0.27",\n', {"httpx"}),
        ("package.json", '"version": "1.2.0",\n"build": "tsc",\n"lodash": "^4.1.0",\n"@a/b": "~1"', {"lodash", "@a/b"}),
        ("web/package.json", '"engines": {"node": ">=20"}', set()),
        ("Cargo.toml", 'edition = "2021"\nserde = { version = "1", features = ["derive"] }\n', {"serde"}),
        ("go.mod", "go 1.22\nrequire github.com/google/uuid v1.6.0\n", {"github-com/google/uuid"}),
        ("Gemfile", "gem 'rails', '~> 7'\n", {"rails"}),
        ("shop/notes.txt", "flask==3\n", set()),
    ],
)
def test_packages_are_read(path: str, text: str, expected: set[str]) -> None:
    assert packages(path, text) == expected
