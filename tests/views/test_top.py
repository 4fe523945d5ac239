"""``gt top``: its screens by Textual's pilot, and the whole of it in a real tmux."""

from __future__ import annotations

import asyncio
import html
import re
import shlex
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.conftest import Place, make_place, place
from tests.scripts import BASE_PYTHON
from tests.supervise.command import GT, gt
from tests.views.test_rows import TOWN
from tests.waiting import until
from witness.config.town import Town
from witness.errors import TmuxError
from witness.tmux import Tmux
from witness.views.feed import Seen, TownFeed
from witness.views.top import Top

__all__ = ["make_place", "place"]
DIALOG = (
    "● Write(billing/new.py)\\n\\n" + "─" * 60 + "\\n Create file\\n Do you want to create billing/new.py?\\n"
    " ❯ 1. Yes\\n   2. No\\n\\n Esc to cancel\\n"
)


class Recorded(TownFeed):
    """A town that stands still, and what was asked of it."""

    def __init__(self, polecats: list[dict[str, Any]] | None = None) -> None:
        super().__init__(Town.at(Path("/")))
        self.asked: list[tuple[str, ...]] = []
        self._polecats = TOWN if polecats is None else polecats

    def moments(self) -> Iterator[Seen]:
        living = [each for each in self._polecats if not each["ended"]]
        ended = [each for each in self._polecats if each["ended"]]
        yield Seen({"polecats": living, "witness": {"running": True}}, tuple(ended))

    def screen(self, address: str) -> list[str]:
        return [f"the screen of {address}", "[bold]no markup[/bold]", "\x1b[2J"]

    def dialog(self, state: Any) -> tuple[list[str], str]:
        return ["Do you want to?", "1. Yes"], "Do you want to?" if state["waiting"] else ""

    def command(self, *words: str) -> str:
        self.asked.append(words)
        return "done"

    def answer(self, state: Any, keys: str, asked: str) -> str:
        self.asked.append((state["address"], keys, asked))
        return "pressed"


def lines(app: Top) -> list[str]:
    """The screen as text, out of the picture that Textual makes of it."""
    rows: dict[float, list[tuple[float, str]]] = {}
    for x, y, text in re.findall(r'<text[^>]* x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>', app.export_screenshot()):
        rows.setdefault(float(y), []).append((float(x), html.unescape(text).replace("\xa0", " ")))
    return ["".join(text for _, text in sorted(rows[y])).rstrip() for y in sorted(rows)]


def driven(feed: Recorded, drive: Callable[[Top, Any], Awaitable[None]], size: tuple[int, int] = (80, 24)) -> None:
    async def run() -> None:
        app = Top(feed)
        async with app.run_test(size=size) as pilot:
            await app.workers.wait_for_complete([each for each in app.workers if each.group == "follow"])
            await pilot.pause()
            await drive(app, pilot)

    asyncio.run(run())


async def settled(app: Top, pilot: Any) -> None:
    await app.workers.wait_for_complete()
    await pilot.pause()


@pytest.mark.parametrize("size", [(80, 24), (40, 20), (140, 30)])
def test_one_line_an_agent_at_any_width(size: tuple[int, int]) -> None:
    async def drive(app: Top, pilot: Any) -> None:
        shown = lines(app)
        wanted = ["NEEDS YOU 2", "main/early", "main/late", "STUCK 2", "main/hangs", "main/turns", "WORKING 1"]
        places = [next(at for at, line in enumerate(shown) if word in line and at > 1) for word in wanted]
        assert places == list(range(places[0], places[0] + len(wanted)))
        assert any("needs you 2" in line for line in shown)

    driven(Recorded(), drive, size)


def test_what_stands_beside_the_list_is_text() -> None:
    async def drive(app: Top, pilot: Any) -> None:
        await pilot.press("p")
        await settled(app, pilot)
        shown = "\n".join(lines(app))
        assert "the screen of main/early" in shown
        assert "[bold]no markup[/bold]" in shown
        await pilot.press("t")
        await settled(app, pilot)
        assert "workdir  /w" in "\n".join(lines(app))
        await pilot.press("t")
        await settled(app, pilot)
        assert "workdir" not in "\n".join(lines(app))

    driven(Recorded(), drive)


