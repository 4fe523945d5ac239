from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecars.syntax.arguments import use_of
from sidecars.syntax.program_table import grammar, names
from sidecars.syntax.shell import LONGEST_LINE, read_shell
from sidecars.syntax.words import ansi_text, literal


@pytest.mark.parametrize(
    ("command", "opened", "written"),
    [
        ("cat a.py", ["a.py"], []),
        ("cat a.py | grep -n 'b.py' c.txt > out.txt 2>&1", ["a.py", "c.txt"], ["out.txt"]),
        ("cd sub && sed -i 's/a/b/' f.py; ls", ["sub/f.py"], ["sub/f.py"]),
        ("cd sub && echo hi > x.txt && cat ../top.txt", ["top.txt"], ["sub/x.txt"]),
        ("cd sub && cat <<EOF > x.txt && touch y\na\nEOF\nrm z", [], ["sub/x.txt", "sub/y", "sub/z"]),
        ("echo src/private/x.py", [], []),
        ("ls # src/private", [], []),
        ("git commit -m 'touch src/a.py'", [], []),
        ("git checkout -- src/a.py src", [], ["src/a.py"]),
        ("git diff main -- src/a.py", [], []),
        ("cat > notes.md <<'EOF'\ncat src/private/x.py\nEOF\nrm old", [], ["notes.md", "old"]),
        ("cat <<'END'\n\\cat src/private/x.py\nEND\nrm old", [], ["old"]),
        ("cat <<END > out.txt\n\\$HOME src/private/x.py > y\nEND\n", [], ["out.txt"]),
        ("python3 -c \"print(open('src/x.txt').read())\"", ["src/x.txt"], []),
        ("python3 -c \"if a: open('src/x.txt')\"", [], []),
        ("python3 -c \"import sys; sys.exit(); open('src/x.txt')\"", [], []),
        ("python3 -c \"f = lambda: open('src/x.txt')\"", [], []),
        ("python3 -c \"a and open('src/x.txt')\"", [], []),
        ("python3 -c 'open(\"x.txt\"'", [], []),
        ("cd a && python3 - <<'E'\np = 'x.txt'\nwith open(p, 'w') as f:\n    f.write('b')\nE", [], ["a/x.txt"]),
        ("python - <<'E'\nfrom pathlib import Path\nPath('y').write_text(Path('x').read_text())\nE", ["x"], ["y"]),
        ("FOO=1 sudo -u me cat a 2>/dev/null", ["a"], []),
        ("cp a b c/", ["a", "b"], ["c/a", "c/b"]),
        ("cp -t c a b", ["a", "b"], ["c/a", "c/b"]),
        ("cp --parents a/b.c d/", [], []),
        ("grep -rn -e pattern src", [], []),
        ("grep $options pattern a.py", ["a.py"], []),
        ("grep $options a.py", [], []),
        ("head -n $count a.py", ["a.py"], []),
        ("tool --config=conf/x.toml --exclude=a.py b.py", [], []),
        ("for f in src/*.py; do sed -i s/a/b/ $f; done", [], []),
        ('f=src/a.py; cat "$f"; echo x >> ${f}', ["src/a.py"], ["src/a.py"]),
        ("f='a b'; cat $f; cat \"$f.txt\"", ["a b.txt"], []),
        ("d=src; f=$d/a.py && cd $d && rm ../$f", [], ["src/a.py"]),
        ("f=a.py cat $f", [], []),
        ("f=a.py; bash -c 'cat $f'", [], []),
        ("f=a.py; read -r f; cat $f", [], []),
        ("f=a.py; test -n x && f=b.py; cat $f", [], []),
        ("f=a.py; while x; do f=b.py; done; cat $f", [], []),
        ("f=a.py; (f=b.py); cat $f", ["a.py"], []),
        ("f() { local p=b.py; }; p=a.py; f; cat $p", [], []),
        ("p=a.py; . ./env; cat $p", ["env"], []),
        ("p=a.py; for p in b c; do x; done; cat $p", [], []),
        ("p=a; p+=.py; cat $p; p=$(x); cat $p", ["a.py"], []),
        ("p=(a.py b.py); cat $p ${p[0]} ${p:-c.py}", [], []),
        ("p=*.py; cat $p; p=a.py; unset p; cat $p", [], []),
        ("IFS=.; p=a.py; cat $p", [], []),
        ("n=3; ((n++)); cat $n", [], []),
        ("if test -f a; then cat b; fi", [], []),
        ("[ -f a ] && rm a; cat b", ["b"], []),
        ("[ -f a ] && cat a", ["a"], []),
        ("false && cat a", [], []),
        ("cd a || exit; cat b", ["a/b"], []),
        ("cd a || exit 0; cat b", [], []),
        ("cd a || cd b; cat c", [], []),
        ("test -d a && cd a; cat b", [], []),
        ("cd a & cat b", ["b"], []),
        ("while read -r x; do cd $x; done; cat b", [], []),
        ('echo "$(cat src/a.py)"', ["src/a.py"], []),
        ("echo '$(cat src/a.py)'", [], []),
        ("echo 'rm a' | bash", [], ["a"]),
        ("bash <<< 'rm a'", [], ["a"]),
        ("bash > log <<< 'rm a' && rm b", [], ["log", "a", "b"]),
        ("cat > a << b > c", [], []),
        ("bash <<EOF\nrm $a b\nEOF", [], []),
        ("sed -i '' s/a/b/ f.py", ["f.py"], ["f.py"]),
        ("find . -print0 | xargs -0 -I{} cp {} backup/", [], []),
        ("awk -F: '{print $1}' OFS=: a.txt", ["a.txt"], []),
        ("tar cvzf out.tgz -C src a.txt", [], ["out.tgz"]),
        ("terraform -chdir=infra fmt main.tf", ["infra/main.tf"], ["infra/main.tf"]),
        ("cat '~/a' ~/b", ["./~/a", "~/b"], []),
        ("f() { cat a; } > log\nf", ["a"], ["log"]),
        ("unset -f cat; cat() { :; }; unset cat; cat a", ["a"], []),
        ("time cat a; nice -n 5 cat b", ["a", "b"], []),
        ("", [], []),
    ],
)
def test_what_a_line_does(command: str, opened: list[str], written: list[str]) -> None:
    read = read_shell(command)
    assert (list(read.opened), list(read.may_write)) == (opened, written)


