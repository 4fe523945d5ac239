"""What is printed holds nothing that a terminal would obey."""

from __future__ import annotations

import io

from witness.cli.program import PlainOutput


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


HOSTILE = "a\x1b]0;owned\x07b\x1b[2Jc\x9b31md\x08e\rf\x7f\u202eg\x1bPq\x1b\\h"


def test_control_bytes_of_names_do_not_reach_a_terminal() -> None:
    for stream in (io.StringIO(), _Terminal()):
        out = PlainOutput(stream)
        out.write(HOSTILE)
        out.writelines([HOSTILE, "\n\t"])
        assert stream.getvalue().isprintable() or set(stream.getvalue()) & {"\n", "\t"}
        assert not [char for char in stream.getvalue() if char not in "\n\t" and not char.isprintable()]


def test_styles_pass_to_a_terminal_alone() -> None:
    plain, terminal = io.StringIO(), _Terminal()
    for stream in (plain, terminal):
        PlainOutput(stream).write("\x1b[1mbold\x1b[0m")
    assert plain.getvalue() == "bold"
    assert terminal.getvalue() == "\x1b[1mbold\x1b[0m"
