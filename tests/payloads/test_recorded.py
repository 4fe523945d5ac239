"""Every recorded payload, read as the product reads it, against what the case did and what truly changed on disk."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sidecars.observer.observe.events import EventReader
from tests.clients import versions
from witness.judging.observation import Observation

HERE = Path(__file__).parent
RECORDINGS = sorted(HERE.glob("*/*.json"))
COMPLETED = [
    path for path in RECORDINGS if re.search(r"\.(PostToolUse|PostToolUseFailure|AfterTool)\.json$", path.name)
]
TOOLS = {"bash": "Bash", "shell": "Bash", "patch": "Edit", "edit": "Edit", "write": "Write", "read": "Read",
         "grep": "Grep", "glob": "Glob", "notebook": "NotebookEdit"}  # fmt: skip
# Cases whose last call fails, and how.
FAILING = re.compile(r"-(failure|half|denied|asked)\b")
# Calls whose payload does not tell that they failed: Codex CLI gives no exit status of a command, and no event after a
# patch that did not apply.
NO_STATUS = re.compile(r"codex-.*/shell-(failure|half|denied)\.")


class Recorded(NamedTuple):
    """A recording in a work folder of the test's own, so that its paths are real."""

    record: dict[str, Any]
    seen: Observation | None
    work: Path

    def truly(self, *kinds: str) -> set[str]:
        """Files that changed, as the reader spells them."""
        return {
            path.removeprefix("{WORK}/").replace("{ROOT}", str(self.work.parent))
            for kind in kinds or ("changed", "created", "removed")
            for path in self.record[kind]
        }


def read(path: Path, work: Path, cwd_before: str = "") -> Recorded:
    text = path.read_text(encoding="utf-8").replace("{WORK}", str(work)).replace("{ROOT}", str(work.parent))
    seen = EventReader(str(work)).read(json.loads(text)["payload"], cwd_before=cwd_before)
    return Recorded(json.loads(path.read_text(encoding="utf-8")), seen, work)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def case_of(path: Path) -> tuple[str, int]:
    """The case's name and which of its calls this is."""
    name, number, *_ = [*path.name.split("."), ""]
    return name, int(number) if number.isdigit() else 1


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def every(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=named)


def test_every_client_of_the_versions_file_is_recorded() -> None:
    known = versions()
    wanted = {f"claude-{known['CLAUDE']}", f"claude-{known['CLAUDE_NEWEST']}", f"codex-{known['CODEX']}",
              f"gemini-{known['GEMINI']}", f"opencode-{known['OPENCODE']}"}  # fmt: skip
    assert {path.parent.name for path in RECORDINGS} == wanted


@every(RECORDINGS)
def test_a_recording_is_small_and_holds_no_place_of_the_machine_that_made_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text) < 30_000
    assert not re.search(r"(?<!\.gemini)/tmp/|/root\b|/home/|gt-payloads", text)


@every(COMPLETED)
def test_what_is_told_as_written_did_change(path: Path, work: Path) -> None:
    recorded = read(path, work)
    assert recorded.seen is not None
    if NO_STATUS.search(named(path)):  # a client that tells the status is read by it: then mend the reader
        assert (recorded.seen.failed, recorded.seen.untold) == (False, True)
    told = set(recorded.seen.written)
    assert told <= recorded.truly()
    assert told == set() or not recorded.seen.failed


@every(COMPLETED)
def test_a_writing_tool_that_succeeded_tells_all_it_changed(path: Path, work: Path) -> None:
    recorded = read(path, work)
    assert recorded.seen is not None
    if recorded.seen.tool in ("Edit", "Write", "NotebookEdit"):
        assert set(recorded.seen.written) == recorded.truly()
        assert recorded.seen.opened == ()
        assert bool(recorded.seen.text) == bool(recorded.truly())


@every([path for path in COMPLETED if case_of(path)[0].partition("-")[0] in TOOLS])
def test_the_tool_and_its_outcome(path: Path, work: Path) -> None:
    seen = read(path, work).seen
    assert seen is not None
    name, number = case_of(path)
    tool = TOOLS[name.partition("-")[0]]
    later = path.with_name(path.name.replace(f"{name}.", f"{name}.{number + 1}.")).exists() if number == 1 else False
    # A file is read before it is edited; where the edit was refused nothing comes after that.
    read_first = seen.tool == "Read" and number == 1 and (later or FAILING.search(name))
    assert seen.tool == tool or read_first
    assert seen.subagent == ""
    if "PostToolUseFailure" in path.name:
        assert seen.failed
    elif seen.tool == tool and not NO_STATUS.search(named(path)):
        assert seen.failed == bool(FAILING.search(name))