@pytest.mark.parametrize(
    ("command", "texts"),
    [
        ("cat > a.py <<'EOF'\n  first = '$x'\nsecond\nEOF", [("a.py", "  first = '$x'\nsecond\n")]),
        ("cat <<EOF > a.py\nx $y z\n  last\nEOF", [("a.py", "x  z\n  last\n")]),
        ("cat <<-'EOF' | sudo tee -a a.py >/dev/null\n\tone\n\tEOF", [("a.py", "one\n")]),
        ("cd sub && echo -n 'a b' c >> d.txt", [("sub/d.txt", "a b c")]),
        ("printf '%s=%s\\n' a b c d > x.ini", [("x.ini", "a=b\nc=d\n")]),
        ("{ echo one; echo two; } > n.txt", [("n.txt", "one\ntwo\n")]),
        ("{ echo one; date; } > n.txt", []),
        ("tee a b <<< text", [("a", "text\n"), ("b", "text\n")]),
        ("cat in.txt > out.txt", []),
        ("python - > out.txt <<'EOF'\nprint(1)\nEOF", []),
        ('echo "$(cat secret)" > out.txt', [("out.txt", "\n")]),
        ("if x; then echo a > b; fi", []),
    ],
)
def test_the_text_that_goes_into_a_file(command: str, texts: list[tuple[str, str]]) -> None:
    assert list(read_shell(command).texts) == texts


