"""``python -m witness.notify TOWN``: follow the town and tell, until the process that started it has ended."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from witness.clock import Clock, SystemClock
from witness.config.notices import Telling
from witness.config.town import Town
from witness.errors import DeclarationError, JournalError, WitnessError
from witness.files import read_json, replace_file
from witness.journal import Journal
from witness.notify.board import Notice, NoticeBoard
from witness.notify.ways import plain, tell
from witness.state.reader import StateReader, follow
from witness.trust.settings import trusted_settings

TOLD = "notices.json"
# Seconds between two looks for what may be told by now.
_ROUND = 2.0
#: After which seconds a telling that failed is tried again.
AGAIN = (5.0, 60.0, 300.0)
_PR_SET_PDEATHSIG = 1


class Notifier:
    """Tells of one town.

    Args:
        town: the town.
        journal: its journal.
        clock: time.
        again: after how many seconds a telling that failed is tried again, each time.
    """

    def __init__(
        self, town: Town, journal: Journal, clock: Clock | None = None, again: tuple[float, ...] = AGAIN
    ) -> None:
        self._town, self._journal, self._clock = town, journal, clock or SystemClock()
        self._reader = StateReader(town, journal)
        self.board, since = self._remembered()
        self._again = again
        self._failed: dict[str, tuple[int, float]] = {}
        if since:  # who died while nobody looked
            gone = [self._reader.ended(group).as_json() for group in journal.groups.ended(since)]
            self.board.see(gone)

    def round(self) -> None:
        """Follow the town for a moment, and tell what is due."""
        for change in follow(self._reader, self._journal, _ROUND):
            if change["kind"] == "snapshot":
                self.board.see(change["polecats"], whole=True)
            elif change["kind"] == "change":
                self.board.see([change["polecat"]])
            self.tell_due()
        self.tell_due()
        self._remember()

    def tell_due(self) -> None:
        """Tell what may be told now."""
        wanted = self._wanted()
        now, local = self._clock.wall(), time.localtime()
        for notice, telling, name in self.board.due(wanted, now, local.tm_hour * 60 + local.tm_min):
            tried, again = self._failed.get(name, (0, 0.0))
            if self._clock.monotonic() >= again:
                self._tell(notice, telling, name, tried)
        self.board.forget(now)

    def _tell(self, notice: Notice, telling: Telling, name: str, tried: int) -> None:
        try:
            tell(self._town, notice, telling)
        except WitnessError as error:
            if tried < len(self._again):
                self._failed[name] = (tried + 1, self._clock.monotonic() + self._again[tried])
                return
            self._journal.note(
                self._clock.wall(), "notice-failed", run=notice.run, way=telling.way, reason=plain(str(error))
            )
        else:
            self._journal.note(
                self._clock.wall(),
                "notice",
                run=notice.run,
                what=notice.kind,
                way=telling.way,
                message=plain(notice.words),
            )
        self._failed.pop(name, None)
        self.board.was_told(notice, name, self._clock.wall())

    def _wanted(self) -> dict[str, tuple[Telling, ...]]:
        try:
            return dict(trusted_settings(self._town.root).on)
        except DeclarationError:
            return {}

    def _remembered(self) -> tuple[NoticeBoard, float]:
        with suppress(OSError, ValueError, TypeError, AttributeError):
            kept = read_json(self._town.runtime / TOLD, 1 << 20, below=self._town.root)
            told, last = ({str(k): float(v) for k, v in kept[part].items()} for part in ("told", "last"))
            return NoticeBoard(told, last), float(kept["time"])
        return NoticeBoard(), 0.0

    def _remember(self) -> None:
        kept = {"time": self._clock.wall(), "told": self.board.told, "last": self.board.last}
        with suppress(OSError):
            replace_file(self._town.runtime / TOLD, json.dumps(kept), durable=False, below=self._town.root)


def main(argv: list[str]) -> int:
    """Tell until the Witness has ended."""
    os.umask(0o077)
    parent = os.getppid()
    with suppress(OSError, AttributeError):  # elsewhere than on Linux the parent is looked at alone
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    town = Town.at(Path(argv[0]))
    while os.getppid() == parent:
        try:
            with Journal(town.journal_path) as journal:
                notifier = Notifier(town, journal)
                while os.getppid() == parent:
                    journal.check_place()
                    notifier.round()
        except (JournalError, OSError) as error:
            sys.stderr.write(f"gt-witness notify: {error}\n")
            time.sleep(_ROUND)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
