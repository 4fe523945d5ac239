"""The sender of a nudge is who it is, and a polecat ends others only when it says that it means to."""

from __future__ import annotations

import json
import shlex

from tests.real.conftest import Place
from tests.supervise.command import GT, gt
from tests.waiting import until
from witness.journal import GroupState

WAITS = ["sleep", "60"]


def inside(place: Place, name: str, command: str) -> str:
    """What a command prints that an agent runs; its exit code is the last line."""
    out = place.work / f"{name}.out"
    place.spawn(name, ["sh", "-c", f"({command}) > {out}.new 2>&1; echo $? >> {out}.new; mv {out}.new {out}; sleep 60"])
    until(out.exists, "the command did not end")
    return out.read_text()


def senders(place: Place, name: str) -> list[str]:
    folder = place.town.queue_dir(place.witness.find(name).session)
    return [json.loads(path.read_text())["sender"] for path in sorted(folder.glob("*.json"))]


def test_a_polecat_signs_as_itself(place: Place) -> None:
    place.spawn("other", WAITS)
    nudge = shlex.join([*GT, "nudge", "other", "hello", "--mode", "queue"])
    told = inside(place, "x", f"cd {place.work}; GT_ROLE=sidecar:scope GT_WITNESS_GROUP= setsid -w {nudge}")
    assert told.endswith("\n0\n"), told
    assert senders(place, "other") == ["main/polecats/x"]


def test_nobody_signs_as_a_sidecar(place: Place) -> None:
    place.spawn("other", WAITS)
    import os

    environment = {**os.environ, "GT_ROLE": "sidecar:scope"}
    done = gt(place.work, "nudge", "other", "hello", "--mode", "queue", environment=environment)
    assert done.returncode == 2
    assert "nobody but a sidecar" in done.stderr
    assert senders(place, "other") == []


def test_a_polecat_is_asked_before_it_ends_another(place: Place) -> None:
    place.spawn("other", WAITS)
    told = inside(place, "x", f"cd {place.work}; {shlex.join([*GT, 'polecat', 'nuke', 'other'])}")
    assert told.endswith("\n2\n"), told
    assert "say --force" in told
    assert place.witness.find("other")
    told = inside(place, "y", f"cd {place.work}; {shlex.join([*GT, 'polecat', 'nuke', 'other', '--force'])}")
    assert told.endswith("\n0\n"), told


def test_a_polecat_is_done_with_its_own_work_alone(place: Place) -> None:
    other = place.spawn("other", WAITS, daemon=True)
    forged = f"GT_WITNESS_GROUP={other.group.marker} {shlex.join([*GT, 'done'])}"
    place.spawn("x", ["sh", "-c", f"cd {place.work}; {forged}; sleep 60"], daemon=True)
    until(lambda: place.witness.find("x", ended=True).state is GroupState.NUKED, "it was not done itself")
    assert place.witness.find("other").state is not GroupState.NUKED
