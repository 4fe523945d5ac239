"""``gt sidecar``: for authors, and for those who want to know what was said."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sidecars.observer.context.mcp_listing import describe_servers
from tests.sidecars.conftest import as_payload, tool_event
from tests.sidecars.reports import report, tool
from witness.cli import main
from witness.config.town import Town
from witness.events.spool_reader import append_event
from witness.journal import Decision, Group, GroupState, Journal, Usage
from witness.names import GroupId
from witness.testing import Answer, MessagesServer, Request

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def gt(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")

    def call(*argv: str) -> tuple[int, str, str]:
        code = 0
        try:
            main(["sidecar", *argv])
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return call


def write_type(tmp_path: Path, sidecar: str, snippets: str = "s: A fact.\n") -> Path:
    folder = tmp_path / ".gt" / "sidecars" / "own"
    folder.mkdir(parents=True)
    (folder / "sidecar.yaml").write_text(sidecar)
    (folder / "snippets.yaml").write_text(snippets)
    return folder


RULES = "judge: rules\nrules:\n  - {name: r, tools: Write, text: TODO, snippet: s}\n"


def test_types_are_listed_and_explained(gt: Call, tmp_path: Path) -> None:
    write_type(tmp_path, RULES + "poll: 7s\n")
    code, out, _ = gt("types", "--json")
    assert code == 0
    assert {"own", "scope", "specs"} <= {row["type"] for row in json.loads(out)}
    assert "own " in gt("types")[1]
    explained = json.loads(gt("types", "--explain", "own", "--json")[1])
    assert explained["poll"] == 7.0
    assert explained["origins"]["poll"] == f"{tmp_path}/.gt/sidecars/own/sidecar.yaml:4"
    assert explained["rules"] == ["r (high): fires when Write was called, and the new text has /TODO/; says s"]
    assert "sidecar.yaml:4" in gt("types", "--explain", "own")[1]


def test_a_broken_type_hides_no_other(gt: Call, tmp_path: Path) -> None:
    folder = write_type(tmp_path, "pol: 1s\n")
    code, out, err = gt("types")
    assert code == 0
    assert "scope" in out
    assert f"own cannot be used: {folder}/sidecar.yaml:1: pol: unknown key" in err


def test_lint_names_file_line_and_key(gt: Call, tmp_path: Path) -> None:
    folder = write_type(tmp_path, "judge: rules\npol: 5s\nrules: []\n")
    code, out, err = gt("lint", str(folder))
    assert (code, out) == (2, "")
    assert f"{folder}/sidecar.yaml:2: pol: unknown key" in err


def test_lint_warns(gt: Call, tmp_path: Path) -> None:
    snippets = "s: Use the tool at {path}.\nunused: A fact.\nlong: " + "word " * 200 + "\n"
    rules = RULES + "  - {name: q, writes: '@nope', snippet: s}\n"
    folder = write_type(tmp_path, rules, snippets)
    _, out, _ = gt("lint", str(folder / "sidecar.yaml"))
    for words in (
        "reads as an order",
        "no rule says it",
        "is cut at 600",
        "has no value for {path}",
        "@nope is no set",
    ):
        assert words in out


def test_lint_of_all_that_is_shipped(gt: Call) -> None:
    code, out, err = gt("lint", "scope", "specs", "tools", "conventions", "blocks", "loop", "--quiet")
    assert (code, out, err) == (0, "", "")


def test_the_published_schema_is_up_to_date(gt: Call) -> None:
    published = Path(__file__).parents[2] / "sidecars" / "types" / "sidecar.schema.json"
    assert json.loads(gt("schema")[1]) == json.loads(published.read_text())


def test_eval(gt: Call) -> None:
    code, out, _ = gt("eval", "scope", "--json")
    (row,) = json.loads(out)
    assert (code, row["precision"], row["recall"]) == (0, 1.0, 1.0)
    assert len(row["results"]) >= 20


def test_eval_tells_a_judge_that_speaks_without_need(gt: Call, tmp_path: Path) -> None:
    folder = write_type(tmp_path, RULES)
    (folder / "cases.yaml").write_text(
        "cases:\n"
        "  - {name: bad, event: {tool: Write, file_path: a, content: TODO}, expect: silent}\n"
        "  - {name: good, event: {tool: Write, file_path: a, content: TODO}, expect: signal}\n"
    )
    code, out, _ = gt("eval", str(folder / "cases.yaml"))
    assert code == 1
    assert "bad (expected: silent)" in out
    assert "WRONG: [sidecar:own] A fact." in out
    assert "0.500" in out


def test_two_judges_side_by_side(gt: Call, tmp_path: Path) -> None:
    code, out, _ = gt("eval", "specs", "--compare", "rules", "rules+model", "--json")
    assert code == 0
    assert [row["judge"] for row in json.loads(out)] == ["rules", "rules+model"]


def test_eval_says_which_judge_has_judged_and_why(gt: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row named rules+model that no model had a part in would be a figure of something else."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.delenv("GT_WITNESS_API_KEY", raising=False)
    (row,) = json.loads(gt("eval", "specs", "--judge", "rules+model", "--json")[1])
    assert row["judge"] == "rules+model"
    assert row["judged"] == "rules (no key in GT_WITNESS_API_KEY: it runs on its rules alone)"
    assert "no key in GT_WITNESS_API_KEY" in gt("eval", "specs", "--judge", "model")[1]


def test_a_model_finds_what_rules_cannot(gt: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = ("<= 100", "amount_cents", "0, 99", "oldest first", "status_code=200", "status=410")
    right = ("(400", "status_code=400", "status = 400", "11.80", "float(total)", "order-{n}")
    words = {
        sign: f"The code says {sign}; docs/api.md, Errors, says 422, whole cents, o- and a number." for sign in wrong
    }
    words |= dict.fromkeys(right, "It says 422, whole cents, o- and a number.")
    silent = {"JSONDecodeError": "", "docs/notes.md": ""}
    sentence = "Input that breaks a rule is answered with status 422."
    signs = silent | words

    def knows(request: Request) -> Answer:
        sign = next((sign for sign in signs if sign in request.news), None)
        if sign is None:
            return tool(report())
        said = {"evidence": sign, "message": signs[sign], "source_quote": sentence}
        return tool(report(signal=True, confidence="high", **said))

    with MessagesServer(otherwise=knows) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("GT_WITNESS_API_KEY", "sk-test")
        code, out, _ = gt("eval", "specs", "--compare", "rules", "rules+model", "--json")
        rules, both = json.loads(out)
    assert (rules["recall"], both["recall"]) == (0.5, 1.0)
    assert code == 0
    assert both["precision"] == 1.0
    assert both["dollars"] > 0
    assert 0 < both["median_ms"] < 5000
    # The rules propose: what no rule points at costs no call.
    assert len(server.requests) < both["cases"]
    # What the model is shown as a near miss proves nothing of it.
    assert (rules["cases"], both["cases"]) == (24, 20)


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        ("cases: []\n", "cases: must be a list of cases"),
        ("cases:\n- {name: a}\n", "cases.yaml:2: cases.0: give event"),
        ("cases:\n- {name: a, event: {tool: X}, expect: maybe}\n", "cases.0.expect: one of signal, silent"),
        ("cases:\n- {name: a, event: {tool: X}, expect: silent, colour: 1}\n", "cases.0.colour: unknown key"),
        ("colour: 1\ncases:\n- {name: a, event: {tool: X}, expect: silent}\n", "cases.yaml:1: colour: unknown key"),
    ],
)
def test_bad_cases(gt: Call, tmp_path: Path, cases: str, words: str) -> None:
    (tmp_path / "cases.yaml").write_text(cases)
    code, out, err = gt("eval", str(tmp_path / "cases.yaml"))
    assert (code, out) == (2, "")
    assert words in err


def test_replay_of_a_spool(gt: Call, tmp_path: Path) -> None:
    (tmp_path / "issue.md").write_text("---\nnot: [src/]\n---\n")
    append_event(
        tmp_path, as_payload(tool_event("Edit", file_path="src/a.py", new_string="x") | {"cwd": str(tmp_path)})
    )
    append_event(tmp_path, as_payload(tool_event("Read", file_path="b.py")))
    spool = str(tmp_path / "events.jsonl")
    code, out, _ = gt("replay", "--events", spool, "--type", "scope:issue.md", "--json")
    done = json.loads(out)
    assert (code, done["said"], done["calls"], done["decisions"]) == (0, 1, 0, 2)
    assert done["log"][0]["message"].startswith("[sidecar:scope] src/a.py was changed")
    shown = gt("replay", "--events", spool, "--type", "scope:issue.md")[1]
    assert "injected: [sidecar:scope] src/a.py" in shown
    assert "2 moments" in shown


def test_replay_estimates_without_a_key(gt: Call, tmp_path: Path) -> None:
    (tmp_path / "spec.md").write_text("It must hold.\n")
    append_event(tmp_path, as_payload(tool_event("Edit", file_path="a.py", new_string="x")))
    arguments = ("replay", "--events", str(tmp_path / "events.jsonl"), "--type", "specs:spec.md", "--json")
    code, out, err = gt(*arguments)
    assert (code, json.loads(out)["calls"]) == (0, 0)
    assert "no key in GT_WITNESS_API_KEY" in err
    assert json.loads(gt(*arguments, "--estimate")[1])["calls"] == 1


@pytest.mark.parametrize("arguments", [(), ("--events", "{file}", "--pane", "{file}"), ("--transcript", "{file}")])
def test_replay_wants_one_recording(gt: Call, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "file").write_text("")
    given = [argument.format(file=tmp_path / "file") for argument in arguments]
    code, out, err = gt("replay", "--type", "scope", *given)
    assert (code, out, len(err.splitlines())) == (2, "", 1)


# -- the ledger -------------------------------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path: Path) -> Journal:
    town = Town.init(tmp_path)
    town.make_runtime()
    journal = Journal(town.journal_path)
    group = GroupId("main", "toast", "run-1")
    journal.groups.add(Group(group, "gt-toast", GroupState.RUNNING, "boot", 0.0, 0.0, str(tmp_path)))
    usage = Usage("claude-haiku-5-5", 100, 1000, 0, 50, 0.002, 0.7, 1)
    said = Decision("d1", "run-1", "specs", 1_800_000_000.0, 1.0, "injected", "rule", "[sidecar:specs] It is.", "quote",
                    "high", "e1", "n", "seen", usage, rule="r")  # fmt: skip
    more = replace(said, gate="gap", age=40.5, source="A.md:1", heeded="no", about="main", seen="effect")
    journal.decisions.add(more)
    journal.decisions.add(replace(said, id="d2", sidecar="scope", outcome="silent", message="", usage=None, stage=""))
    journal.decisions.add(replace(said, id="d3", outcome="refused", reason="cooldown: 3 s left", time=1_800_090_000.0))
    journal.note(1_800_000_000.0, "sidecar-lacks", run="run-1", member="tools", reason="no key in X: it stays silent")
    journal.note(1_800_000_001.0, "ended", run="run-1", reason="nuke")
    return journal


def test_the_log(gt: Call, ledger: Journal) -> None:
    rows: list[dict[str, Any]] = json.loads(gt("log", "toast", "--json")[1])
    assert [(row["sidecar"], row["outcome"]) for row in rows] == [
        ("specs", "injected"),
        ("scope", "silent"),
        ("specs", "refused"),
    ]
    assert {"time", "sidecar", "outcome", "reason", "message", "evidence", "usage"} <= set(rows[0])
    assert rows[0]["usage"]["cached_tokens"] == 1000
    told = {
        "rule": "r",
        "gate": "gap",
        "age": 40.5,
        "source": "A.md:1",
        "heeded": "no",
        "about": "main",
        "seen": "effect",
    }
    assert {key: rows[0][key] for key in told} == told
    assert [rows[1][key] for key in told] == ["r", None, None, None, None, None, None]
    code, out, err = gt("log", "toast")
    assert code == 0
    assert "[sidecar:specs] It is." in out
    assert "cooldown: 3 s left" in out
    assert err.splitlines()[0].endswith("tools: no key in X: it stays silent")
    assert "nuke" not in err, "what befell the polecat is told by gt logs"


def test_the_log_of_one_sidecar_and_outcome(gt: Call, ledger: Journal) -> None:
    assert len(json.loads(gt("log", "toast/specs", "--json")[1])) == 2
    assert len(json.loads(gt("log", "main/toast/scope", "--json")[1])) == 1
    assert [row["outcome"] for row in json.loads(gt("log", "toast", "--outcome", "refused", "--json")[1])] == [
        "refused"
    ]


def test_an_unknown_target(gt: Call, ledger: Journal) -> None:
    code, out, err = gt("log", "nobody")
    assert (code, out) == (2, "")
    assert "no polecat named 'nobody'" in err


@pytest.mark.parametrize(
    ("by", "keys"),
    [("sidecar", ["scope", "specs"]), ("run", ["run-1"]), ("day", None), ("rule", ["scope/r", "specs/r"])],
)
def test_costs(gt: Call, ledger: Journal, by: str, keys: list[str] | None) -> None:
    rows = json.loads(gt("costs", "--by", by, "--json")[1])
    if keys is not None:
        assert [row[by] for row in rows] == keys
    else:
        assert len(rows) == 2
    assert sum(row["dollars"] for row in rows) == pytest.approx(0.004)
    assert sum(row["injected"] for row in rows) == 1
    assert [sum(row[key] for row in rows) for key in ("heeded", "unheeded", "undecided")] == [0, 1, 0]
    assert "0.00400" in gt("costs", "--by", by)[1]


def test_costs_of_a_target_and_a_span(gt: Call, ledger: Journal) -> None:
    assert [row["sidecar"] for row in json.loads(gt("costs", "toast/scope", "--json")[1])] == ["scope"]
    assert gt("costs", "--since", "soon")[0] == 2


def test_mcp_tools_want_consent(gt: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "declares no server" in gt("tools")[2]
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"s": {"command": "false"}}}))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    code, out, err = gt("tools")
    assert (code, out) == (2, "")
    assert "say --yes" in err
    assert not (tmp_path / ".gt").exists()


SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("shop")

@server.tool()
def find_order(number: int) -> str:
    "Finds an order by its number."
    return str(number)

server.run("stdio")
"""


