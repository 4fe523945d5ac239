"""The commands: what they print where, and what they end with."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.distill.artifacts import QUESTION, write_eval_log
from witness.cli.main import main
from witness.testing import MessagesServer, Step, fail, say

Result = tuple[int, str, str]


@pytest.fixture
def log(tmp_path: Path) -> str:
    write_eval_log(tmp_path / "eval.log")
    return str(tmp_path / "eval.log")


def gt(capsys: pytest.CaptureFixture[str], *arguments: str) -> Result:
    """Run the command line here: (exit code, stdout, stderr)."""
    code = 0
    try:
        main(list(arguments))
    except SystemExit as end:
        code = int(end.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def test_json_alone_on_stdout(capsys: pytest.CaptureFixture[str], log: str) -> None:
    code, out, err = gt(capsys, "distill", "--artifact", log, "--question", QUESTION, "--json")
    answer = json.loads(out)
    assert (code, err) == (0, "")
    assert set(answer) == {"answer", "evidence", "gaps", "followups", "usage"}
    assert set(answer["evidence"][0]) == {"path", "locator", "quote", "reason", "verified"}
    assert answer["usage"]["backend"] == "index"
    assert len(out.encode()) <= os.stat(log).st_size / 125


def test_people_get_lines_that_an_editor_can_follow(capsys: pytest.CaptureFixture[str], log: str) -> None:
    code, out, _ = gt(capsys, "distill", "--artifact", log, "--question", QUESTION)
    assert code == 0
    assert f"{log}:L" in out
    assert "UNVERIFIED" not in out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--question", "x"], 2),
        (["--artifact", "LOG"], 2),
        (["--artifact", "LOG", "--question", "   "], 2),
        (["--artifact", "LOG", "--question", "x", "--backend", "oracle"], 2),
        (["--artifact", "LOG", "--question", "x", "--max-steps", "0"], 2),
        (["--artifact", "LOG", "--question", "x", "--timeout", "soon"], 2),
        (["--artifact", "LOG", "--question", "x", "--max-output-chars", "many"], 2),
        (["--artifact", "LOG", "--question", "unicorn?"], 3),
        (["--artifact", "LOG", "--question", "x", "--backend", "model"], 5),
        (["--artifact", "LOG.gone", "--question", "x"], 4),
        (["--artifact", "/dev/null", "--question", "x"], 4),
        (["--artifact", "LOG", "--question", "which case failed?"], 0),
    ],
)
def test_each_end_has_its_code(capsys: pytest.CaptureFixture[str], log: str, arguments: list[str], code: int) -> None:
    ended, _, err = gt(capsys, "distill", *(each.replace("LOG", log) for each in arguments))
    assert ended == code
    assert len(err.splitlines()) == (0 if code in (0, 3) else 1)


def test_without_time_it_says_so(capsys: pytest.CaptureFixture[str], log: str) -> None:
    with open(log, "ab") as out:
        out.write(b"filler without end\n" * 3_000_000)
    code, out_text, _ = gt(capsys, "distill", "--artifact", log, "--question", QUESTION, "--timeout", "20ms", "--json")
    assert code == 7
    assert any("the time was up" in gap for gap in json.loads(out_text)["gaps"])


@pytest.mark.parametrize(
    ("steps", "options", "code"),
    [
        ([say('{"answer": "yes", "evidence": [{"locator": "L1", "quote": "17 passed, 1 failed"}]}')], [], 0),
        ([say('{"answer": "yes", "evidence": [{"locator": "L1", "quote": "18 passed, 0 failed"}]}')], [], 3),
        ([fail(401)], [], 5),
        ([], ["--budget-usd", "0"], 6),
        ([say("hm"), say("hm")], [], 8),
    ],
)
def test_each_end_of_the_model_backend_has_its_code(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    log: str,
    steps: list[Step],
    options: list[str],
    code: int,
) -> None:
    with MessagesServer() as server:
        server.play(*steps)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("GT_WITNESS_API_KEY", "sk-test")
        ended, out, err = gt(capsys, "distill", "--artifact", log, "--question", QUESTION, "--json", *options)
    assert ended == code
    assert bool(json.loads(out)["evidence"])
    assert err == ""


def test_the_agents_own_key_is_not_spent_unasked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, log: str
) -> None:
    with MessagesServer() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
        assert gt(capsys, "distill", "--artifact", log, "--question", QUESTION)[0] == 0
        assert server.requests == []
        server.play(say('{"answer": "yes", "evidence": []}'))
        assert gt(capsys, "distill", "--artifact", log, "--question", QUESTION, "--backend", "model")[0] == 3
        assert len(server.requests) == 1


def test_a_file_name_that_is_no_text_can_be_printed(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/odd-\xff.log"
    Path(os.fsdecode(path)).write_text("the gasket ruptured\n")
    done = subprocess.run(
        [sys.executable, "-m", "witness.cli", "distill", "--artifact", path, "--question", "gasket?", "--json"],
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "gasket" in json.loads(done.stdout)["evidence"][0]["quote"]


def test_the_library_is_not_loaded_for_help(capsys: pytest.CaptureFixture[str]) -> None:
    script = (
        "import sys; from witness.cli.main import main\n"
        "try: main(['distill', '--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'anthropic', 'mcp', 're2', 'pathspec', 'sidecars'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_progress_is_for_people_at_a_terminal(log: str) -> None:
    def said(*options: str) -> str:
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "witness.cli", "distill", "--artifact", log, "--question", QUESTION, *options]
        program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, stdin=subprocess.DEVNULL)
        os.close(theirs)
        program.wait(30)
        told = b""
        with suppress(OSError):  # Linux ends a terminal that nobody holds any more with an error
            while piece := os.read(ours, 4096):
                told += piece
        os.close(ours)
        return told.decode()

    assert "gt: searching 1 files" in said()
    assert said("--json") == ""


def test_what_is_piped_in_is_an_artifact(log: str) -> None:
    for name in ("-", "/dev/stdin"):
        command = [sys.executable, "-m", "witness.cli", "distill", "--artifact", name, "--question", QUESTION, "--json"]
        with open(log, "rb") as piped:
            done = subprocess.run(command, stdin=piped, capture_output=True, text=True, check=True)
        answer = json.loads(done.stdout)
        assert {each["path"] for each in answer["evidence"]} == {name}
        assert all(each["verified"] for each in answer["evidence"])


def test_a_url_is_refused_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = gt(capsys, "distill", "--artifact", "https://ci.example/a.log", "--question", "what failed?")
    assert code == 4
    assert out == ""
    assert "fetch it into a file first" in err