@pytest.mark.parametrize(
    ("command", "tools"),
    [
        ("sudo env A=1 timeout 5 nice -n 2 pytest -q", ["pytest"]),
        ("uv run --with x python -m pytest", ["pytest"]),
        ("npx --yes -p typescript@5 tsc@5 --noEmit", ["tsc"]),
        ("npx @scope/tool@1 x", ["tool"]),
        ("find . | xargs -n1 prettier --write", ["find", "prettier"]),
        ("find . | xargs -r prettier --write", ["find"]),
        ("python3 x.py && ./bin/tool", ["python3", "tool"]),
        ("cd x; export A=1; echo a; test -f b", []),
        ("bash -c 'make; \"$x\"' && curl x", ["make", "curl"]),
        ("docker exec web pytest", ["docker"]),
        ("if which jq; then jq .; fi", ["which"]),
    ],
)
def test_which_tools_run(command: str, tools: list[str]) -> None:
    assert list(read_shell(command).tools) == tools


@pytest.mark.parametrize(
    "command",
    ["it's broken; cat src/x", "cat a.txt |", "fi; cat a.txt", "! { cat a; }", "cat a; done", "if then cat a; fi"],
)
def test_what_the_shell_refuses_does_nothing(command: str) -> None:
    assert read_shell(command) == read_shell("")


def test_lines_before_a_fault_have_run() -> None:
    assert read_shell('cat a\ncat b; echo "open').opened == ("a",)


@pytest.mark.parametrize(
    "line",
    [
        "cat a; " + "x" * LONGEST_LINE,
        "(" * 20_000,
        "x=$(" * 5_000,
        "<<A " * 5_000,
        "[[ ( " * 3_000,
        "cat a; " * 6_000,
        "f() { f; f; }; f",
        "f() { g; g; }; g() { h; h; }; h() { f; f; f; }; f",
        'eval "' * 12 + "cat a" + '"' * 12,
        "bash -c " * 400 + "x",
        "sudo " * 5_000 + "cat a",
        "\ud800 cat a",
        "cat \0 a",
    ],
)
def test_any_line_takes_little_time(line: str) -> None:
    start = time.process_time()
    read_shell(line)
    assert time.process_time() - start < 2


_WORDS = """cat git sed -i <<EOF EOF > >> | && ' " \\ $( ) cd a/b -c python # ; … sudo -u X=1 HEAD:a dd if=x &> 2>&1"""


@given(st.lists(st.sampled_from([*_WORDS.split(), "\n", "\0"])).map(" ".join) | st.text())
def test_any_line(line: str) -> None:
    read = read_shell(line)
    for path in read.opened + read.may_write:
        assert path
        assert "\n" not in path


def test_a_word_between_ansi_quotes() -> None:
    assert ansi_text(r"\x41\u00e9\101\n\'\e[0m\q\cA") == "AéA\n'\x1b[0m\\q\x01"


KINDS = ["r", "f", "w", "v", "m", "F", "t", "p", "s", "x", "cmd", "cmd/s", "sub", "sub/s", "sub?"]
VALUES = [
    "0",
    "x",
    "xx",
    "xr",
    "r",
    "f",
    "w",
    "@",
    "form",
    "p",
    "q",
    "cd",
    "sh",
    "code",
    "mod",
    "run",
    "to",
    "put",
    "opt",
    "in",
    "ro",
    "no",
    "dir",
    "lost",
    "maybe",
    "away",
    "staged",
    "worktree",
]


@pytest.mark.parametrize("name", names())
def test_each_row_of_the_table_says_what_can_be_read(name: str) -> None:
    row = grammar(name)
    assert row is not None
    for kind in row.words + row.after:
        assert kind.removesuffix("*") in KINDS
    for flag, kind in row.flags.items():
        assert re.fullmatch(r"--?[^=\s]+|\w+=", flag)
        assert kind in VALUES or (kind.startswith(">") and grammar(kind[1:]) is not None), (flag, kind)
    assert row.options <= {"+", "1", "?", "bundle", "vars", "plus"}
    above = name.rpartition("/")[0]
    if above and above != "python":
        outer = grammar(above)
        assert outer is not None
        assert outer.words[0].startswith("sub")


def test_a_program_that_is_not_known_names_nothing() -> None:
    use = use_of("frobnicate", [literal("a.py"), literal("-o"), literal("b.py")])
    assert (use.opened, use.written, use.command) == ([], [], None)
