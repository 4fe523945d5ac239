"""Lines that belong together are quoted together: branches, records, paragraphs, both ends of a trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sidecars.distill import Answer, distill
from tests.distill.artifacts import big_lines


def quotes(answer: Answer) -> str:
    return "\n".join(each.quote for each in answer.evidence if each.verified)


def test_a_message_in_source_comes_with_its_condition(tmp_path: Path) -> None:
    filler = "".join(f"def helper_{n}(value):\n    return value + {n}\n\n\n" for n in range(300))
    code = (
        "def status(code):\n"
        '    """Set the status."""\n'
        "    if code < 100 or code > 999:\n"
        '        raise RangeError(f"Invalid status code: {code}")\n'
        "    return code\n\n\n"
    )
    (tmp_path / "a.py").write_text(filler + code + filler)
    found = quotes(distill([tmp_path / "a.py"], "When does status raise a RangeError?"))
    assert "if code < 100 or code > 999:" in found
    assert "raise RangeError" in found


def test_identifiers_are_split(tmp_path: Path) -> None:
    filler = "".join(f"const value{n} = {n};\n" for n in range(400))
    (tmp_path / "a.js").write_text(f"{filler}if (meta.hasInstallScript) {{\n  warn('scripts');\n}}\n{filler}")
    assert "hasInstallScript" in quotes(distill([tmp_path / "a.js"], "what happens with an install script?"))


def test_a_key_in_yaml_brings_its_values(tmp_path: Path) -> None:
    parts = [
        f"- name: app-{n}\n  spec:\n    replicas: {n}\n    image: registry/app:{n}\n    level: info\n"
        for n in range(200)
    ]
    (tmp_path / "a.yaml").write_text("".join(parts))
    found = quotes(distill([tmp_path / "a.yaml"], "How many replicas does app-117 have, and which image?"))
    assert "replicas: 117" in found
    assert "registry/app:117" in found


def test_of_a_long_trace_the_beginning_the_cause_and_the_end_are_quoted(tmp_path: Path) -> None:
    body = next(big_lines()).splitlines()[:2000]
    frames = [f"\tat net.shop.Step{n}.apply(Step{n}.java:{n})" for n in range(60)]
    body[900:900] = [
        "2026-05-14T10:23:39.464Z ERROR [label] printing broke for order A77",
        "java.lang.IllegalStateException: no carrier accepts it",
        *frames,
        "Caused by: net.shop.RateError: the rate table has no row",
        *frames[:20],
    ]
    (tmp_path / "a.log").write_text("\n".join(body))
    found = quotes(distill([tmp_path / "a.log"], "why did printing break for order A77?"))
    assert "no carrier accepts it" in found
    assert "the rate table has no row" in found


def test_the_end_of_a_python_trace_is_quoted(tmp_path: Path) -> None:
    body = next(big_lines()).splitlines()[:2000]
    frames = [line for n in range(40) for line in (f'  File "/srv/s{n}.py", line {n}, in run', "    step()")]
    body[900:900] = [
        "2026-05-14T10:23:39.464Z ERROR [mailer] unhandled exception in worker 7",
        "Traceback (most recent call last):",
        *frames,
        "KeyError: 'locale'",
    ]
    (tmp_path / "a.log").write_text("\n".join(body))
    assert "KeyError: 'locale'" in quotes(distill([tmp_path / "a.log"], "which exception ended worker 7?"))


@pytest.mark.parametrize(("word", "number"), [("best", "0.97"), ("lowest", "0.11")])
def test_of_many_alike_lines_the_extreme_that_was_asked_for_is_quoted(tmp_path: Path, word: str, number: str) -> None:
    runs = [f'  "run {n}: depth {n % 9}, auc 0.{50 + n % 40}\\n",' for n in range(200)]
    runs[120], runs[77] = '  "run 120: depth 3, auc 0.97\\n",', '  "run 77: depth 3, auc 0.11\\n",'
    (tmp_path / "a.txt").write_text("sweep\n\n" + "\n".join(runs))
    assert number in quotes(distill([tmp_path / "a.txt"], f"which run had the {word} auc?"))


def test_a_record_on_an_overlong_line_is_quoted_whole(tmp_path: Path) -> None:
    accounts = [
        {"id": n, "name": f"Cedar {n}", "plan": "team", "seatLimit": n, "billing": {"currency": "EUR", "exempt": False}}
        for n in range(3000)
    ]
    accounts[1234]["name"] = "Quillon Freight"
    (tmp_path / "a.json").write_text(json.dumps({"accounts": accounts}))
    answer = distill([tmp_path / "a.json"], "What is the seat limit of Quillon Freight?")
    assert json.loads(answer.evidence[0].quote) == accounts[1234]
    assert answer.evidence[0].locator == "/accounts/1234"


def test_a_paragraph_is_quoted_with_its_neighbouring_lines(tmp_path: Path) -> None:
    filler = "\n\n".join(f"Paragraph {n} is about the weather\nand says nothing else." for n in range(200))
    text = (
        "Releases of the tool are signed.\nThe key expires after two years, and a\nnew one is announced on the list.\n"
    )
    (tmp_path / "a.md").write_text(f"{filler}\n\n{text}\n{filler}")
    assert "announced on the list" in quotes(distill([tmp_path / "a.md"], "when does the key for releases expire?"))
