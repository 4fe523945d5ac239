"""``gt top``: the town's polecats, live, in a terminal, those that need somebody first.

A thread follows the state (``TownFeed``) and hands each moment to the screen; what is shown beside the list (the
polecat's screen, its parts or its log) is read for the chosen polecat alone. Everything that is done goes through
``gt`` itself, so that its questions and refusals hold here too. What polecats print is shown as text: no markup, no
control bytes.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import Any, ClassVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, RichLog, Static
from textual.widgets.option_list import Option

from witness.views.feed import Seen, TownFeed
from witness.views.rows import SORTS, Row, counts, details, next_in_need, plain, rows

_COLOUR = {"needs you": "bold yellow", "stuck": "bold red", "working": "green", "dead today": "red"}
# From this width on the panes stand side by side.
_WIDE = 100
_NAME = 24
# Seconds between two looks at what stands beside the list, and after which the ages in the list are counted anew.
_ROUND, _AGES = 1.0, 5.0


class Ask(ModalScreen[str]):
    """Asks for one line; Escape gives an empty one.

    Args:
        title: what is asked.
        shown: lines above it, as they are.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss('')", "leave")]
    CSS = """
    Ask { align: center middle; }
    Ask > Vertical { width: 90%; height: auto; max-height: 90%; border: round $accent; padding: 0 1; }
    Ask Static { height: auto; max-height: 20; }
    """

    def __init__(self, title: str, shown: list[str] | None = None) -> None:
        super().__init__()
        self._title, self._shown = title, shown or []

    def compose(self) -> ComposeResult:
        with Vertical():
            if self._shown:
                yield Static(Text("\n".join(self._shown[-18:])))
            yield Static(Text(self._title, "bold"))
            yield Input()

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)


