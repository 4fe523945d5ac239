from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.stand_in import StandIn
from tests.scripts import with_our_packages
from witness.cli.exec_real_gt import find_real_gt
from witness.cli.gas_town import run_real_gt


def _script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def _find(*folders: Path) -> Path | None:
    found = find_real_gt({"PATH": os.pathsep.join(map(str, folders))})
    return Path(found) if found else None


def test_the_next_gt_on_the_path_that_is_not_ours(tmp_path: Path) -> None:
    _script(tmp_path / "pip" / "gt", f"{with_our_packages()}from witness.cli import main\nmain()\n")
    _script(tmp_path / "wrapper" / "gt", '#!/bin/sh\nexec gt-witness "$@"\n')
    (tmp_path / "folder" / "gt").mkdir(parents=True)
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "gt").touch(mode=0o644)
    first, second = StandIn(tmp_path / "real"), StandIn(tmp_path / "later")
    names = ["missing", "pip", "wrapper", "folder", "plain"]
    own = [tmp_path / name for name in names]
    assert _find(*own) is None
    assert _find(*own, first.folder, second.folder) == first.path
    assert _find() is None


def test_our_own_start_script_under_any_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = _script(tmp_path / "gt-witness.pyz", "#!/usr/bin/env python3\nPK\x03\x04")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gt").symlink_to(packed)
    monkeypatch.setattr(sys, "argv", [str(packed)])
    assert _find(tmp_path / "bin") is None


def test_a_folder_without_name_is_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    StandIn(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert find_real_gt({"PATH": ""}) == "./gt"


@pytest.mark.parametrize(("body", "code"), [("", 0), ("sys.exit(7)", 7), ("os.kill(os.getpid(), signal.SIGKILL)", 137)])
def test_a_child_ends_with_the_real_code(tmp_path: Path, body: str, code: int) -> None:
    real = StandIn(tmp_path, body)
    assert run_real_gt(str(real.path), ["done", "--status", "a b"]) == code
    assert real.calls[0]["args"] == ["done", "--status", "a b"]


def test_signals_reach_the_child_and_its_end_decides(tmp_path: Path) -> None:
    body = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5)); print('ready', flush=True); signal.pause()"
    real = StandIn(tmp_path, body)
    program = f"import sys; from witness.cli.gas_town import run_real_gt; sys.exit(run_real_gt({str(real.path)!r}, []))"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 5


@pytest.mark.skipif(not shutil.which("env"), reason="needs env")
def test_the_real_one_is_called_with_its_own_name(tmp_path: Path) -> None:
    real = _script(tmp_path / "gt", "#!/bin/sh\nexit 3\n")
    assert run_real_gt(str(real), []) == 3
