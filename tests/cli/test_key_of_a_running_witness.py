"""A running Witness says where its key comes from, and takes a new one without a restart."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.supervise.command import GT, gt, gt_json
from witness.testing import make_town, supervised

SECRET = "sk-ant-secret-0123456789"


def test_it_says_what_it_has_and_takes_what_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("GT_WITNESS_API_KEY", raising=False)
    town = make_town(tmp_path / "town")
    with supervised(town) as witness:
        witness.start()
        before = witness.status()
        assert (before["key"], before["version"]) == ("", gt_json(town.root, "witness", "status")["version"])
        assert "key for models: none" in gt(town.root, "witness", "status").stdout
        done = subprocess.run(
            [*GT, "key", "set"], cwd=town.root, input=SECRET, capture_output=True, text=True, check=True, timeout=50
        )
        assert "the running Witness has it" in done.stdout
        after = witness.status()
        assert (after["pid"], after["key"]) == (before["pid"], "given by a spawn or gt key set")
        witness.stop()
        witness.start()
        assert witness.status()["key"] == str(tmp_path / "config" / "gt-witness" / "key"), "a unit finds the file"
        told = gt(town.root, "witness", "status").stdout
        assert SECRET not in told + done.stdout + done.stderr


def test_a_key_that_no_unit_would_see_is_told(tmp_path: Path) -> None:
    town = make_town(tmp_path / "town")
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": "", "GT_WITNESS_API_KEY": SECRET}
    shown = gt(town.root, "witness", "install", "--systemd", environment=environment)
    assert "exported only" in shown.stderr
    assert SECRET not in shown.stdout + shown.stderr
    folder = tmp_path / ".config" / "gt-witness"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "key").write_text(SECRET)
    (folder / "key").chmod(0o600)
    assert "exported" not in gt(town.root, "witness", "install", "--systemd", environment=environment).stderr
