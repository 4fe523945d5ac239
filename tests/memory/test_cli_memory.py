"""``gt memory``: what it prints, where, and with which exit code."""

from __future__ import annotations

import io
import json

import pytest

from tests.memory.cli import Cli, Ran
from tests.memory.files import MDAN, TEMPLATE, write


def _add(gt: Cli, content: str, *options: str) -> str:
    ran = gt("add", "ada", content, *options)
    assert ran.code == 0, ran.err
    return ran.out.split()[0]


def test_from_init_to_save_and_into_the_next_session(gt: Cli) -> None:
    assert gt("init", "ada").code == 0
    assert "persistent memory" not in gt("load", "ada").out
    _add(gt, "the queue drops big messages", "--basis", "explicit", "--type", "context")
    saved = gt("save", "ada", "--json")
    assert json.loads(saved.out)["sessions_participated"] == 1
    assert "[context, 1, " in gt("load", "ada", "--task", "queue").out


def test_inside_a_polecat_the_run_is_the_session(gt: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GT_WITNESS_GROUP", "main/toast/run-7")
    _add(gt, "one")
    memory = json.loads(gt("show", "ada", "--json").out)["memories"][0]
    assert memory["source_session"] == "run-7"


def test_a_refusal_is_one_line_on_stderr_and_exit_2(gt: Cli) -> None:
    ran = gt("add", "ada", "the password is hunter2")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("gt: this looks like a secret")
    assert "hunter2" not in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "nobody"),
        ("use", "nobody", "x"),
        ("forget", "nobody", "x"),
        ("explain", "nobody"),
        ("export", "nobody"),
        ("save", "nobody"),
        ("add", "../x", "text"),
        ("add", "ada", "text", "--type", "wish"),
        ("forget", "ada"),
        ("lint", "nobody"),
    ],
)
def test_bad_usage_is_exit_2_and_makes_nothing(gt: Cli, arguments: tuple[str, ...]) -> None:
    ran = gt(*arguments)
    assert ran.code == 2
    assert ran.err.startswith("gt: ")
    assert list(gt.project.iterdir()) == []


def test_show_is_a_table_that_reads_no_markup(gt: Cli) -> None:
    write(gt.project, "architect", TEMPLATE)
    gt("add", "architect", "[bold]not markup[/bold] \x1b[31m")
    out = gt("show", "architect").out
    assert "Ada Architect: 3 sessions" in out
    assert "[bold]not markup[/bold] [31m" in out
    assert "\x1b" not in out
    assert "agrees with: dev" in out
    assert "DR-001" in out


def test_list(gt: Cli) -> None:
    write(gt.project, "architect", TEMPLATE)
    assert json.loads(gt("list", "--json").out) == [
        {"agent": "architect", "memories": 2, "sessions": 3, "last_updated": TEMPLATE["last_updated"]}
    ]
    assert "architect" in gt("list").out


def test_forget_one_by_query_and_undo(gt: Cli) -> None:
    one = _add(gt, "the queue drops big messages")
    _add(gt, "uses tabs")
    assert gt("forget", "ada", one).out == "1 forgotten\n"
    assert gt("forget", "ada", "--undo").out == "1 brought back\n"
    assert gt("forget", "ada", "--query", "big queues").out == "1 forgotten\n"
    assert [m["content"] for m in json.loads(gt("show", "ada", "--json").out)["memories"]] == ["uses tabs"]
    assert gt("forget", "ada", "--query", "unicorns").code == 2


def test_what_was_purged_stands_in_no_file(gt: Cli) -> None:
    one = _add(gt, "a most private fact")
    gt("forget", "ada", one, "--purge")
    for path in (gt.project / "_mdan").rglob("*"):
        assert not path.is_file() or b"private" not in path.read_bytes()
    assert gt("forget", "ada", "--undo").code == 2


def test_export_and_import_carry_a_memory_to_another_project(gt: Cli, tmp_path_factory: pytest.TempPathFactory) -> None:
    write(gt.project, "architect", MDAN)
    file = gt.project / "out.json"
    assert gt("export", "architect", str(file)).code == 0
    assert "gt_witness" not in file.read_text()
    other = tmp_path_factory.mktemp("other")
    assert gt("import", "bob", str(file), "--project", str(other)).out == "1 taken in, 1 of them new\n"
    shown = json.loads(gt("show", "bob", "--json", "--project", str(other)).out)
    assert shown["memories"][0]["content"] == MDAN["memories"][0]["content"]
    assert shown["relationships"]["agrees_with"] == ["dev"]
    assert shown["decision_history"] == MDAN["decision_history"]


def test_import_takes_a_plain_list_and_refuses_what_is_none(gt: Cli) -> None:
    file = gt.project / "list.json"
    file.write_text('[{"content": "uses tabs", "type": "preference", "confidence": 0.8}, "likes rain"]')
    assert gt("import", "ada", str(file)).out == "2 taken in, 2 of them new\n"
    file.write_text("uses tabs")
    ran = gt("import", "ada", str(file))
    assert ran.code == 2
    assert "neither a memory file, nor" in ran.err


