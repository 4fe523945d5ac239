from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecars.syntax import grammars
from sidecars.syntax.languages import (
    code_only,
    comments_only,
    definitions,
    is_document,
    is_generated,
    is_test,
    language_of,
)

PYTHON = '''"""def no(): pass"""
import os

LIMIT: int = 3


@decorated
async def fetch(url):
    # def nor_this():
    return f"{url} def {LIMIT}"


class Box:
    size = 1

    def put(self, x):
        def helper(): ...

        return helper

    @staticmethod
    def make():
        return Box()


def last(): return 1
'''
SCRIPT = """export function formatMoney(cents: number): string {
  return `${cents} function no() {}`
}
// function norThis() {}
const clamp = (n: number) => {
  return n
}
export const MAX = 5
const label = "class X {}"
let counter = 0
class Bus {
  on(name: string) { return name }
  static make() { return new Bus() }
}
export { clamp }
"""


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (
            "a.py",
            PYTHON,
            [
                ("LIMIT", "constant", 4, 4),
                ("fetch", "function", 8, 10),
                ("Box", "class", 13, 23),
                ("put", "method", 16, 19),
                ("helper", "function", 17, 17),
                ("make", "function", 22, 23),
                ("last", "function", 26, 26),
            ],
        ),
        # pieces, as an edit has them
        ("a.py", "    def put(self):\n        pass\n\n    X = 1\n", [("put", "method", 1, 2)]),
        ("a.py", "        return 1\n\n    def put(self):\n        pass\n", [("put", "method", 3, 4)]),
        ("a.py", "\treturn 1\n\ndef put():\n\tpass\n", [("put", "function", 3, 4)]),
        ("a.py", "def whole():\n    pass\n\ndef broken():\n    x = (\n", [("whole", "function", 1, 2)]),
        ("a.js", "put(x) {\n  return x\n}\n", [("put", "method", 1, 3)]),
        (
            "A.java",
            "static int put(int x) {\n  return x;\n}\nint get() { return 1; }",
            [("put", "function", 1, 3), ("get", "method", 4, 4)],
        ),
        (
            "a.ts",
            SCRIPT,
            [
                ("formatMoney", "function", 1, 3),
                ("clamp", "function", 5, 7),
                ("MAX", "constant", 8, 8),
                ("label", "constant", 9, 9),
                ("Bus", "class", 11, 14),
                ("on", "method", 12, 12),
                ("make", "function", 13, 13),
            ],
        ),
        (
            "a.tsx",
            "export default function Page() {\n  return <p>function no() {}</p>\n}\n",
            [("Page", "function", 1, 3)],
        ),
        (
            "a.go",
            "package a\n\nconst (\n\tA = 1\n)\n\ntype Pool struct {\n\tn int\n}\n\n"
            "func (p *Pool) Get() int {\n\tconst local = 1\n\treturn 1\n}\nfunc Trim() {}\n",
            [("A", "constant", 4, 4), ("Pool", "class", 7, 9), ("Get", "method", 11, 14), ("Trim", "function", 15, 15)],
        ),
        (
            "a.rs",
            "pub const N: u8 = 1;\nimpl X {\n    pub fn new() -> X { X }\n}\n"
            "pub fn parse() {\n}\nmacro_rules! m { () => {} }\n",
            [("N", "constant", 1, 1), ("new", "method", 3, 3), ("parse", "function", 5, 6), ("m", "function", 7, 7)],
        ),
        (
            "a.rb",
            "module M\n  def self.cents(x)\n    x\n  end\n  class Limit\n    def allow?; true; end\n  end\nend\n",
            [("cents", "function", 2, 4), ("Limit", "class", 5, 7), ("allow?", "method", 6, 6)],
        ),
        ("run", "#!/usr/bin/env bash\nlog() {\n  echo 'f() { :; }'\n}\n", [("log", "function", 2, 4)]),
        (
            "a.c",
            "static char *get(int a)\n{\n  return 0;\n}\nint declared(int);\n"
            "struct s { int a; };\nstruct s v;\n#define MAX(a) a\n",
            [("get", "function", 1, 4), ("s", "class", 6, 6), ("MAX", "function", 8, 8)],
        ),
        ("README.md", "```python\ndef sample():\n    pass\n```\n", []),
    ],
)
def test_what_a_text_defines(path: str, text: str, expected: list[tuple[str, str, int, int]]) -> None:
    found = definitions(path, text)
    assert found is not None
    assert [(each.name, each.kind, each.first, each.last) for each in found] == expected


@pytest.mark.parametrize(
    ("path", "text", "public"),
    [
        ("a.py", "def seen(): ...\ndef _not(): ...\n", {"seen"}),
        (
            "a.ts",
            "export const seen = () => 1\nfunction hidden() {}\nfunction also() {}\nexport { also }\n",
            {"seen", "also"},
        ),
        ("a.js", "function seen() {}\nfunction hidden() {}\nmodule.exports = { seen }\n", {"seen"}),
        ("a.go", "package a\nfunc Seen() {}\nfunc hidden() {}\n", {"Seen"}),
        ("a.rs", "pub fn seen() {}\nfn hidden() {}\n", {"seen"}),
        (
            "A.java",
            "class A { public static int seen() { return 1; } private static int hidden() { return 1; } }",
            {"seen"},
        ),
        ("a.c", "int seen(void) { return 1; }\nstatic int hidden(void) { return 1; }\n", {"seen"}),
    ],
)
def test_what_others_may_use(path: str, text: str, public: set[str]) -> None:
    assert {each.name for each in definitions(path, text) or () if each.public} == public


