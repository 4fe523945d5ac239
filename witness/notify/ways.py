"""The ways to tell somebody: a program, a webhook, the desktop, a terminal's bell."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

from witness.config.notices import Telling
from witness.config.town import Town
from witness.errors import WitnessError
from witness.notify.board import Notice
from witness.tmux import Tmux

_SECONDS = 20.0
_LONGEST = 400
_TITLE = "gt-witness"


def tell(town: Town, notice: Notice, telling: Telling) -> None:
    """Tell somebody, once.

    Raises:
        WitnessError: it did not arrive; the text says why.
    """
    {"command": _command, "webhook": _webhook, "desktop": _desktop, "bell": _bell}[telling.way](town, notice, telling)


def message(town: Town, notice: Notice) -> dict[str, Any]:
    """The JSON object that a program and a webhook get."""
    return {
        "kind": notice.kind,
        "polecat": notice.address,
        "town": str(town.root),
        "message": plain(notice.words),
        "state": notice.state,
    }


def plain(text: str) -> str:
    """One line without control bytes: an agent's own words are in it."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())[:_LONGEST]


def _command(town: Town, notice: Notice, telling: Telling) -> None:
    given = json.dumps(message(town, notice), ensure_ascii=False)
    _run(telling.command, given, {"GT_NOTICE": notice.kind, "GT_NOTICE_MESSAGE": plain(notice.words)})


def _run(words: tuple[str, ...], given: str, more: Mapping[str, str]) -> None:
    try:
        done = subprocess.run(
            words, input=given, env={**os.environ, **more}, cwd="/", text=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, timeout=_SECONDS, check=False, start_new_session=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise WitnessError(f"{words[0]} did not end within {_SECONDS:.0f} s") from None
    except OSError as error:
        raise WitnessError(f"{words[0]}: {error.strerror}") from error
    if done.returncode:
        raise WitnessError(f"{words[0]} ended with {done.returncode}: {plain(done.stderr)}"[:_LONGEST])


def _webhook(town: Town, notice: Notice, telling: Telling) -> None:
    import urllib.error
    import urllib.request

    data = json.dumps(message(town, notice), ensure_ascii=False).encode()
    headers = {"Content-Type": "application/json", "User-Agent": _TITLE}
    request = urllib.request.Request(telling.url, data, headers)  # noqa: S310 - its scheme was looked at
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
            answer.read(1 << 16)
    except urllib.error.HTTPError as error:
        error.close()
        raise WitnessError(f"the webhook failed: it answers with {error.code}") from None
    except (OSError, ValueError) as error:  # what it is told, not where: an address may hold a secret
        raise WitnessError(f"the webhook failed: {getattr(error, 'reason', error)}"[:_LONGEST]) from error


def _desktop(_: Town, notice: Notice, __: Telling) -> None:
    words = plain(notice.words)
    if program := shutil.which("notify-send"):
        _run((program, "--app-name", _TITLE, "--", _TITLE, words), "", {})
    elif program := shutil.which("osascript"):
        lines = ["on run argv", "display notification (item 1 of argv) with title (item 2 of argv)", "end run"]
        _run((program, *(part for line in lines for part in ("-e", line)), words, _TITLE), "", {})
    else:
        raise WitnessError("there is neither notify-send nor osascript here")


def _bell(town: Town, notice: Notice, _: Telling) -> None:
    """A bell, and the notifications of terminals that know OSC 9 or 777, at each terminal that shows this town."""
    words = plain(notice.words).replace(";", ",").encode()
    text = b"\x1b]777;notify;" + _TITLE.encode() + b";" + words + b"\x1b\\\x1b]9;" + words + b"\x1b\\\a"
    reached = 0
    for name in Tmux(*town.tmux_place).client_terminals():
        try:
            handle = os.open(name, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            if os.isatty(handle):
                os.write(handle, text)
                reached += 1
        except OSError:
            continue
        finally:
            os.close(handle)
    if not reached:
        raise WitnessError("no terminal shows a polecat of this town: gt attach")