def test_import_takes_the_points_of_an_older_markdown_memory(gt: Cli) -> None:
    file = gt.project / "memories.md"
    file.write_text("# Ada\n\n- likes rain\n\n## Preferences\n* **tabs** over spaces\n1. short names\n\nplain text\n")
    assert gt("import", "ada", str(file)).out == "4 taken in, 4 of them new\n"
    memories = json.loads(gt("show", "ada", "--json").out)["memories"]
    assert [(each["type"], each["content"]) for each in memories] == [
        ("observation", "likes rain"),
        ("preference", "tabs over spaces"),
        ("preference", "short names"),
        ("preference", "plain text"),
    ]
    file.write_bytes(b"- \xff\xfe")
    assert gt("import", "ada", str(file)).code == 2


def test_explain(gt: Cli) -> None:
    one = _add(gt, "the queue drops big messages", "--evidence", "docs/queue.md line 3")
    _add(gt, "uses tabs")
    text = gt("explain", "ada", one, "--task", "queue").out
    assert "evidence: docs/queue.md line 3" in text
    assert "shares queue" in text
    assert "uses tabs" not in text
    assert len(json.loads(gt("explain", "ada", "--json").out)) == 2


def test_lint_of_all_of_one_and_of_a_file(gt: Cli) -> None:
    write(gt.project, "architect", TEMPLATE)
    assert gt("lint").code == 0
    bad = write(gt.project, "dev", {**TEMPLATE, "memories": "none"})
    ran = gt("lint", "dev")
    assert ran.code == 2
    assert f"{bad}: memories: must be a list" in ran.err
    assert gt("lint", str(bad), "--json").out.count('"error"') == 1


def test_a_working_directory_that_is_gone_is_no_traceback(gt: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = gt.project / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    ran = gt("list")
    assert (ran.code, ran.err) == (2, "gt: the working directory is gone: say which --project is meant\n")
    monkeypatch.setenv("GT_MEMORY_ROOT", str(gt.project))
    assert gt("add", "ada", "still possible").code == 0


def test_relate_needs_two(gt: Cli) -> None:
    assert gt("relate", "ada", "agrees_with", "bob").out == "seen 1 time(s)\n"
    assert gt("relate", "ada", "agrees_with", "bob").out == "a relationship now\n"


def test_use_raises_confidence(gt: Cli) -> None:
    one = _add(gt, "x", "--session", "s1")
    assert gt("use", "ada", one, "--session", "s2").out == f"{one} 0.7\n"


def test_the_clients_hook_reads_its_event_from_stdin(gt: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    _add(gt, "seen")

    def send(text: str) -> Ran:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        return gt("hook", "ada")

    assert "seen" in send('{"hook_event_name": "SessionStart", "source": "compact"}').out
    assert send('{"hook_event_name": "SessionEnd", "reason": "other"}') == Ran(0, "", "")
    assert json.loads(gt("list", "--json").out)[0]["sessions"] == 1
    # Never 2: the client would take that for a word to block the compaction.
    assert send("no json").code == 1
    assert send("[]").code == 1
    monkeypatch.setattr("sys.stdin", io.StringIO('{"hook_event_name": "PreCompact"}'))
    assert gt("hook", "../x").code == 1


def test_a_running_polecat_is_told_through_its_queue(gt: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from witness.config.town import Town
    from witness.journal import Group, GroupState, Journal
    from witness.names import GroupId

    town = Town.init(gt.project)
    town.make_runtime()
    _add(gt, "the queue drops big messages")
    with Journal(town.journal_path) as journal:
        journal.groups.add(
            Group(
                id=GroupId("main", "toast", "run-1"),
                session="gt-toast",
                state=GroupState.RUNNING,
                boot="b",
                spawned_at=1.0,
                created=1.0,
                workdir=str(gt.project),
                agent=("claude",),
                molecule="",
            )
        )
    assert gt("load", "ada", "--target", "toast").code == 0
    assert gt("load", "ada", "--target", "toast").code == 0
    waiting = [json.loads(path.read_text()) for path in town.queue_dir("gt-toast").glob("*.json")]
    assert len(waiting) == 1
    assert "the queue drops big messages" in waiting[0]["message"]
    assert waiting[0]["sender"] == "memory"
    assert gt("load", "ada", "--target", "jam").code == 2


def test_the_sixth_addition_of_a_person_says_how_to_go_on(gt: Cli) -> None:
    for number in range(5):
        _add(gt, f"fact {number}")
    ran = gt("add", "ada", "a sixth")
    assert ran.code == 2
    assert "'gt memory save ada'" in ran.err
    assert gt("save", "ada").code == 0
    _add(gt, "a sixth")


def test_a_correction_is_told_and_explained(gt: Cli) -> None:
    _add(gt, "the deploy branch is main")
    ran = gt("add", "ada", "the deploy branch is release")
    assert "replaces" in ran.out
    assert "before" in gt("explain", "ada").out
    assert "the deploy branch is main" in gt("show", "ada", "--archive").out
