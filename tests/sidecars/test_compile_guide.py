"""A guide's prose becomes rules that cite it, and every one of them is proven before anybody reads it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from sidecars.llm.client import Endpoint, ModelClient
from sidecars.observer.conventions.reader import read_guide
from sidecars.tuning.compile_guide import Compiled, Offer, check_name, compile_guide, proven, write_type
from sidecars.tuning.evaluate import CASES_FILE, evaluate, load_cases
from sidecars.tuning.lint import lint
from sidecars.tuning.sample_actions import speaks_at
from witness.errors import DeclarationError, UsageError
from witness.testing import MessagesServer, call, message

GUIDE = """\
# How we work

- Never force-push to shared branches.
- No bare `except:` anywhere.
- Files in `gen/` are generated; never edit them
  by hand.
- No print in the code. Print is fine in `scripts/`.
- Prefer composition over inheritance.
- Use snake_case for functions in Python.
- Every endpoint must return JSON errors.
- Say "{path}": it's bad; never `{do: [it`.
"""
STATEMENTS = yaml.safe_load((Path(__file__).parent / "conventions" / "statements.yaml").read_text())["statements"]

Compile = Callable[..., Compiled]


@pytest.fixture
def compiled(tmp_path: Path) -> Compile:
    def make(text: str, model: ModelClient | None = None, name: str = "AGENTS.md") -> Compiled:
        (tmp_path / name).write_text(text)
        return compile_guide(tmp_path / name, tmp_path, model)

    return make


def test_each_rule_cites_its_line_and_the_rest_is_told_with_the_reason(compiled: Compile) -> None:
    found = compiled(GUIDE)
    assert {(each.rule.name, each.rule.cites) for each in found.offers} >= {
        ("force-push", "AGENTS.md:3"),
        ("bare-except", "AGENTS.md:4"),
        ("gen", "AGENTS.md:5"),
    }
    lines = {each.line: each.reason for each in found.left}
    assert "RE2 cannot express it" in lines[9]
    assert lines[10] == "no rule of ours expresses it"
    assert 8 not in {*lines, *(each.line for each in found.offers)}, "what is only preferred is no rule"


def test_a_guide_of_thousands_of_rules_ends_and_tells_what_was_not_tried(compiled: Compile) -> None:
    found = compiled("".join(f"- Never run `tool{number} push`.\n" for number in range(2_000)))
    untried = [each for each in found.left if "compile the guide in parts" in each.reason]
    assert len(untried) > 1_800
    told = [each.line for each in found.offers] + [each.line for each in found.left]
    assert set(told) == set(range(1, 2_001))


def test_what_is_said_again_is_tried_once(compiled: Compile) -> None:
    found = compiled("- Never force-push to shared branches.\n" * 2_000)
    assert {each.line for each in found.offers} == {1}
    assert {each.reason for each in found.left} == {"line 1 says the same"}


def test_what_is_written_is_taken_by_lint_and_eval_and_holds_the_permission(compiled: Compile, tmp_path: Path) -> None:
    found = compiled(GUIDE)
    write_type(found, tmp_path / ".gt" / "sidecars" / "agents")
    checked = lint("agents", workdir=tmp_path)
    assert [str(each) for each in checked.warnings] == []
    assert [rule.cites for rule in checked.type.rules] == [each.rule.cites for each in found.offers]
    score = evaluate(load_cases(tmp_path / ".gt" / "sidecars" / "agents" / CASES_FILE), checked.type)
    assert len(score.results) == 2 * len(found.offers)
    assert (score.precision, score.recall) == (1.0, 1.0)
    (rule,) = [rule for rule in checked.type.rules if rule.name == "print"]
    action = {"tool": "Write", "content": "print(1)"}
    assert [speaks_at(rule, {**action, "file_path": path}) for path in ("a.py", "scripts/a.py")] == [True, False]


def test_all_that_the_reader_can_read_is_proven_but_for_what_re2_has_not() -> None:
    """Each sentence of the reader's own tests."""
    rules = [rule for each in STATEMENTS if "says" in each for rule in read_guide(each["says"], "AGENTS.md")]
    found = [proven(rule, 1, "") for rule in rules]
    offers = [each for each in found if isinstance(each, Offer)]
    assert len(offers) > 0.85 * len(rules) > 100
    assert [each for each in found if isinstance(each, str) and "RE2 cannot express" not in each] == []
    for offer in offers:
        assert speaks_at(offer.rule, offer.breach)
        assert not speaks_at(offer.rule, offer.near)


