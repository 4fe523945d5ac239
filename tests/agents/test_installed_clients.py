"""Clients that other packages add."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.installed import package
from witness.agents.clients import ANY, CLAUDE, client_for, client_named, installed_clients
from witness.doctor.client_checks import check_installed

SOURCE = """
import re
from witness import Channel, Client
crew = Client("crew", "Crew", ("crew", "crew-cli"), Channel.PANE, prompt=re.compile(r"^> (.*)$"), last=("{prompt}",))
second = Client("second", "Crew again", ("crew",), Channel.PANE)
claude = Client("claude", "Not Claude Code", ("other",), Channel.PANE)
hooked = Client("hooked", "Hooked", ("hooked",), Channel.HOOKS)
nothing = Client("nothing", "Nothing", (), Channel.PANE)
number = 5
"""
NAMES = {name: "{module}:" + name for name in ("crew", "second", "claude", "hooked", "nothing", "number", "missing")}
GROUP = "gt_witness.clients"


def test_an_installed_client_is_known_and_started_as_it_says(tmp_path: Path) -> None:
    with package(tmp_path / "site", SOURCE, GROUP, {"crew": NAMES["crew"]}):
        crew = client_for(["env", "X=1", "crew-cli", "--fast"])
        assert (crew.name, client_named("crew")) == ("crew", crew)
        assert crew.launch(["crew"], "Begin.", "s.json") == ["crew", "Begin."]
        assert client_for(["claude"]) is CLAUDE
        assert client_for(["bash"]) is ANY
        assert installed_clients()[1] == ()
    assert client_for(["crew-cli"]) is ANY


def test_what_is_wrong_costs_one_line_and_the_rest_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with package(tmp_path / "site", SOURCE, GROUP, NAMES), caplog.at_level(logging.WARNING, "witness"):
        assert client_for(["crew"]).name == "crew"
        found, faults = installed_clients()
        findings = [each.message for each in check_installed()]
    assert [each.name for each in found] == ["crew"]
    told = [fault.partition(" cannot be used: ") for fault in faults]
    what = {place.split(" = ")[0].removeprefix(f"{GROUP}: "): words for place, _, words in told}
    assert what == {
        "second": "crew has its name or one of its programs already",
        "claude": "claude has its name or one of its programs already",
        "hooked": "its channel is hooks, and has to be one of pane, none",
        "nothing": "it names no programs",
        "number": "TypeError: it is int, and no witness.Client",
        "missing": what["missing"],
    }
    assert what["missing"].startswith("AttributeError: ")
    assert [record.getMessage() for record in caplog.records] == list(faults) == findings
    assert all("\n" not in fault for fault in faults)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "crew"])
def test_a_package_that_cannot_be_imported_breaks_nothing(tmp_path: Path, name: str) -> None:
    with package(tmp_path / "site", "raise SystemExit('no\\nsuch thing')", GROUP, {name: NAMES[name]}):
        assert client_for(["crew"]) is ANY
        assert installed_clients()[1][0].endswith("SystemExit: no such thing")


@pytest.mark.parametrize(
    "code",
    [
        "from witness.cli.main import main\ntry:\n    main(['--version'])\nexcept SystemExit: pass",
        "from witness import Witness",
        "from witness.agents.clients import client_for; client_for(['npx', 'claude'])",
        "from witness.events.spool_writer import wake",
    ],
)
def test_nobody_looks_for_packages_who_needs_none(code: str) -> None:
    told = "import sys, json; print(json.dumps(['importlib.metadata' in sys.modules, 'logging' in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{code}\n{told}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout.splitlines()[-1])[0] is False


def test_where_no_package_adds_one_the_packages_own_records_are_not_read() -> None:
    code = (
        "import sys; from witness.agents.clients import client_for; from witness.installed import entries; "
        "client_for(['sleep']); print('importlib.metadata' in sys.modules, entries('gt_witness.clients'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False {}"


@pytest.mark.parametrize("place", ["archive.zip", "lone.egg"])
def test_an_archive_of_packages_is_asked_in_its_own_way(tmp_path: Path, place: str) -> None:
    site = tmp_path / "site"
    site.mkdir()
    with zipfile.ZipFile(site / place, "w") as archive:
        folder = "crew-1.0.dist-info" if place.endswith(".zip") else "EGG-INFO"
        archive.writestr(f"{folder}/METADATA", "Metadata-Version: 2.1\nName: crew\nVersion: 1.0\n")
        archive.writestr(f"{folder}/PKG-INFO", "Metadata-Version: 2.1\nName: crew\nVersion: 1.0\n")
        archive.writestr(f"{folder}/entry_points.txt", f"[{GROUP}]\ncrew = crew:crew\n")
    code = f"from witness.installed import entries; print(*entries({GROUP!r}))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.append({str(site / place)!r}); {code}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "crew"