@pytest.mark.parametrize(
    ("path", "text"),
    [("a.kt", "fun x() {}"), ("a.json", "{}"), ("a", "def x(): ..."), ("a.py", "x = ("), ("a.py", "'''")],
)
def test_what_is_not_known_is_not_guessed(path: str, text: str) -> None:
    assert definitions(path, text) is None
    assert code_only(path, text) is None


def test_a_grammar_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(grammars.MODULES, "go", ("no_such_module", "language"))
    grammars.parser_of.cache_clear()
    try:
        assert definitions("a.go", "package a\nfunc F() {}\n") is None
        assert code_only("a.go", "package a\n") is None
        assert definitions("a.py", "def f(): ...") is not None
    finally:
        monkeypatch.undo()
        grammars.parser_of.cache_clear()


@pytest.mark.parametrize(
    ("path", "text", "code", "comments"),
    [
        ("a.py", 'x = f"a {b}" + "é"  # why\n', "x = " + 8 * " " + " + " + 10 * " " + "\n", 20 * " " + "# why\n"),
        ("a.py", "    y = '''a\n  b'''\n", "    y =     \n      \n", "            \n      \n"),
        ("a.js", "a(`x ${b('q')} y`) // c\n", "a(   ${b(   )}   )     \n", "                   // c\n"),
        ("a.ts", " * text\n */\nf(1) /* z */\n", "       \n   \nf(1)        \n", " * text\n */\n     /* z */\n"),
        ("a.go", "x := `a` // c\n", "x :=         \n", "         // c\n"),
        ("a.rs", 'let a = "b"; /// c\n', "let a =    ;      \n", 13 * " " + "/// c\n"),
        ("a.sh", 'echo "a $(b c)" # d\n', "echo    $(b c)     \n", "                # d\n"),
        ("a.md", "text\nmore\n", "    \n    \n", "    \n    \n"),
    ],
)
def test_code_and_comments_are_told_apart(path: str, text: str, code: str, comments: str) -> None:
    assert code_only(path, text) == code
    assert comments_only(path, text) == comments


TEXTS = st.lists(
    st.sampled_from([*"(){}[]\n\t'\"`#/*\\$:=é漢", "def ", "class ", "function ", "func ", "  ", "x", "/*", "//", "f'"])
).map("".join)


@given(st.sampled_from(["a.py", "a.js", "a.tsx", "a.go", "a.rs", "a.java", "a.rb", "a.sh", "a.c"]), TEXTS | st.text())
def test_any_text(path: str, text: str) -> None:
    for each in definitions(path, text) or ():
        assert 1 <= each.first <= each.last <= text.count("\n") + 1
    blanked = code_only(path, text)
    if blanked is not None:
        assert len(blanked) == len(text)
        assert all(b in (a, " ") for a, b in zip(text, blanked, strict=True))


@pytest.mark.parametrize("path", ["a.py", "a.js", "a.go", "a.rs", "a.java", "a.rb", "a.sh", "a.c"])
@pytest.mark.parametrize("text", ["(" * 50_000, "{" * 50_000, "x = 1\n" * 20_000, "'" * 50_001])
def test_any_text_takes_little_time(path: str, text: str) -> None:
    start = time.process_time()
    definitions(path, text)
    code_only(path, text)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests/x.py", True),
        ("src/test_x.py", True),
        ("src/x_test.go", True),
        ("src/x.spec.ts", True),
        ("conftest.py", True),
        ("src/__tests__/x.js", True),
        ("src/test/java/XTest.java", True),
        ("spec/x_spec.rb", True),
        ("src/latest.py", False),
        ("src/contest.py", False),
        ("src/testing_tools.py", False),
        ("src/attest/x.py", False),
    ],
)
def test_tests_are_known_by_their_place_and_name(path: str, expected: bool) -> None:
    assert is_test(path) is expected


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("api/v1_pb2.py", "", True),
        ("a.pb.go", "", True),
        ("node_modules/x/i.js", "", True),
        ("app.min.js", "", True),
        ("poetry.lock", "", True),
        ("package-lock.json", "", True),
        ("a.go", "// Code generated by x. DO NOT EDIT.\n", True),
        ("a.ts", "/* @generated */\n", True),
        ("a.py", "# This file is automatically generated\n", True),
        ("a.py", "x = 1\n", False),
        ("generate.py", "", False),
        ("distance.py", "", False),
        ("clock.py", "", False),
    ],
)
def test_generated_files_are_known_by_place_name_or_head(path: str, text: str, expected: bool) -> None:
    assert is_generated(path, text) is expected


def test_documents_and_languages() -> None:
    assert [is_document(path) for path in ("a.md", "docs/a.rst", "README", "LICENSE", "a.py", "Makefile")] == [
        True,
        True,
        True,
        True,
        False,
        False,
    ]
    assert [language_of(path) for path in ("a.PY", "b.tsx", "Rakefile", "x", "a.txt")] == [
        "python",
        "tsx",
        "ruby",
        None,
        None,
    ]
    assert language_of("bin/x", "#!/bin/sh\n") == "bash"
    assert language_of("bin/x", "#!/usr/bin/env -S python3.11\n") == "python"
