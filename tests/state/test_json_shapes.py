"""What the commands print is as the schemas say of which docs/json.md is made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastjsonschema

from tests.real.conftest import Place
from tests.supervise.command import gt, gt_json

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"


def _check(name: str, value: Any) -> None:
    fastjsonschema.compile(json.loads((SCHEMAS / f"{name}.schema.json").read_text()))(value)


def test_each_shape_is_as_its_schema_says(place: Place) -> None:
    spawned = place.spawn("x", ["sleep", "60"])
    place.spawn("y", ["sleep", "60"])
    _check("du", gt_json(place.work, "du"))
    place.kill(spawned.agent)
    patrolled = gt_json(place.work, "witness", "patrol")
    assert patrolled["zombies"]
    _check("patrol", patrolled)
    ended = gt_json(place.work, "polecat", "nuke", "y")
    assert ended
    _check("nuke", ended)
    lines = gt(place.work, "logs", "--json").stdout.splitlines()
    assert lines
    for line in lines:
        _check("logs", json.loads(line))
