"""Restart, pause and resume of a polecat of our own; variables for its agent."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from pathlib import Path

import pytest

from tests.scripts import BASE_PYTHON
from tests.supervise.command import GT, gt
from tests.waiting import until
from tests.worktrees.conftest import Bench, run_git
from witness.api.restarting import of_last_boot
from witness.events.spool_reader import append_event
from witness.journal import Decision, GroupState, WorktreeState
from witness.process.table import look_up

CONVERSATION = "0b5ad9c2-3d53-4a3c-9d7e-0123456789ab"


def _claude(tmp_path: Path) -> Path:
    """A program of the client's name that tells how it was started, and waits."""
    path = tmp_path / "claude"
    path.write_text(
        f"#!{BASE_PYTHON} -ISs\nimport json,os,sys,time\n"
        "told=os.path.join(os.path.dirname(sys.argv[0]),'started.jsonl')\n"
        "if '--version' in sys.argv: print('2.1.197 (Claude Code)'); sys.exit()\n"
        "open(told,'a').write(json.dumps({'argv':sys.argv[1:],'cwd':os.getcwd(),'env':dict(os.environ)})+'\\n')\n"
        "time.sleep(600)\n"
    )
    path.chmod(0o755)
    return path


def _starts(tmp_path: Path) -> list[dict[str, object]]:
    path = tmp_path / "started.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _spawn(bench: Bench, agent: Path, *more: str) -> dict[str, object]:
    words = ["--agent", f"{agent} --verbose", "--task", "mend it", "--no-wait", "--no-witness", "--json"]
    done = gt(bench.repository, "polecat", "spawn", "toast", *words, *more)
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("ended", [False, True])
def test_a_restart_goes_on_where_it_was(ended: bool, bench: Bench, tmp_path: Path) -> None:
    agent = _claude(tmp_path)
    before = _spawn(bench, agent, "--worktree", "--sidecars", "conventions", "--pids-max", "max")
    until(lambda: len(_starts(tmp_path)) == 1)
    path, run = Path(str(before["worktree"])), str(before["run"])
    (path / "new.txt").write_text("work\n")
    (path / "kept.log").write_text("ignored\n")
    append_event(
        bench.town.run_dir(run) / "spool",
        json.dumps({"hook_event_name": "Stop", "session_id": CONVERSATION}).encode(),
    )
    bench.journal.decisions.add(
        Decision("d1", run, "conventions", time.time(), 1.0, "injected", line="d1", spoken=1.0, words="w")
    )
    if ended:
        assert gt(bench.town.root, "polecat", "nuke", "toast").returncode == 0
    done = gt(bench.town.root, "polecat", "restart", "toast", "--no-wait", "--json")
    assert done.returncode == 0, done.stderr
    after = json.loads(done.stdout)
    assert after["run"] != run
    assert [each["type"] for each in after["sidecars"]] == ["conventions"]
    until(lambda: len(_starts(tmp_path)) == 2)
    argv = _starts(tmp_path)[1]["argv"]
    assert isinstance(argv, list)
    assert argv[:2] == ["--resume", CONVERSATION]
    assert "--verbose" in argv
    assert "Go on with your task" in argv[2]
    assert _starts(tmp_path)[1]["cwd"] == str(path)
    assert (path / "new.txt").read_text() == "work\n"
    assert look_up(int(str(before["pid"]))) is None
    found = bench.journal.worktrees.get(after["run"])
    assert found
    assert found.state is WorktreeState.READY
    assert bench.journal.worktrees.get(run) is None
    assert bench.journal.decisions.spoken(after["run"])["conventions"].lines == 1, "the caps hold over both"
    assert bench.place.witness.find("toast").run_state.task == "mend it"
    # What was laid is known still, so a clean one goes.
    (path / "new.txt").unlink()
    (path / "kept.log").unlink()
    assert "its worktree is removed" in gt(bench.town.root, "polecat", "nuke", "toast").stdout


