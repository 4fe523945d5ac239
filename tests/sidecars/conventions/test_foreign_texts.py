"""Whatever stands in a guide, a configuration, a command or a payload: no reader raises, and each is done in time."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from time import process_time

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sidecars.observer.context import Context, gather
from sidecars.observer.conventions.linters import CONFIGURATIONS, read_configuration
from sidecars.observer.conventions.literals import objects_in
from sidecars.observer.conventions.reader import guide_body, read_guide
from sidecars.observer.judge.rules import RulesJudge
from sidecars.observer.observe.events import EventReader
from sidecars.syntax.python_effects import effects_of
from sidecars.syntax.shell import read_shell
from sidecars.tuning.evaluate import Case, assignment_of
from sidecars.type_reader.sidecar_type import Rule
from sidecars.type_reader.type_loader import load_type

STATEMENTS = yaml.safe_load(Path(__file__).with_name("statements.yaml").read_text("utf-8"))["statements"]
GUIDES = [each["says"] for each in STATEMENTS if "file" not in each]
CONFIGS = [(each["file"], each["says"]) for each in STATEMENTS if "file" in each]
NAMES = [glob.replace("*", "x") for glob in CONFIGURATIONS]
WORDS = st.sampled_from(
    [
        "\n",
        "",
        "",
        "",
        "never",
        "no",
        "don't",
        "avoid",
        "use",
        "`print`",
        "`git",
        "push",
        "--force`",
        "`{length}`",
        "{length}",
        "{0}",
        "functions",
        "longer",
        "than",
        "40",
        "999999999",
        "lines\n",
        "",
        "",
        "",
        "in",
        "`src/`",
        "outside",
        "tests",
        "except",
        "(for)",
        "must",
        "not",
        "`a.b()`",
        "`interface{}`",
        "`--no-verify`",
        "bare",
        "TODO",
        "without",
        "a",
        "ticket",
        "`",
        "``",
        "~~\n",
        "",
        "",
        "",
        "|",
        "-",
        "*",
        "#",
        "❌",
        "✅",
        ";",
        ":",
        ".",
        ",",
        "[x](y)",
        "**not**",
        "only",
        "by",
        "hand",
        "`*.py`",
        "`x/**`",
        "`SELECT",
        "*`",
        "`(((`",
        "`[`",
        "`\\`",
        "`@a/*`",
        "import",
        "from",
        "\n",
        "\n\n",
        "漢\n",
        "",
        "",
        "",
        "",
    ]
)
EXPRESSIONS = ("text", "code", "comments", "unless", "named", "command", "output")
SEEN = [
    {"tool_name": "Write", "tool_input": {"file_path": path, "content": "print(1)\nvar x = 1;\n# TODO\n"}}
    for path in ("src/a.py", "src/a.ts", "x/y.go", "q.sql")
] + [{"tool_name": "Bash", "tool_input": {"command": "git push --force && npm i && git add ."}}]
# So much processor time is far more than any of them takes, and far less than what runs away.
MOST_SECONDS = 2.0
TYPES = ("scope", "specs", "tools", "conventions", "blocks")


def sound(rules: tuple[Rule, ...]) -> None:
    """The rules can be used: their expressions are some, nothing was left open in them, and they judge."""
    for rule in rules:
        for name in EXPRESSIONS:
            if getattr(rule, name):
                rule.expression(name)
                assert "{more}" not in getattr(rule, name)
                assert "{length}" not in getattr(rule, name)
        assert {each.name for each in fields(rule) if isinstance(getattr(rule, each.name), list)} == set()
    judge = RulesJudge(rules, Context())
    for payload in SEEN:
        seen = EventReader("/w").read({"hook_event_name": "PostToolUse", **payload})
        assert seen is not None
        judge.judge([seen])


@st.composite
def mutated(draw: st.DrawFn, texts: list[str]) -> str:
    """A text with a piece taken out, doubled, or replaced by one of another."""
    text, other = draw(st.sampled_from(texts)), draw(st.sampled_from(texts))
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, len(text)))
    middle = draw(st.sampled_from(["", text[start:end] * 2, other[start:end], other, "{length}", "`", "\n", "not "]))
    return text[:start] + middle + text[end:]


@settings(max_examples=60, deadline=None)
@example("never `git ` ` ` `x y`")
@given(st.lists(WORDS, max_size=30).map(" ".join) | mutated(GUIDES) | st.text(max_size=200))
def test_any_guide(text: str) -> None:
    body, globs = guide_body(text)
    assert all(isinstance(each, str) for each in globs)
    sound(read_guide(body, "CLAUDE.md"))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["error", "off", "always", "x{y}", "^(a|b)*$"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "rules",
                    "overrides",
                    "files",
                    "linter",
                    "formatter",
                    "linters",
                    "settings",
                    "enable",
                    "forbid",
                    "forbidigo",
                    "depguard",
                    "deny",
                    "lint",
                    "select",
                    "lll",
                    "no-console",
                    "no-restricted-imports",
                    "quotes",
                    "semi",
                    "max-len",
                    "type-enum",
                    "repos",
                    "hooks",
                    "id",
                    "args",
                    "per-file-ignores",
                    "ruff",
                    "tool",
                    "flake8",
                    "eslintConfig",
                    "prettier",
                    "packageManager",
                    "scripts",
                    "AllCops",
                    "Layout/LineLength",
                    "Max",
                    "lints",
                    "clippy",
                    "banned-api",
                    "pkg",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(NAMES), mutated([text for _, text in CONFIGS]) | st.text(max_size=200) | JSON.map(json.dumps))
def test_any_configuration(name: str, text: str) -> None:
    sound(read_configuration(text, name))


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.sampled_from(["lint", "select", "ignore", "lints", "hard_tabs", "tool"]), JSON, max_size=4))
def test_any_table_of_settings(raw: dict[str, object]) -> None:
    text = "\n".join(f"{key} = {json.dumps(value)}" for key, value in raw.items() if value is not None)
    for name in ("ruff.toml", "clippy.toml", "rustfmt.toml", "Cargo.toml", "pyproject.toml"):
        sound(read_configuration(text.replace(": ", " = ").replace("null", "0"), name))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "cat",
                "a.py",
                "|",
                "&&",
                ";",
                "(",
                ")",
                "{",
                "}",
                "$(",
                ")",
                "`",
                "'",
                '"',
                "<<",
                "E",
                "\n",
                ">",
                ">>",
                "$x",
                "*.py",
                "-c",
                "python3",
                "open('x')",
                "if",
                "then",
                "fi",
                "\\",
                "&",
            ]
        ),
        max_size=20,
    ).map(" ".join)
)
def test_any_command(line: str) -> None:
    read_shell(line)
    effects_of(line)


@pytest.mark.parametrize("name", TYPES)
def test_any_payload_for_each_type(name: str, tmp_path: Path) -> None:
    files = {
        "CLAUDE.md": "Never use `eval`.\n",
        "s.md": "---\nrules: []\nfiles: [a/**]\nnot: [b/**]\n---\n",
        "l.py": "def slug(): ...",
    }
    case = Case("x", name, (), False, task=files["s.md"], prompt="<prompt><role>x</role></prompt>", files=files)
    kind = load_type(name)
    material = gather.gather(kind, assignment_of(case, tmp_path))
    judge = RulesJudge((*kind.rules, *material.rules), material)
    given_ = st.dictionaries(
        st.sampled_from(["file_path", "command", "content", "edits", "new_string", "old_string", "path", "input"]),
        JSON
        | st.sampled_from(["a.py", "b/x", "../..", "~", "\0", "rm -rf b", "*** Begin Patch\n*** Add File: b/x\n+x"]),
        max_size=4,
    )
    tools = st.sampled_from(
        ["Edit", "Write", "Bash", "Read", "apply_patch", "shell", "mcp__x__y", "NotebookEdit", "", "edit"]
    )

    @settings(max_examples=25, deadline=None)
    @given(tools, given_, JSON)
    def judged(tool: str, raw: dict[str, object], response: object) -> None:
        payload = {"hook_event_name": "PostToolUse", "tool_name": tool, "tool_input": raw, "tool_response": response}
        seen = EventReader(str(tmp_path)).read(payload)
        if seen is not None:
            judge.judge([seen])

    judged()


@pytest.mark.parametrize(
    "piece",
    [
        "no ",
        "never use `a` ",
        "`",
        "``",
        "**",
        "_a_ ",
        "~~",
        "| a ",
        "- ",
        "in `a` and ",
        "except in the ",
        "[a](",
        "<!-- ",
        "functions ",
        "without ",
        "a. B ",
        "not only `x` but ",
        "import from `a`, ",
        "@a.md ",
        "only in ",
        "```\n",
        "any, ",
    ],
)
def test_a_long_guide_is_read_in_time(piece: str) -> None:
    began = process_time()
    for text in (piece * (20_000 // len(piece)), (piece * 12 + "\n\n") * 200):
        sound(read_guide(text, "CLAUDE.md"))
    assert process_time() - began < MOST_SECONDS * 3


@pytest.mark.parametrize(
    "piece", ["{", "[{", "{a:", '{"a": [', "'", '"', "/*", "{a:1} ", "x(", "{rules: {", "${", "`${"]
)
def test_a_long_configuration_is_read_in_time(piece: str) -> None:
    began = process_time()
    list(objects_in(piece * (60_000 // len(piece))))
    assert process_time() - began < MOST_SECONDS


def test_a_foreign_head_of_a_guide_that_was_found_is_no_fault(tmp_path: Path) -> None:
    """Clients take there what is no YAML; and what it says of files holds."""
    rules = "---\ndescription: x\nglobs: *.py, {a,b}/**\n---\nNever call `input()`.\n"
    case = Case(
        "x",
        "conventions",
        (),
        False,
        files={".cursor/rules/py.mdc": rules, "CLAUDE.md": "See @docs/more.md\n", "docs/more.md": "No `eval`.\n"},
    )
    found = gather.gather(load_type("conventions"), assignment_of(case, tmp_path)).rules
    assert {rule.name: rule.within for rule in found} == {"input": ("*.py", "a/**", "b/**"), "eval": ()}
    assert {rule.source for rule in found} == {".cursor/rules/py.mdc:5", "docs/more.md:1"}
