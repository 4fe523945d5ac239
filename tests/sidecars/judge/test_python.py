"""Python functions as judges: installed ones, and those of another process."""

from __future__ import annotations

import asyncio
import json
import os
import select
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from sidecars.observer.context import Context
from sidecars.observer.judge.python import PythonJudge
from sidecars.observer.judge.verdict import Verdict
from sidecars.type_reader.sidecar_type import Confidence, SidecarType
from tests.installed import package
from tests.waiting import until
from witness import JudgeContext, JudgeFunction, Observation, Ran, Report, UsageError, Witness
from witness.events.spool_reader import append_event
from witness.judging.hosts import GONE, HostLink
from witness.state.reader import StateReader
from witness.testing import make_town, supervised
from witness.trust import resolve

SEEN = (
    Observation("e1", tool="Edit", written=("a.py",), text="print(1)", ran=(Ran(("ls", "-l"), ("sudo",)),)),
    Observation("e2", tool="Bash", command="ls"),
)
KIND = SidecarType("no-print", judge="python", timeout=2.0)


def no_print(seen: Observation, context: JudgeContext) -> Report | None:
    return Report(f"{seen.paths[0]} prints.", "print(") if "print(" in seen.text else None


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Callable[..., list[Verdict]]]:
    """Puts actions to a function of this very process, by way of the town's socket."""
    town = make_town(tmp_path / "a town")
    with ExitStack() as stack:

        def put(function: JudgeFunction, kind: SidecarType = KIND, **material: object) -> list[Verdict]:
            with Witness(town, environ={}, judges={"no-print": function}):
                judge = PythonJudge(kind, Context(**material), town.runtime)  # type: ignore[arg-type]
                stack.callback(judge.close)
                return judge.judge(SEEN, ["[sidecar:x] Said before."])

        yield put


def test_a_function_is_given_the_actions_and_its_words_are_said(ask: Callable[..., list[Verdict]]) -> None:
    given: list[tuple[Observation, JudgeContext]] = []

    def judge(seen: Observation, context: JudgeContext) -> Report | None:
        given.append((seen, context))
        return no_print(seen, context)

    signal, silent = ask(judge, documents=(("guide.md", "Log."),))
    assert (signal.signal, signal.observation, signal.message) == (True, "e1", "a.py prints.")
    assert (signal.evidence, signal.confidence) == ("print(", Confidence.HIGH)
    assert (silent.signal, silent.error, silent.observation) == (False, "", "e2")
    assert tuple(seen for seen, _ in given) == SEEN
    assert given[0][1] == JudgeContext("no-print", (("guide.md", "Log."),), ("[sidecar:x] Said before.",))


def test_evidence_that_is_not_given_is_the_action_itself(ask: Callable[..., list[Verdict]]) -> None:
    found = ask(lambda seen, context: Report("No."))
    assert [each.evidence for each in found] == ["wrote: a.py", "command: ls"]


def _raises(seen: Observation, context: JudgeContext) -> Report | None:
    raise SystemExit("enough\nof this")


def _is_no_report(seen: Observation, context: JudgeContext) -> object:
    return "a.py prints."


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (_raises, "python: it raised SystemExit: enough of this"),
        (_is_no_report, "python: it returned str, which is neither a witness.Report nor None"),
    ],
)
def test_a_function_that_fails_is_silence_with_a_reason(
    ask: Callable[..., list[Verdict]], function: JudgeFunction, error: str
) -> None:
    (verdict,) = ask(function)
    assert (verdict.signal, verdict.error) == (False, error)


def test_a_function_that_takes_too_long_costs_its_time_and_no_more(ask: Callable[..., list[Verdict]]) -> None:
    gate = threading.Event()
    (verdict,) = ask(lambda seen, context: gate.wait(1) and None, replace(KIND, timeout=0.2))
    gate.set()
    assert verdict.error == "python: no answer within 0.2 s"
    assert verdict.usage is not None
    assert verdict.usage.seconds < 2


def test_what_can_be_no_judge_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    town = make_town(tmp_path / "town")
    with pytest.raises(TypeError, match="'x' is int, and no function"):
        Witness(town, environ={}, judges={"x": 5})  # type: ignore[dict-item]
    with pytest.raises(UsageError, match="not a usable name"):
        Witness(town, environ={}, judges={"good": no_print, "../x": no_print})
    assert not list(town.runtime.glob("judges/*.sock"))
    with Witness(town, environ={}, judges={"x": no_print}), pytest.raises(UsageError, match="another Witness"):
        Witness(town, environ={}, judges={"x": no_print})
    # Its end makes room for the next.
    with Witness(town, environ={}, judges={"x": no_print}):
        (path,) = town.runtime.glob("judges/*.sock")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


HOST = """
import sys
from pathlib import Path
from witness import Report, Town, Witness
with Witness(Town.at(Path(sys.argv[1])), environ={}, judges={"no-print": lambda seen, context: Report("No.")}):
    print("ready", flush=True)
    sys.stdin.read()
"""


def host_process(town: Path, **environment: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOST, str(town)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment},
        cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_the_end_of_a_host_is_known_at_once_and_its_successor_too(tmp_path: Path) -> None:
    town = make_town(tmp_path / "town")
    link = HostLink(town.runtime, "no-print")
    assert (link.lack, link.fileno()) == (GONE, -1)
    for _ in range(2):
        with host_process(town.root) as host:
            assert link.lack == ""
            host.kill()  # its socket stays behind
            assert select.select([link.fileno()], [], [], 20)[0]
            assert link.lack == GONE
            host.communicate()
        with pytest.raises(ConnectionError, match=GONE):
            link.ask({}, 5)
    link.close()


