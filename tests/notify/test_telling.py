"""Told by the real process that the Witness keeps: programs, webhooks, terminals, and what fails."""

from __future__ import annotations

import http.server
import json
import os
import pty
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.conftest import Place, make_place, place
from tests.supervise.command import gt
from tests.waiting import until
from witness.config.notices import Telling
from witness.errors import WitnessError
from witness.notify import __main__ as notify
from witness.notify.board import Notice
from witness.notify.ways import tell
from witness.process.table import identify, is_alive

__all__ = ["make_place", "place"]
HOSTILE = "waits: \x1b]0;owned\x07\x1b[2J; $(touch /tmp/x)\n`id`"


def notice(words: str = "main/toast waits (permission): Edit a.py?") -> Notice:
    return Notice("waiting", "r1", "main/toast", "x", words, {"run": "r1"})


def settings(place: Place, text: str) -> None:
    with (place.town.root / "settings" / "witness.yaml").open("a") as file:
        file.write(text)


def program(folder: Path, code: str) -> str:
    path = folder / "told.py"
    path.write_text(code)
    return shlex.join([sys.executable, str(path)])


def test_a_polecat_that_dies_is_told_to_a_program_and_nothing_runs_after_the_witness(
    place: Place, tmp_path: Path
) -> None:
    keeps = tmp_path / "told"
    command = program(tmp_path, f"import sys; open({str(keeps)!r}, 'a').write(sys.stdin.read() + '\\n')")
    settings(place, f"on: {{died: {{command: {json.dumps(command)}}}}}\n")
    place.spawn("keeps", ["sleep", "60"], daemon=True)
    until((place.town.runtime / notify.TOLD).exists, "the notifier has not looked")
    place.spawn("dies", ["sh", "-c", "echo boom; sleep 1; exit 3"], daemon=True)
    until(lambda: keeps.exists() and keeps.read_text().endswith("\n"), "nobody was told")
    (line,) = keeps.read_text().splitlines()
    given = json.loads(line)
    assert (given["kind"], given["polecat"], given["state"]["ended"]["status"]) == ("died", "main/dies", 3)
    assert "exit status 3" in given["message"]
    until(lambda: "told by command" in gt(place.work, "logs", "dies").stdout, "the history does not say so")
    notifier = _notifier(place)
    assert notifier
    process = identify(notifier)
    assert process
    place.witness.stop()
    until(lambda: not is_alive(process), "the notifier outlives the Witness")


def _notifier(place: Place) -> int:
    done = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    rows = [row.split() for row in done.stdout.splitlines()]
    return next((int(row[0]) for row in rows if row[-2:] == ["witness.notify", str(place.town.root)]), 0)


def test_it_runs_only_where_somebody_is_to_be_told_and_comes_again(place: Place) -> None:
    place.spawn("a", ["sleep", "60"], daemon=True)
    place.witness.patrol()
    assert not _notifier(place)
    settings(place, "on: {died: {bell: true}}\n")
    until(lambda: _notifier(place), "it was not started")
    path = place.town.root / "settings" / "witness.yaml"
    path.write_text(path.read_text().replace("on: {died: {bell: true}}\n", ""))
    until(lambda: not _notifier(place), "it was not ended")


class Hook(http.server.BaseHTTPRequestHandler):
    """Takes what it is given, and answers as it is told to."""

    got: list[bytes]
    status = 200

    def do_POST(self) -> None:
        self.got.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""


@pytest.fixture
def hook() -> Iterator[tuple[type[Hook], str]]:
    handler = type("Taker", (Hook,), {"got": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield handler, f"http://127.0.0.1:{server.server_port}/secret-path"
        server.shutdown()
        thread.join()


def test_a_webhook(place: Place, hook: tuple[type[Hook], str]) -> None:
    handler, url = hook
    tell(place.town, notice(HOSTILE), Telling("webhook", url=url))
    (body,) = handler.got
    assert json.loads(body)["message"].isprintable()
    handler.status = 500
    with pytest.raises(WitnessError, match="the webhook failed") as caught:
        tell(place.town, notice(), Telling("webhook", url=url))
    assert "secret-path" not in str(caught.value)


def test_a_program_is_run_by_no_shell_and_its_failure_is_told(place: Place, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code = f"import os, sys; open({str(out)!r}, 'w').write(os.environ['GT_NOTICE_MESSAGE']); sys.exit('no \\x1b[2J')"
    with pytest.raises(WitnessError, match=r"ended with 1: no \[2J"):
        tell(place.town, notice(HOSTILE), Telling("command", tuple(shlex.split(program(tmp_path, code)))))
    assert out.read_text() == "waits: ]0;owned [2J; $(touch /tmp/x) `id`"
    with pytest.raises(WitnessError, match="No such file"):
        tell(place.town, notice(), Telling("command", ("/nowhere/x",)))


def test_the_bell_rings_at_a_terminal_that_shows_a_polecat(place: Place) -> None:
    place.spawn("a", ["sleep", "60"])
    with pytest.raises(WitnessError, match="no terminal shows"):
        tell(place.town, notice(), Telling("bell"))
    (group, _) = place.witness.polecats()[0]
    socket, directory = place.town.tmux_place
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm", **({"TMUX_TMPDIR": directory} if directory else {}))
        os.execvp("tmux", ["tmux", "-L", socket, "attach", "-t", group.session])  # noqa: S606
    shown = b""
    try:
        while b"\x1b" not in shown:
            shown += os.read(terminal, 4096)

        def rung() -> bool:
            try:
                tell(place.town, notice(HOSTILE), Telling("bell"))
            except WitnessError:
                return False
            return True

        until(rung, "tmux knows no client")
        while b"\x1b]9;" not in shown:
            shown += os.read(terminal, 4096)
        assert b"]0;owned\x07" not in shown
        assert b"\x1b]777;notify;gt-witness;waits: " in shown
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


def test_what_fails_is_tried_again_and_then_a_line_of_the_history(place: Place) -> None:
    settings(place, "on: {died: {command: /nowhere/x}}\n")
    notifier = notify.Notifier(place.town, place.witness.journal, again=(0.0, 0.0, 0.0))
    notifier.board.see([{"run": "r1", "address": "main/a", "ended": {"by": "itself", "sentence": "ended"}}])
    for _ in range(5):
        notifier.tell_due()
    failed = [event for event in place.witness.journal.history() if event.kind == "notice-failed"]
    assert [event.data["reason"] for event in failed] == ["/nowhere/x: No such file or directory"]