@every([path for path in COMPLETED if case_of(path)[0] == "subagent-edit"])
def test_what_a_subagent_did_is_told_as_its_own(path: Path, work: Path) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))["payload"]
    seen = read(path, work).seen
    assert seen is not None
    # Gemini CLI does not tell its subagents' calls from its own: nothing to be read there.
    own = seen.tool == "Agent" or path.parent.name.startswith("gemini")
    assert bool(seen.subagent) == (not own)
    assert bool(record.get("agent_id")) == (not own)


OPENED = {
    ("read-success", 1): ("app.py",),
    ("read-failure", 1): (),
    ("read-denied", 1): (),
    ("bash-read", 1): ("app.py",),
    ("shell-read", 1): ("app.py",),
    ("bash-cd-read", 1): ("sub/inner.py",),
    ("shell-cd-read", 1): ("sub/inner.py",),
    ("shell-cd-read", 2): ("app.py",),
    ("bash-cd-back", 1): ("sub/inner.py",),
    ("shell-workdir", 1): ("sub/inner.py",),
    ("shell-folder", 1): ("sub/inner.py",),
    ("bash-workdir", 1): ("sub/inner.py",),
    ("glob-success", 1): (),
    ("grep-success", 1): (),
    # Claude Code's shell stays where a command has led it, the other clients' begin anew.
    ("claude", "bash-cd-read", 2): ("sub/deep/below.py",),
    ("claude", "bash-cd-read", 3): ("sub/deep/below.py",),
    ("opencode", "bash-cd-read", 2): ("app.py",),
    # The client has put its shell back: where the command ran cannot be known from this payload.
    ("bash-cd-out", 1): (),
    ("bash-cd-out", 2): ("app.py",),
    # Upwards: the folder before has a name that nobody has told.
    ("bash-cd-up", 1): (),
    ("bash-cd-up", 2): (),
    ("bash-cd-up", 3): ("sub/inner.py",),
    ("bash-subshell", 1): None,
}


@every(
    [
        path
        for path in COMPLETED
        if (case_of(path) in OPENED or (path.parent.name.partition("-")[0], *case_of(path)) in OPENED)
    ]
)
def test_what_was_opened(path: Path, work: Path) -> None:
    seen = read(path, work).seen
    assert seen is not None
    wanted = OPENED.get((path.parent.name.partition("-")[0], *case_of(path)), OPENED.get(case_of(path)))
    if wanted is None:
        assert set(seen.opened) <= {"sub/inner.py"}
    else:
        assert seen.opened == wanted


@every(
    [path for path in COMPLETED if path.name.startswith("bash-cd-up.2") or path.name == "bash-cd-out.PostToolUse.json"]
)
def test_the_recorded_folder_before_settles_it(path: Path, work: Path) -> None:
    before = json.loads(path.with_name(path.name.replace("PostToolUse", "PreToolUse")).read_text())["payload"]["cwd"]
    recorded = read(path, work, before.replace("{WORK}", str(work)))
    assert recorded.seen is not None
    assert [Path(name).name for name in recorded.seen.opened] == ["other.py" if "out" in path.name else "app.py"]
    assert recorded.seen.opened[0] in (str(work.parent / "outside" / "other.py"), "app.py")


@every([path for path in RECORDINGS if path not in COMPLETED])
def test_events_around_a_call_are_no_action(path: Path, work: Path) -> None:
    seen = read(path, work).seen
    if path.name in ("session.UserPromptSubmit.json", "session.BeforeAgent.json"):
        assert seen is not None
        assert seen.prompt == "do the work"
    else:
        assert seen is None


@pytest.mark.parametrize(
    ("client", "case"),
    [("codex", "patch-failure"), ("codex", "patch-denied"), ("gemini", "write-denied"), ("claude", "edit-denied")],
)
def test_a_refused_edit_has_no_event_after_it(client: str, case: str) -> None:
    """What the product's silence rests on: none of these clients sends anything that could be told as done."""
    for folder in HERE.glob(f"{client}-*"):
        last = sorted(folder.glob(f"{case}*PostToolUse*"))[-1:]
        assert [each for each in last if "old_string" in each.read_text() or "Patch" in each.read_text()] == []