class Top(App[None]):
    """The view.

    Args:
        feed: what it shows, and what does what is asked.
    """

    TITLE = "gt top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head, #foot { height: 1; background: $panel; }
    #body { layout: vertical; height: 1fr; }
    #body.wide { layout: horizontal; }
    #list { height: 1fr; width: 1fr; border: none; padding: 0; text-wrap: nowrap; text-overflow: ellipsis; }
    #side { height: 1fr; width: 1fr; border-top: solid $accent; }
    #body.wide #side { border-top: none; border-left: solid $accent; }
    #side.hidden { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("tab,full_stop", "next", "next that needs me", priority=True),
        Binding("enter,a", "attach", "attach"),
        Binding("p", "side('screen')", "screen"),
        Binding("t", "side('parts')", "parts"),
        Binding("l", "side('log')", "log"),
        Binding("r", "answer", "answer"),
        Binding("n", "nudge", "nudge"),
        Binding("k", "nuke", "nuke"),
        Binding("slash", "filter", "filter"),
        Binding("s", "sort", "sort"),
    ]
    _FOOT = "⏎ attach  ⇥ next in need  p screen  t parts  l log  r answer  n nudge  k nuke  / filter  s sort  q quit"

    def __init__(self, feed: TownFeed) -> None:
        super().__init__()
        self._feed = feed
        self._seen: Seen | None = None
        self._rows: list[Row] = []
        self._sort, self._wanted, self._side = SORTS[0], "", ""

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        with Vertical(id="body"):
            yield OptionList(id="list", markup=False)
            yield RichLog(id="side", wrap=True, markup=False, highlight=False, classes="hidden")
        yield Static(Text(self._FOOT, no_wrap=True, overflow="ellipsis"), id="foot")

    def on_mount(self) -> None:
        self.query_one("#list").focus()
        self.follow_town()
        self.set_interval(_ROUND, self.show_side)
        self.set_interval(_AGES, self.show)

    def on_resize(self, event: Resize) -> None:
        self.query_one("#body").set_class(event.size.width >= _WIDE, "wide")
        self.show()

    @work(thread=True, exclusive=True, group="follow")
    def follow_town(self) -> None:
        """Hand each moment of the town to the screen."""
        for seen in self._feed.moments():
            if not self.is_running:
                return
            self.call_from_thread(self.take, seen)

    def take(self, seen: Seen) -> None:
        """Show a moment."""
        self._seen = seen
        self.show()

    # -- what is shown ----------------------------------------------------------------------------------------------

    def show(self) -> None:
        """The list anew, with the same polecat chosen."""
        if self._seen is None:
            return
        chosen, listed = self._chosen(), self.query_one("#list", OptionList)
        parts = [] if self._seen.state["witness"]["running"] else ["no Witness runs: gt witness start"]
        parts += [f"/{self._wanted}"] if self._wanted else []
        parts += [f"by {self._sort}"] if self._sort != SORTS[0] else []
        head = "  ".join([*parts, counts(self._seen.polecats)])
        self.query_one("#head", Static).update(Text(plain(head), no_wrap=True, overflow="ellipsis"))
        self._rows = rows(self._seen.polecats, self._sort, self._wanted)
        listed.clear_options()
        listed.add_options(
            [Option(_line(row), id=row.run or f"head {row.section}", disabled=not row.run) for row in self._rows]
        )
        wanted = chosen["run"] if chosen else next((row.run for row in self._rows if row.run), "")
        self._choose(wanted)

    def _choose(self, run: str) -> None:
        listed = self.query_one("#list", OptionList)
        place = next((number for number, row in enumerate(self._rows) if row.run and row.run == run), None)
        if place is None:
            place = next((number for number, row in enumerate(self._rows) if row.run), None)
        listed.highlighted = place

    def _chosen(self) -> Mapping[str, Any] | None:
        place = self.query_one("#list", OptionList).highlighted
        return self._rows[place].state if place is not None and place < len(self._rows) else None

    def show_side(self) -> None:
        """What is shown beside the list, read anew."""
        state = self._chosen()
        if self._side and state is not None:
            self.read_side(self._side, dict(state))

    @work(thread=True, exclusive=True, group="side")
    def read_side(self, what: str, state: dict[str, Any]) -> None:
        """Read one polecat's screen, parts or log."""
        try:
            if what == "screen":
                lines = self._feed.screen(state["address"])
            else:
                lines = self._feed.log(state["run"]) if what == "log" else details(state)
        except Exception as error:  # noqa: BLE001 - a polecat that has just gone must not end the view
            lines = [str(error)]
        self.call_from_thread(self.fill_side, [f"── {state['address']}: {what}", *lines])

    def fill_side(self, lines: list[str]) -> None:
        """Put lines beside the list."""
        side = self.query_one("#side", RichLog)
        side.clear()
        for line in lines:
            side.write(Text(plain(line)), scroll_end=True)

    def on_option_list_option_highlighted(self) -> None:
        self.show_side()

    # -- what is done -----------------------------------------------------------------------------------------------

    def action_side(self, what: str) -> None:
        """Show or hide the screen, the parts or the log beside the list."""
        self._side = "" if self._side == what else what
        self.query_one("#side").set_class(not self._side, "hidden")
        self.show_side()

    def action_next(self) -> None:
        """Go to the next polecat that needs somebody."""
        state = self._chosen()
        if run := next_in_need(self._rows, state["run"] if state else ""):
            self._choose(run)
        else:
            self.notify("nobody needs you", markup=False)

    def action_sort(self) -> None:
        """Sort by the next of the orders."""
        self._sort = SORTS[(SORTS.index(self._sort) + 1) % len(SORTS)]
        self.show()

    def action_attach(self) -> None:
        """Show the chosen polecat's session in this terminal, until it is left."""
        state = self._living()
        if state is None:
            return
        argv, environment = self._feed.attaching(state["session"])
        with self.suspend():
            subprocess.run(argv, env=environment, check=False)

    def on_option_list_option_selected(self) -> None:
        self.action_attach()

    def action_filter(self) -> None:
        """Show only polecats in which a text stands."""

        def narrow(text: str | None) -> None:
            self._wanted = text or ""
            self.show()

        self.push_screen(Ask("only polecats with this in name, task, branch or folder (empty: all)"), narrow)

    def action_nudge(self) -> None:
        """Tell the chosen polecat something."""
        state = self._living()
        if state is None:
            return

        def send(text: str | None) -> None:
            if text:
                self.run_command("nudge", state["address"], "-m", text)

        self.push_screen(Ask(f"tell {state['address']}"), send)

    def action_nuke(self) -> None:
        """End the chosen polecat, once its name was typed."""
        state = self._living()
        if state is None:
            return

        def end(text: str | None) -> None:
            if text == state["polecat"]:
                self.run_command("polecat", "nuke", state["address"])
            elif text:
                self.notify("nothing was ended: that is not its name", markup=False)

        self.push_screen(Ask(f"end {state['address']} and all that it started? type {state['polecat']}"), end)

    def action_answer(self) -> None:
        """Show the chosen polecat's dialog, and press what is typed there."""
        state = self._living()
        if state is None:
            return
        lines, asked = self._feed.dialog(state)
        if not asked:
            self.notify(f"{state['address']} is at no dialog", markup=False)
            return

        def press(keys: str | None) -> None:
            if keys:
                self.answer(dict(state), keys, asked)

        ask = f"{asked} — keys for {state['address']} (as 1, or: down enter, esc)"
        self.push_screen(Ask(plain(ask), [plain(line) for line in lines]), press)

    def _living(self) -> Mapping[str, Any] | None:
        state = self._chosen()
        if state is not None and state["ended"]:
            self.notify(f"{state['address']} has ended", markup=False)
            return None
        return state

    @work(thread=True, group="command")
    def run_command(self, *words: str) -> None:
        """Run ``gt`` and tell its last line."""
        told = self._feed.command(*words)
        self.call_from_thread(self.notify, plain(told), markup=False)

    @work(thread=True, group="command")
    def answer(self, state: dict[str, Any], keys: str, asked: str) -> None:
        """Press keys at a dialog and tell what came of it."""
        told = self._feed.answer(state, keys, asked)
        self.call_from_thread(self.notify, plain(told), markup=False)


def _line(row: Row) -> Text:
    if not row.run:
        return Text(row.name.upper(), _COLOUR.get(row.section, "bold"), no_wrap=True)
    name = row.name.ljust(min(_NAME, max(len(row.name), 12)))
    return Text.assemble(
        (f" {name} ", "bold"), (row.words, _COLOUR.get(row.section, "")), no_wrap=True, overflow="ellipsis"
    )
