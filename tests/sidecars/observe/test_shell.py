from __future__ import annotations

import pytest

from sidecars.observer.observe.shell import named_files


@pytest.mark.parametrize(
    ("command", "read", "written"),
    [
        ("cat a.py", ["a.py"], []),
        ("cat a.py | grep -n 'b.py' c.txt > out.txt 2>&1", ["a.py", "c.txt"], ["out.txt"]),
        ("cd sub && sed -i 's/a/b/' f.py; ls", [], ["sub/f.py"]),
        ("sed -n 1,5p f.py", ["f.py"], []),
        ("echo src/private/x.py", [], []),
        ("echo done > log", [], ["log"]),
        ("ls # src/private", [], []),
        ("git commit -m 'touch src/a.py'", [], []),
        ("git show HEAD:src/a.py", ["src/a.py"], []),
        ("git checkout -- src/a.py", [], ["src/a.py"]),
        ("git diff main -- src/a.py", ["main", "src/a.py"], []),
        ("cat > notes.md <<'EOF'\ncat src/private/x.py\nEOF\nrm old", [], ["notes.md", "old"]),
        ("python3 -c \"print(open('src/x.txt').read())\"", ["src/x.txt"], []),
        ("python3 run.py", ["run.py"], []),
        ("FOO=1 sudo -u me cat a 2>/dev/null", ["a"], []),
        ("timeout 5s cat a", ["a"], []),
        ("cp a b c/", ["a", "b"], ["c/"]),
        ("mv a b", [], ["a", "b"]),
        ("cat <in.txt", ["in.txt"], []),
        ("cat a\ncat b", ["a", "b"], []),
        ("grep -rn -e pattern src", ["src"], []),
        ("curl https://example.org/a/b", [], []),
        ("tool --config=conf/x.toml", ["conf/x.toml"], []),
        ("cat 'with blank.txt'", ["with blank.txt"], []),
        ("tee -a x.log", [], ["x.log"]),
        ("for f in src/*.py; do sed -i s/a/b/ $f; done", ["f", "in", "src/*.py"], ["$f"]),
        ("if test -f a; then cat b; fi", ["a", "b"], []),
        ("do echo src/x", [], []),
        ("echo one # it's a comment\ncat b", ["b"], []),
        ("git commit -m '#5 done' && cat b", ["b"], []),
        ('echo "$(cat src/a.py)"', ["src/a.py"], []),
        ("echo `cat src/a.py`", ["src/a.py"], []),
        ("echo '$(cat src/a.py)'", [], []),
        ("f=src/a.py; cat $f", ["src/a.py", "$f"], []),
        ("", [], []),
    ],
)
def test_what_a_command_names(command: str, read: list[str], written: list[str]) -> None:
    found = named_files(command)
    assert (found.read, found.written) == (read, written)


def test_an_open_quote_is_still_read() -> None:
    assert "src/x" in named_files("it's broken; cat src/x").read


def test_a_huge_command_is_read_from_its_beginning() -> None:
    assert named_files("cat first; " + "x" * 5_000_000).read == ["first"]
