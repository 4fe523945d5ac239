"""The looker: one process for each work tree that says which files a tool call has changed, made or removed.

It watches the tree from its start on. Each polecat that works there has a socket of it in its run's spool. A hook sends
what the client gave to it and reads one line: the files that changed while that call ran (``effects``). An answer that
nobody waited for any longer is recorded by the looker itself, as a late one.

The process that started it tells it by a pipe whose spool is to be served, one JSON object a line:
``{"add": SPOOL, "workdir": …}`` or ``{"drop": SPOOL}``; when the pipe ends, so does the looker.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from witness.events import tree_files
from witness.events.call_windows import RunCalls, Window, alone
from witness.events.effects import MOST_PATHS, Effects
from witness.events.named_paths import exit_status, named_files, named_outside
from witness.events.spool_reader import bound_in, parse_payload
from witness.events.spool_writer import LOOKER, PAYLOAD_LIMIT, append_record, wake
from witness.events.tree_files import Tree
from witness.events.tree_watch import Change, TreeTooLargeError, TreeWatch

# After the last word of the kernel, before what has changed is looked at though nobody asks.
_SETTLE_SECONDS = 0.25
# The longest call whose changes are kept apart from those of others.
_REMEMBERED_SECONDS = 3600.0
_BEGINNING = frozenset(["PreToolUse", "BeforeTool"])
_COMPLETED = frozenset(["PostToolUse", "PostToolUseFailure", "AfterTool"])
_MOST_PEERS = 64
_MOST_TOLD = 64
_HEAD_LIMIT = 128
# More files than these in one ignored folder are named by the folder.
_MOST_IN_FOLDER = 20


@dataclass(slots=True)
class _Run:
    spool: Path
    workdir: str
    listener: socket.socket
    calls: RunCalls
    # A call is told of twice where two channels of a client are open, and by some clients anyway.
    told: dict[tuple[str, str], Effects | None] = field(default_factory=dict)


@dataclass(slots=True)
class _Peer:
    """A hook that has come: what it has sent so far, or what it was answered."""

    run: _Run
    data: bytearray = field(default_factory=bytearray)
    id: str = ""
    answer: bytes = b""


class Looker:
    """Serves one tree.

    Args:
        watch: the tree.
        orders: the pipe of the process that started it.
        wall: the clock.
    """

    def __init__(self, watch: TreeWatch, orders: int, wall: Callable[[], float] = time.time) -> None:
        self._watch, self._orders, self._wall = watch, orders, wall
        self._pending_orders = b""
        self._runs: dict[str, _Run] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(orders, selectors.EVENT_READ, self._hear_orders)
        if watch.fileno() >= 0:
            self._selector.register(watch.fileno(), selectors.EVENT_READ, self._notice)
        self._settle_at: float | None = None
        self._peers = 0
        self._ended = False

    def serve(self) -> None:
        """Answer until the pipe ends."""
        try:
            while not self._ended:
                patience = None if self._settle_at is None else max(0.0, self._settle_at - time.monotonic())
                for key, _ in self._selector.select(patience):
                    key.data(key.fileobj)
                if self._settle_at is not None and time.monotonic() >= self._settle_at:
                    self._settle_at = None
                    self._settle()
        finally:
            for spool in list(self._runs):
                self._drop(spool)
            self._selector.close()
            self._watch.close()

    def _notice(self, _: object) -> None:
        if self._watch.notice() and self._settle_at is None:
            self._settle_at = time.monotonic() + _SETTLE_SECONDS

    def _settle(self) -> None:
        before = self._watch.fileno()
        self._watch.settle()
        if before >= 0 > self._watch.fileno():  # the system's watches have run out: it has closed its own
            with suppress(KeyError, ValueError, OSError):
                self._selector.unregister(before)
        self._watch.drop_before(self._wall() - _REMEMBERED_SECONDS)

    # -- orders ------------------------------------------------------------------------------------------------------

    def _hear_orders(self, _: object) -> None:
        data = os.read(self._orders, 65536)
        if not data:
            self._ended = True
            return
        *lines, self._pending_orders = (self._pending_orders + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if "drop" in order:
                self._drop(order["drop"])
            else:
                self._add(order["add"], order["workdir"])

    def _add(self, spool: str, workdir: str) -> None:
        if spool in self._runs:
            return
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.setblocking(False)
            bound_in(spool, f"{LOOKER}.new", listener)
            listener.listen(_MOST_PEERS)
            # A hook that sees it shall not be refused.
            os.rename(f"{spool}/{LOOKER}.new", f"{spool}/{LOOKER}")
        except OSError as error:
            listener.close()
            sys.stderr.write(f"{spool}: effects are not looked at: {error}\n")
            return
        run = _Run(Path(spool), workdir, listener, RunCalls(Path(spool)))
        run.calls.rest()
        self._runs[spool] = run
        self._selector.register(listener, selectors.EVENT_READ, lambda _: self._accept(run))

    def _drop(self, spool: str) -> None:
        if (run := self._runs.pop(spool, None)) is None:
            return
        self._selector.unregister(run.listener)
        run.listener.close()
        with suppress(OSError):
            os.unlink(f"{spool}/{LOOKER}")

    # -- hooks -------------------------------------------------------------------------------------------------------

    def _accept(self, run: _Run) -> None:
        try:
            connection, _ = run.listener.accept()
        except OSError:
            return
        if self._peers >= _MOST_PEERS:
            connection.close()
            return
        self._peers += 1
        connection.setblocking(False)
        peer = _Peer(run)
        self._selector.register(connection, selectors.EVENT_READ, lambda _: self._hear(connection, peer))
        self._hear(connection, peer)

    def _hear(self, connection: socket.socket, peer: _Peer) -> None:
        try:
            while data := connection.recv(1 << 18):
                peer.data += data
                if peer.id and peer.data.startswith(b"k"):
                    peer.answer = b""
                    break
                if not peer.id and self._answer_if_whole(connection, peer):
                    break
                if len(peer.data) > PAYLOAD_LIMIT + _HEAD_LIMIT:
                    break
        except BlockingIOError:
            return
        except OSError:
            pass
        if not peer.id:
            self._answer_if_whole(connection, peer, ended=True)
        self._leave(connection, peer)

    def _leave(self, connection: socket.socket, peer: _Peer) -> None:
        self._selector.unregister(connection)
        connection.close()
        self._peers -= 1
        if peer.answer:
            self._record_late(peer)

    def _record_late(self, peer: _Peer) -> None:
        spool = str(peer.run.spool)
        try:
            append_record(spool, b"", look=peer.answer, of=peer.id.encode())
            wake(spool, 0)
            os.chdir("/")
        except OSError as error:
            sys.stderr.write(f"{spool}: what {peer.id} did was not recorded: {error}\n")

    def _answer_if_whole(self, connection: socket.socket, peer: _Peer, ended: bool = False) -> bool:
        """Answer when the request is complete (or will not become so); whether it is none of ours."""
        head, newline, payload = bytes(peer.data).partition(b"\n")
        words = head.split()
        if not newline:
            return False
        if len(words) != 3 or not words[2].isdigit():
            return True
        if len(payload) < int(words[2]) and not ended:
            return False
        peer.id = words[0].decode("ascii", "replace")
        peer.data.clear()
        cut = words[1] == b"1" or len(payload) < int(words[2])
        seen = self._see(peer.run, peer.id, payload, cut)
        if seen is None:
            line = b"\n"
        else:
            line = json.dumps(seen.to_json(), separators=(",", ":")).encode() + b"\n"
            peer.answer = line.strip()
        with suppress(OSError):
            connection.send(line)
        if len(self._runs) > 1:
            peer.run.calls.rest()
        return False

    def _see(self, run: _Run, id: str, raw: bytes, cut: bool) -> Effects | None:
        """What an event tells of, None for one that is no completed call or whose time is not known."""
        payload = parse_payload(raw, cut)
        nanoseconds = id.partition("-")[0]
        if payload is None or not nanoseconds.isdigit():
            return None
        now = min(int(nanoseconds) / 1e9, self._wall())
        kind = payload.get("hook_event_name")
        if kind in _BEGINNING:
            run.calls.begin(payload, now)
        if kind not in _COMPLETED:
            run.calls.hear(payload, now)
            return None
        mark = (str(payload.get("session_id")), str(payload.get("tool_use_id") or id))
        if mark in run.told:
            return run.told[mark]
        while len(run.told) >= _MOST_TOLD:
            del run.told[next(iter(run.told))]
        seen = run.told[mark] = self._look(run, payload, now)
        return seen

    def _look(self, run: _Run, payload: dict[str, Any], now: float) -> Effects | None:
        window = run.calls.end(payload, now)
        if window.start is None:
            return None
        self._settle()
        changes = self._watch.changes(window.start)
        if (own := named_files(payload, run.workdir)) is None:
            self._watch.forget(window.start)
        else:
            # It may run beside a command, whose the rest is.
            changes = [change for change in changes if self._watch.tree.full(change.path) in own]
        if changes and len(self._runs) > 1:
            changes = alone(changes, [other.calls for other in self._runs.values() if other is not run])
        return self._told(run, payload, window, changes)

    def _told(self, run: _Run, payload: Mapping[str, Any], window: Window, changes: list[Change]) -> Effects:
        tree = self._watch.tree
        outside = named_outside(payload, tree, self._watch.generated, window, (run.workdir, window.cwd_before))
        paths = [change.path for change in changes]
        ignored = tree_files.ignored(tree.root, [path for path in paths if not path.endswith("/")])
        generated, single = _gathered(ignored, [path for path in paths if path.endswith("/")])

        def spelled(found: Iterable[str]) -> tuple[str, ...]:
            return tuple(_spelled(tree.full(path), run.workdir) for path in found)

        deep = [path for path in outside if path.startswith(tree.root.rstrip("/") + "/")]
        kept = [each for each in changes if each.path not in ignored or each.path in single]
        changed = [each.path for each in kept if each.before and each.after]
        created = [each.path for each in kept if each.before is None and each.after]
        removed = [each.path for each in kept if each.before and each.after is None]
        return Effects(
            changed=spelled(changed[:MOST_PATHS]) + tuple(_spelled(path, run.workdir) for path in outside),
            created=spelled(created[:MOST_PATHS]),
            removed=spelled(removed[:MOST_PATHS]),
            generated=spelled([*generated, *sorted(single)][:MOST_PATHS])
            + tuple(_spelled(path, run.workdir) for path in deep),
            more=sum(max(0, len(each) - MOST_PATHS) for each in (changed, created, removed)),
            exit=exit_status(payload),
            cwd_before=window.cwd_before,
        )


def _gathered(ignored: Iterable[str], trees: list[str]) -> tuple[list[str], frozenset[str]]:
    """Ignored files → folders in which there are many (with a ``/``), and those that stand for themselves."""
    folders: dict[str, list[str]] = {}
    for path in ignored:
        folders.setdefault(path.rpartition("/")[0], []).append(path)
    many = [folder for folder, files in folders.items() if folder and len(files) > _MOST_IN_FOLDER]
    single = [path for folder, files in folders.items() if folder not in many for path in files]
    return sorted({*trees, *(f"{folder}/" for folder in many)}), frozenset(single)


def _spelled(full: str, workdir: str) -> str:
    """As a reader of the spool spells it; a name that is no text is made one."""
    if full.startswith(workdir.rstrip("/") + "/"):
        full = full[len(workdir.rstrip("/")) + 1 :]
    return full.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def run(root: str, left_out: tuple[str, ...], orders: int) -> int:
    """Be the looker of a tree until the pipe ends.

    Args:
        root: the work tree.
        left_out: folders that are no part of it.
        orders: the pipe of the process that started it.
    """
    try:
        watch = TreeWatch(Tree(root, left_out))
    except TreeTooLargeError as error:
        sys.stderr.write(f"effects are not looked at: {error}\n")
        while os.read(orders, 65536):  # until the pipe ends: a successor would find the same
            pass
        return 0
    Looker(watch, orders).serve()
    return 0
