"""``gt doctor --bundle``: a report for people who help, without what is nobody else's business.

It holds versions, findings, settings that differ, the history's kinds and the ends of our own logs; no task, no
message, no screen and nothing of a repository. What looks like a key, a home folder, a user's or a machine's name or
an address is replaced.
"""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

from witness.config.settings import Settings
from witness.config.town import Town
from witness.doctor.finding import Finding
from witness.errors import WitnessError
from witness.files import read_bytes
from witness.journal import Journal
from witness.trust.settings import trusted_settings
from witness.version import __version__

_LOGS = ("witness.log", "forkserver.log", "cron.log")
_LOG_LINES, _EVENTS = 60, 100
_LARGEST_LOG = 16 << 20
# Settings whose value may be a secret, or a way to one.
_PRIVATE = frozenset(["key_command", "key_file", "model_url"])
_MAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")
_NAMED = re.compile(r"(?i)((?:key|token|secret|password|authorization)[\w-]*[\"']?\s*[:=]\s*)\S+")
# Words of a history's data that are somebody's own text.
_OWN_WORDS = frozenset(["message", "task", "reason", "note", "question", "last", "words"])


def bundle(town: Town | None, findings: Sequence[Finding], without_secret: Callable[[str], str]) -> str:
    """The report.

    Args:
        town: the town; None outside of any.
        findings: what the doctor found.
        without_secret: takes out what looks like a key.
    """
    lines = [f"gt-witness {__version__}", f"Python {platform.python_version()}, {platform.platform()}", ""]
    lines += [f"{each.level}  {each.check}: {each.message}" for each in findings]
    if town is not None:
        lines += ["", "## settings that are not the default", *_settings(town)]
        lines += ["", "## history", *_history(town)]
        for name in _LOGS:
            lines += ["", f"## the end of {name}", *_log_end(town.runtime / name)]
    hide = _hidden(os.environ)
    return "\n".join(_scrubbed(line, hide, without_secret) for line in lines) + "\n"


def _settings(town: Town) -> Iterator[str]:
    try:
        given, plain = trusted_settings(town.root), Settings()
    except WitnessError as error:
        yield from str(error).splitlines()
        return
    for each in fields(Settings):
        value = getattr(given, each.name)
        if value != getattr(plain, each.name):
            yield f"{each.name} is set" if each.name in _PRIVATE else f"{each.name}: {value}"


def _history(town: Town) -> Iterator[str]:
    if not town.journal_path.exists():
        return
    try:
        with Journal(town.journal_path) as journal:
            events = journal.events_after(max(journal.last_event - _EVENTS, 0))
            for _, event in events:
                data = {key: value for key, value in event.data.items() if key not in _OWN_WORDS}
                yield f"{event.time:.3f} {event.run[:8]} {event.kind} {event.member} {json.dumps(data, default=str)}"
    except WitnessError as error:
        yield str(error)


def _log_end(path: Path) -> list[str]:
    try:
        data = read_bytes(path, _LARGEST_LOG, below=path.parent)
    except OSError as error:
        return [f"({error})"]
    return data.decode("utf-8", "replace").splitlines()[-_LOG_LINES:]


def _hidden(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """What stands for what: the longest first, so that no part of it stays."""
    found = {environ.get("HOME", ""): "~", os.path.realpath(environ.get("HOME") or "/"): "~"}
    found[socket.gethostname()] = "(host)"
    with suppress(KeyError, OSError):
        found[getpass.getuser()] = "(user)"
    found |= {
        value: "(secret)"
        for name, value in environ.items()
        if re.search(r"(?i)key|token|secret|password", name) and len(value) > 7
    }
    return sorted(((text, sign) for text, sign in found.items() if len(text) > 2), key=lambda each: -len(each[0]))


def _scrubbed(line: str, hide: Sequence[tuple[str, str]], without_secret: Callable[[str], str]) -> str:
    for text, sign in hide:
        edges = (r"(?<!\w)", r"(?!\w)") if text.isalnum() else ("", "")
        line = re.sub(edges[0] + re.escape(text) + edges[1], sign, line)
    line = _NAMED.sub(r"\1(secret)", _MAIL.sub("(address)", line))
    return without_secret(line)