def test_a_guide_that_has_changed_is_told_by_lint(compiled: Compile, tmp_path: Path) -> None:
    write_type(compiled(GUIDE), tmp_path / ".gt" / "sidecars" / "agents")
    (tmp_path / "AGENTS.md").write_text(GUIDE.replace("Never force-push", "You may force-push"))
    warnings = [str(each) for each in lint("agents", workdir=tmp_path).warnings]
    assert len(warnings) == 1
    assert "AGENTS.md:3 does not say so any more" in warnings[0]


def test_nothing_is_overwritten_and_nothing_half_written(compiled: Compile, tmp_path: Path) -> None:
    found = compiled(GUIDE)
    folder = tmp_path / ".gt" / "sidecars" / "agents"
    folder.mkdir(parents=True)
    (folder / "sidecar.yaml").write_text("mine")
    with pytest.raises(UsageError, match="stands there already"):
        write_type(found, folder)
    assert [path.name for path in folder.parent.iterdir()] == ["agents"]
    with pytest.raises(UsageError, match="no name of a type"):
        check_name("../x")
    with pytest.raises(DeclarationError, match="no such file"):
        compile_guide(tmp_path / "NONE.md", tmp_path)


# -- with a model ---------------------------------------------------------------------------------------------------


def proposal(quote: str, **changed: Any) -> dict[str, Any]:
    rule = {
        "name": "json-errors",
        "writes": ["api/**"],
        "text": "PlainTextResponse",
        "say": "{path} answers plain text",
    }
    return {
        "source_quote": quote,
        "rule": rule,
        "breach": {"tool": "Write", "file_path": "api/x.py", "content": "return PlainTextResponse('no')"},
        "near": {"tool": "Write", "file_path": "api/x.py", "content": "return JSONResponse({})"},
    } | changed


def asked(compiled: Compile, *proposals: dict[str, Any]) -> tuple[Compiled, str]:
    """What comes of a model's proposals, and all that it was asked."""
    with MessagesServer() as server:
        server.play(message(call("propose_rules", {"rules": list(proposals)})))
        client = ModelClient(Endpoint("k", "claude-haiku-5-5", server.url))
        try:
            return compiled(GUIDE, client), json.dumps(server.requests[0].body["messages"])
        finally:
            client.close()


QUOTE = "Every endpoint must return JSON errors."


def test_a_models_rule_is_offered_with_its_source_when_it_is_proven(compiled: Compile) -> None:
    found, question = asked(compiled, proposal(QUOTE))
    (offer,) = [each for each in found.offers if each.by != "rules"]
    assert (offer.line, offer.rule.cites, offer.by) == (10, "AGENTS.md:10", "claude-haiku-5-5")
    assert offer.rule.say == "{path} answers plain text; AGENTS.md:10 says: “Every endpoint must return JSON errors.”"
    assert QUOTE in question
    assert "force-push" not in question, "what is proven already is not asked about"


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (proposal("Every endpoint must return XML."), "the model's quote is not in AGENTS.md"),
        (proposal(QUOTE, rule={"name": "x", "say": "y"}), "has no condition"),
        (proposal(QUOTE, rule={"name": "x", "say": "y", "text": "(?=a)"}), "not a regular expression"),
        (proposal(QUOTE, rule={"name": "x", "say": "y", "kills": "a"}), "unknown key"),
        (
            proposal(QUOTE, breach={"tool": "Write", "file_path": "api/x.py", "content": "x"}),
            "silent at its own breach",
        ),
        (proposal(QUOTE, near=proposal(QUOTE)["breach"]), "speaks at its own near miss"),
        (proposal(QUOTE, breach="x"), "its cases are no actions"),
        (proposal(QUOTE, rule=[]), "no mapping"),
    ],
)
def test_a_models_rule_that_is_not_proven_is_left_over(compiled: Compile, entry: dict[str, Any], reason: str) -> None:
    found, _ = asked(compiled, entry)
    assert {each.by for each in found.offers} == {"rules"}
    assert [each for each in found.left if reason in each.reason]