def test_an_answer_a_nudge_and_an_end_are_asked_for_and_done() -> None:
    feed = Recorded()

    async def drive(app: Top, pilot: Any) -> None:
        await pilot.press("r")
        await pilot.pause()
        assert "Do you want to?" in "\n".join(lines(app))
        await pilot.press("1", "enter")
        await settled(app, pilot)
        await pilot.press("n", *"hello", "enter")
        await settled(app, pilot)
        await pilot.press("k", *"late", "enter")
        await settled(app, pilot)
        await pilot.press("k", *"early", "enter")
        await settled(app, pilot)
        await pilot.press("n", "escape")
        await settled(app, pilot)

    driven(feed, drive)
    assert feed.asked == [
        ("main/early", "1", "Do you want to?"),
        ("nudge", "main/early", "-m", "hello"),
        ("polecat", "nuke", "main/early"),
    ]


def test_the_next_in_need_a_filter_and_the_orders() -> None:
    async def drive(app: Top, pilot: Any) -> None:
        await pilot.press("tab", "p")
        await settled(app, pilot)
        assert "the screen of main/late" in "\n".join(lines(app))
        await pilot.press("p", "slash", *"invoice", "enter")
        await settled(app, pilot)
        shown = "\n".join(lines(app))
        assert "main/rests" in shown
        assert "main/works" not in shown
        await pilot.press("slash", "enter", "s")
        await settled(app, pilot)
        assert "by name" in lines(app)[0]

    driven(Recorded(), drive)


def test_an_empty_town_and_one_that_has_ended() -> None:
    async def drive(app: Top, pilot: Any) -> None:
        assert "no polecats" in lines(app)[0]
        for key in ("a", "r", "n", "k", "p", "tab"):
            await pilot.press(key)
        await settled(app, pilot)

    driven(Recorded([]), drive)


def test_without_a_terminal_or_without_textual_it_is_one_line(tmp_path: Path) -> None:
    town = Town.init(tmp_path / "town")
    done = gt(town.root, "top")
    assert (done.returncode, done.stderr.count("\n"), "needs a terminal" in done.stderr) == (2, 1, True)
    code = (
        "import sys; sys.modules['textual'] = None; sys.stdin.isatty = sys.stdout.isatty = lambda: True\n"
        "from witness.cli.top import top\nfrom witness.errors import WitnessError\n"
        "try: top.main([], standalone_mode=False)\nexcept WitnessError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=town.root, capture_output=True, text=True, check=False, timeout=30
    )
    assert done.stdout == "gt top needs Textual: pip install 'gt-witness[top]'\n", done.stderr


@pytest.mark.parametrize(("width", "environment"), [(80, ""), (40, "NO_COLOR=1")])
def test_in_a_real_tmux(place: Place, tmp_path: Path, width: int, environment: str) -> None:
    program = tmp_path / "claude"
    program.write_text(
        f"#!{BASE_PYTHON}\nprint('{DIALOG}', flush=True)\nwhile True: print('got', repr(input()), flush=True)\n"
    )
    program.chmod(0o700)
    place.spawn("ask", [str(program)], daemon=True)
    place.spawn("other", ["sleep", "60"], daemon=True)
    terminal = Tmux(f"top-{place.town.socket}")
    command = f"GT_TOWN_ROOT={shlex.quote(str(place.town.root))} {environment} {shlex.join([*GT, 'top'])}"
    terminal.run("new-session", "-d", "-s", "t", "-x", str(width), "-y", "24", command)
    try:

        def shows(*words: str) -> Callable[[], bool]:
            def shown() -> bool:
                try:
                    return all(word in terminal.capture("t", 24) for word in words)
                except TmuxError:  # its server is on its way
                    return False

            return shown

        until(shows("NEEDS YOU 1", "main/ask"), "the list does not come", every=0.2)
        terminal.press("t", "r")
        until(shows("keys"), "the dialog is not shown", every=0.2)
        terminal.press("t", "1", "Enter")
        until(shows("pressed 1"), "nothing was pressed", every=0.2)
        (group, _) = place.witness.polecats("main")[0]
        until(lambda: "1" in Tmux(*place.town.tmux_place).capture(group.pane, 5), "the agent got no key", every=0.2)
        place.witness.nuke(["other"])
        until(shows("DONE TODAY 1", "main/other"), "the end does not show", every=0.2)
        terminal.press("t", "q")
        until(lambda: not terminal.has_session("t"), "it does not end", every=0.2)
    finally:
        terminal.kill_session("t")