def test_the_tools_of_a_real_server_and_of_one_that_fails(gt: Call, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    servers = {"shop": {"command": sys.executable, "args": ["server.py"]}, "broken": {"command": "/nonexistent"}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    code, out, err = gt("tools", "--yes")
    assert (code, out) == (0, "shop: 1 tools\n")
    assert "broken: " in err
    assert describe_servers(tmp_path) == "server broken\nmcp__shop__find_order: Finds an order by its number."


def test_compile_prints_what_write_writes_and_lint_and_eval_take_it(gt: Call, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Never force-push.\n\nEvery endpoint must answer in JSON.\n")
    code, printed, err = gt("compile", "AGENTS.md")
    assert (code, "1 rules from 1 places, 1 left over" in err) == (0, True)
    assert not (tmp_path / ".gt").exists()
    assert gt("compile", "AGENTS.md", "--write")[0] == 0
    folder = tmp_path / ".gt" / "sidecars" / "agents"
    assert all((folder / name).read_text().strip() in printed for name in ("sidecar.yaml", "cases.yaml"))
    assert gt("lint", "agents")[0] == 0
    assert gt("eval", "agents")[0] == 0
    assert gt("compile", "AGENTS.md", "--write")[0] == 2
    row = json.loads(gt("compile", "AGENTS.md", "--json")[1])
    assert [(each["name"], each["line"], each["by"]) for each in row["rules"]] == [("force-push", 1, "rules")]
    assert [(each["line"], each["reason"]) for each in row["left"]] == [(3, "no rule of ours expresses it")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("NONE.md",), "no such file"), (("AGENTS.md", "--name", "a/b"), "no name"), (("AGENTS.md", "--model"), "key")],
)
def test_compile_says_what_is_wrong_in_one_line(
    gt: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.delenv("GT_WITNESS_API_KEY", raising=False)
    (tmp_path / "AGENTS.md").write_text("Never force-push.\n")
    code, out, err = gt("compile", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.strip().splitlines()) == 1