def test_a_fresh_one_begins_a_new_conversation_with_the_task(bench: Bench, tmp_path: Path) -> None:
    agent = _claude(tmp_path)
    before = _spawn(bench, agent, "--sidecars", "")
    run_dir = bench.town.run_dir(str(before["run"]))
    append_event(run_dir / "spool", json.dumps({"hook_event_name": "Stop", "session_id": CONVERSATION}).encode())
    done = gt(bench.town.root, "polecat", "restart", "toast", "--fresh", "--no-wait")
    assert done.returncode == 0, done.stderr
    until(lambda: len(_starts(tmp_path)) == 2)
    argv = _starts(tmp_path)[1]["argv"]
    assert isinstance(argv, list)
    assert "--resume" not in argv
    assert "mend it" in argv[0]


@pytest.mark.parametrize("given", ["--dangerously-skip-permissions", "../../etc", "x" * 36])
def test_a_conversation_that_is_none_is_not_taken(given: str, bench: Bench, tmp_path: Path) -> None:
    before = _spawn(bench, _claude(tmp_path), "--sidecars", "")
    spool = bench.town.run_dir(str(before["run"])) / "spool"
    append_event(spool, json.dumps({"hook_event_name": "Stop", "session_id": given}).encode())
    assert gt(bench.town.root, "polecat", "restart", "toast", "--no-wait").returncode == 0
    until(lambda: len(_starts(tmp_path)) == 2)
    assert given not in json.dumps(_starts(tmp_path)[1]["argv"])


def test_one_that_cannot_be_started_again_is_left_as_it_is(bench: Bench, tmp_path: Path) -> None:
    agent = _claude(tmp_path)
    before = _spawn(bench, agent, "--worktree", "--sidecars", "")
    agent.unlink()
    done = gt(bench.town.root, "polecat", "restart", "toast", "--no-wait")
    assert done.returncode == 2
    assert "no program" in done.stderr
    assert bench.place.witness.find("toast").id.run == before["run"]
    assert bench.place.witness.find("toast").state is GroupState.RUNNING
    found = bench.journal.worktrees.get(str(before["run"]))
    assert found
    assert found.state is WorktreeState.READY


def test_a_worktree_that_is_gone_is_said(bench: Bench, tmp_path: Path) -> None:
    _spawn(bench, _claude(tmp_path), "--worktree", "--sidecars", "")
    gt(bench.town.root, "polecat", "nuke", "toast")
    done = gt(bench.town.root, "polecat", "restart", "toast")
    assert done.returncode == 2
    assert "is gone: nothing in it was unsaved; spawn toast anew" in done.stderr


