from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import psutil
import pytest

from sidecars.observer.context import Context
from sidecars.observer.judge.command import CommandJudge
from sidecars.observer.judge.verdict import Verdict
from sidecars.type_reader.sidecar_type import SidecarType
from witness.judging.observation import Observation

SEEN = [Observation("e1", tool="Edit", written=("a.py",), text="x")]


def ask(tmp_path: Path, code: str, timeout: float = 10.0, seen: list[Observation] = SEEN) -> Verdict:
    (tmp_path / "judge.py").write_text(code)
    kind = SidecarType(
        "own", judge="command", command=(sys.executable, "-S", str(tmp_path / "judge.py")), timeout=timeout
    )
    (verdict,) = CommandJudge(kind, Context(documents=(("spec", "words"),)), tmp_path).judge(seen)
    return verdict


def test_json_in_and_json_out(tmp_path: Path) -> None:
    code = """import json, sys
given = json.load(sys.stdin)
seen = given["observations"][0]
json.dump({"signal": True, "evidence": "wrote: " + seen["written"][0], "confidence": "high", "snippet": None,
           "message": given["sidecar"] + " " + given["context"][0]["text"]}, sys.stdout)
"""
    verdict = ask(tmp_path, code)
    assert (verdict.signal, verdict.evidence, verdict.message) == (True, "wrote: a.py", "own words")
    assert verdict.usage is not None
    assert verdict.usage.seconds > 0


def test_no_output_is_silence(tmp_path: Path) -> None:
    verdict = ask(tmp_path, "import sys; sys.stdin.read()")
    assert (verdict.signal, verdict.error) == (False, "")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("print('{')", "broken"),
        ("print('[]')", "no JSON object"),
        ("import sys; sys.exit('out of luck')", "exit code 1: out of luck"),
        ("import sys; sys.stdout.write('x' * 1000000)", "more than 65536 bytes"),
        ("import os; os.kill(os.getpid(), 9)", "exit code -9"),
    ],
)
def test_faults_are_silent_and_told(tmp_path: Path, code: str, error: str) -> None:
    verdict = ask(tmp_path, code)
    assert not verdict.signal
    assert error in verdict.error


def test_a_program_may_answer_on_each_observation_and_knows_what_was_said(tmp_path: Path) -> None:
    code = """import json, sys
given = json.load(sys.stdin)
for seen in given["observations"]:
    print(json.dumps({"signal": "b.py" in seen["written"], "evidence": "wrote: b.py", "observation": seen["id"],
                      "message": given["said"][0]}))
"""
    (tmp_path / "judge.py").write_text(code)
    kind = SidecarType("own", judge="command", command=(sys.executable, "-S", str(tmp_path / "judge.py")), timeout=10.0)
    seen = [*SEEN, Observation("e2", tool="Edit", written=("b.py",))]
    verdicts = CommandJudge(kind, Context(), tmp_path).judge(seen, ["Said before."])
    assert [(each.observation, each.signal, each.message) for each in verdicts] == [
        ("e1", False, "Said before."),
        ("e2", True, "Said before."),
    ]


def test_a_missing_program(tmp_path: Path) -> None:
    kind = SidecarType("own", judge="command", command=("/nonexistent/judge",))
    (verdict,) = CommandJudge(kind, Context(), tmp_path).judge(SEEN)
    assert "No such file" in verdict.error


def test_a_question_that_nobody_reads_blocks_nobody(tmp_path: Path) -> None:
    big = [Observation("e", tool="Write", text="x" * 5_000_000)]
    assert ask(tmp_path, "print('')", seen=big).error == ""


def test_the_deadline_ends_it_with_its_tree(tmp_path: Path) -> None:
    code = f"""import os, subprocess, sys, time
child = "import os, time; os.setsid(); open({str(tmp_path / "pid")!r} + '.new', 'w').write(str(os.getpid())); " \\
        "os.rename({str(tmp_path / "pid")!r} + '.new', {str(tmp_path / "pid")!r}); time.sleep(60)"
middle = "import subprocess, sys; subprocess.Popen([sys.executable, '-S', '-c', sys.argv[1]])"
subprocess.run([sys.executable, '-S', '-c', middle, child])
time.sleep(60)
"""
    verdict = ask(tmp_path, code, timeout=2.0)
    assert "no verdict within 2 s" in verdict.error
    pid = int((tmp_path / "pid").read_text())
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_neither_keys_nor_gas_towns_variables_reach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GT_WITNESS_API_KEY", "GT_ROLE", "TMUX", "CLAUDECODE", "ANTHROPIC_API_KEY", "BD_ACTOR"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("GT_WITNESS_GROUP", "main/toast/run")
    ask(tmp_path, f"import json, os; json.dump(dict(os.environ), open({str(tmp_path / 'env')!r}, 'w'))")
    seen = json.loads((tmp_path / "env").read_text())
    assert seen["GT_WITNESS_GROUP"] == "main/toast/run"
    assert {name for name in seen if name.startswith(("GT_", "TMUX", "CLAUDE", "ANTHROPIC", "BD_"))} <= {
        "GT_WITNESS_GROUP",
        "GT_WITNESS_JUDGE",
    }
    assert seen["PATH"] == os.environ["PATH"]