def test_a_process_of_a_polecat_does_not_become_a_judge(tmp_path: Path) -> None:
    town = make_town(tmp_path / "town")
    link = HostLink(town.runtime, "no-print")
    with host_process(town.root, GT_WITNESS_GROUP="main/toast/abcd1234") as host:
        assert link.lack == GONE
        host.communicate()
    link.close()


def test_a_sidecar_asks_its_host_and_says_that_it_is_gone(tmp_path: Path) -> None:
    town = make_town(tmp_path / "town")
    kind = town.root / ".gt" / "sidecars" / "no-print"
    kind.mkdir(parents=True)
    (kind / "sidecar.yaml").write_text("judge: python\nbatch: 0s\n")
    with supervised(town) as witness:

        def mute() -> str:
            ((_, members),) = witness.polecats()
            (state,) = StateReader(town, witness.journal).polecats(witness.polecats())
            assert len(members) > 1
            return state.sidecars[0].mute

        with Witness(town, environ={}, judges={"no-print": no_print}):
            spawned = witness.spawn("toast", workdir=town.root / "repo", agent=["sleep", "60"], sidecars=["no-print"])
            spool = town.run_dir(spawned.group.run) / "spool"
            event = {"hook_event_name": "PostToolUse", "tool_name": "Edit"}
            event |= {"tool_input": {"file_path": "billing/a.py", "new_string": "print(1)"}, "tool_response": {}}  # type: ignore[dict-item]
            append_event(spool, json.dumps(event).encode())
            wake(spool)
            until(lambda: bool(witness.log("toast")), "no decision came")
            assert mute() == ""
        (decision,) = witness.log("toast")
        assert (decision.outcome, decision.message) == ("injected", "[sidecar:no-print] billing/a.py prints.")
        until(lambda: bool(mute()), "the end of the host was not noticed")
        assert mute() == GONE


def wake(spool: Path) -> None:
    """Knock as a hook does; in a process of its own, for it changes its folder."""
    code = "import sys; from witness.events.spool_writer import wake; wake(sys.argv[1], 20)"
    subprocess.run([sys.executable, "-c", code, str(spool)], check=True, cwd=Path(__file__).parents[3])


# -- installed functions --------------------------------------------------------------------------------------------

PACKAGE = """
import os
imported = os.getpid()
from witness import Report
def good(seen, context):
    return Report(f"{seen.tool} was used.")
def slow(seen, context):
    import time
    time.sleep(float(seen.text or 3))
number = 5
"""


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[str]:
    names = {name: "{module}:" + name for name in ("good", "slow", "number", "missing")} | {
        "absent": "nowhere_at_all:x"
    }
    with package(tmp_path / "site", PACKAGE, "gt_witness.judges", names) as module:
        yield module


def test_an_installed_function_is_imported_when_it_is_asked(installed: str) -> None:
    judge = PythonJudge(replace(KIND, function="good"), Context(), None)
    assert judge.host is None
    assert installed not in sys.modules
    assert [each.message for each in judge.judge(SEEN)] == ["Edit was used.", "Bash was used."]
    judge.close()


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("missing", "cannot be used: AttributeError: module"),
        ("absent", "absent = nowhere_at_all:x of gtw_package"),
        ("number", "it is int, and no function"),
    ],
)
def test_an_installed_function_with_a_fault_is_silence_in_one_line(installed: str, name: str, error: str) -> None:
    judge = PythonJudge(replace(KIND, function=name), Context(), None)
    (verdict,) = judge.judge(SEEN)
    judge.close()
    assert verdict.error.startswith(f"python: gt_witness.judges: {name} = ")
    assert error in verdict.error
    assert "\n" not in verdict.error


def test_an_installed_function_that_hangs_holds_nobody_up(installed: str) -> None:
    judge = PythonJudge(replace(KIND, function="slow", timeout=0.2), Context(), None)
    seen = [Observation("e1", tool="Edit", text="1")]
    assert [each.error for each in judge.judge(seen)] == ["python: no answer within 0.2 s"]
    assert [each.error for each in judge.judge(seen)] == ["python: it is still busy with an earlier action"]
    judge.close()


def test_a_host_does_not_hide_an_installed_function(installed: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"installed already: {installed}:good"):
        Witness(make_town(tmp_path / "town"), environ={}, judges={"good": no_print})


def test_a_repository_that_names_a_function_asks_for_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "work" / ".gt" / "sidecars" / "scope"
    folder.mkdir(parents=True)
    (tmp_path / "work" / ".git").mkdir()
    (folder / "sidecar.yaml").write_text("judge: python\nfunction: good\n")
    found = resolve("scope", workdir=tmp_path / "work")
    assert found.fields()["judge"] != "python"
    assert "is judged by python; function calls the Python function good" in found.withheld[0]


def test_a_coroutine_is_no_report(ask: Callable[..., list[Verdict]]) -> None:
    async def judge(seen: Observation, context: JudgeContext) -> None:
        await asyncio.sleep(0)

    (verdict,) = ask(judge)
    assert "it returned coroutine" in verdict.error