def test_after_a_restart_of_the_machine_all_come_back(bench: Bench, tmp_path: Path) -> None:
    before = _spawn(bench, _claude(tmp_path), "--worktree", "--sidecars", "")
    path = Path(str(before["worktree"]))
    (path / "new.txt").write_text("work\n")
    assert of_last_boot(bench.place.witness) == []
    # As the journal stands after it: the record of another boot, and none of its processes.
    group = bench.place.witness.find("toast")
    members = [m.process for m in bench.journal.members.of(group.id.run) if m.process]
    for process in reversed(members):
        bench.place.kill(process)
    bench.journal.run("UPDATE groups SET boot = 'earlier' WHERE run = ?", group.id.run)
    gt(bench.town.root, "witness", "patrol")
    assert bench.place.witness.polecats() == []
    assert (path / "new.txt").read_text() == "work\n"
    done = gt(bench.town.root, "polecat", "restart", "--all-of-last-boot", "--no-wait")
    assert done.returncode == 0, done.stderr
    assert bench.place.witness.find("toast").workdir == str(path)
    assert of_last_boot(bench.place.witness) == []
    again = gt(bench.town.root, "polecat", "restart", "--all-of-last-boot", "--no-wait")
    assert "no polecat was ended" in again.stderr


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_pause_stops_the_whole_tree_and_says_so(bench: Bench) -> None:
    (bench.town.root / "settings" / "witness.yaml").write_text(
        "containment: reaper\nhung_after: 10ms\nnuke_hung: true\nstop_grace: 1s\n"
    )
    script = "import os,subprocess,sys,time; c=subprocess.Popen(['setsid','sleep','600']); open('pid','w').write(str(c.pid)+'\\n'); time.sleep(600)"  # noqa: E501
    agent = shlex.join([sys.executable, "-ISsc", script])
    done = gt(bench.repository, "polecat", "spawn", "toast", "--agent", agent, "--sidecars", "conventions",
              "--no-wait", "--no-witness", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    child = bench.repository / "pid"
    until(lambda: child.is_file() and child.read_text().endswith("\n"))
    tree = [answer["pid"], int(child.read_text())]
    said = gt(bench.town.root, "polecat", "pause", "toast")
    assert said.returncode == 0, said.stderr
    assert [_state(pid) for pid in tree] == ["T", "T"]
    assert _state(answer["sidecars"][0]["pid"]) != "T"
    for _ in range(3):  # its silence is not its own: hung polecats are nuked here
        gt(bench.town.root, "witness", "patrol")
    (row,) = json.loads(gt(bench.town.root, "polecat", "list", "--json").stdout)
    assert (row["state"], row["zombie"], row["activity"]) == ("RUNNING", "", "idle")
    assert row["paused"]
    assert "paused for" in gt(bench.town.root, "polecat", "list").stdout
    assert "goes on" in gt(bench.town.root, "polecat", "resume", "toast").stdout
    assert all(_state(pid) != "T" for pid in tree)
    assert "was not paused" in gt(bench.town.root, "polecat", "resume", "toast").stdout
    assert gt(bench.town.root, "polecat", "pause", "toast").returncode == 0
    assert "none survived" in gt(bench.town.root, "polecat", "nuke", "toast").stdout


def test_a_polecat_cannot_pause_itself(bench: Bench) -> None:
    command = shlex.join([*GT, "polecat", "pause", "toast"])
    script = f"cd {shlex.quote(str(bench.town.root))}; {command} > {bench.repository}/said 2>&1; echo over >> {bench.repository}/said; sleep 600"  # noqa: E501
    done = gt(bench.repository, "polecat", "spawn", "toast", "--agent", shlex.join(["sh", "-c", script]),
              "--sidecars", "", "--no-wait", "--no-witness")  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = bench.repository / "said"
    until(lambda: said.is_file() and "over" in said.read_text())
    assert "we run inside of main/toast" in said.read_text() or "SPAWNING" in said.read_text()


def test_an_agent_gets_its_variables(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "vars"
    file.write_text("# a comment\nexport FROM_FILE='two words'\nBOTH=file\n\n")
    monkeypatch.setenv("MINE", "from the caller")
    _spawn(bench, _claude(tmp_path), "--sidecars", "", "--env", "ONE=1=1", "--env", "MINE", "--env", "BOTH=flag",
           "--env-file", str(file))  # fmt: skip
    until(lambda: len(_starts(tmp_path)) == 1)
    env = _starts(tmp_path)[0]["env"]
    assert isinstance(env, dict)
    assert (env["ONE"], env["FROM_FILE"], env["BOTH"], env["MINE"]) == ("1=1", "two words", "flag", "from the caller")
    told = (bench.town.runtime / "witness.db").read_bytes()
    assert b"two words" not in told, "a variable may be a key: it is in no record"


@pytest.mark.parametrize(
    ("words", "piece"),
    [
        (["--env", "=x"], "'' is no variable"),
        (["--env", "NO_SUCH_VARIABLE_HERE"], "write it as NAME=VALUE"),
        (["--env", "a b=c"], "'a b' is no variable"),
        (["--env", "GT_RUN=x"], "is ours to set"),
        (["--env-file", "nowhere"], "nowhere"),
        (["--env-file", "bad"], "bad:2: write it as NAME=VALUE"),
    ],
)
def test_a_bad_variable_is_one_line(words: list[str], piece: str, bench: Bench) -> None:
    (bench.repository / "bad").write_text("A=1\nB\n")
    done = gt(bench.repository, "polecat", "spawn", "x", "--agent", "sleep 60", "--sidecars", "", *words)
    assert done.returncode == 2
    assert piece in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert bench.place.sessions() == []
    assert run_git(bench.repository, "status", "--porcelain") == "?? bad"
    assert not os.path.exists(bench.town.runtime / "runs")
