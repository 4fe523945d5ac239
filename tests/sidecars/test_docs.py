"""What docs/sidecars.md tells an author to type works, as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from sidecars.type_reader.sidecar_type import SidecarType
from sidecars.type_reader.type_schema import FIELDS, RULE_FIELDS, SOURCES

PAGE = (Path(__file__).parents[2] / "docs" / "sidecars.md").read_text()


def block(language: str, holding: str) -> str:
    found: list[str] = re.findall(rf"^ *```{language}\n(.*?)^ *```", PAGE, re.DOTALL | re.MULTILINE)
    return next(text for text in found if holding in text)


def test_the_shortest_way(tmp_path: Path) -> None:
    commands = block("sh", "mkdir").replace("gt sidecar", f"{shlex.quote(sys.executable)} -m witness.cli sidecar")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(["sh", "-e"], input=commands, cwd=tmp_path, env=environment, capture_output=True, text=True,
                          check=True)  # fmt: skip
    assert done.stdout.startswith("old-migration (high): fires when Edit or Write was called")
    cases = re.sub(r"^   ", "", block("yaml", "cases:"), flags=re.MULTILINE)
    (tmp_path / ".gt/sidecars/migrations/cases.yaml").write_text(cases)
    measure = [sys.executable, "-m", "witness.cli", "sidecar", "eval", "migrations"]
    subprocess.run(measure, cwd=tmp_path, env=environment, capture_output=True, check=True)


def test_the_front_matter_is_right() -> None:
    from sidecars.observer.context.files import read_front_matter

    (rule,) = read_front_matter(block("yaml", "bad-input-is-422"), "page").rules
    assert rule.name == "bad-input-is-422"


def test_every_field_rule_key_and_source_is_told() -> None:
    told = set(re.findall(r"`([\w@]+)(?::[^`]*)?`", PAGE))
    assert set(FIELDS) - {"summary", "rules", "prompt"} <= told
    assert set(RULE_FIELDS) - {"name"} <= told
    assert set(SOURCES) <= told


@pytest.mark.parametrize("name", ["threshold", "cooldown", "gap", "cap", "holdout", "poll", "timeout", "batch"])
def test_the_defaults_are_as_told(name: str) -> None:
    (told,) = re.findall(rf"^\| `{name}` \| ([^|]*) \|", PAGE, re.MULTILINE)
    value = getattr(SidecarType("x"), name)
    assert str(value).removesuffix(".0") == told.strip("`").removesuffix(" s")


def test_its_yaml_is_yaml() -> None:
    assert yaml.safe_load(re.sub(r"^   ", "", block("yaml", "cases:"), flags=re.MULTILINE))
