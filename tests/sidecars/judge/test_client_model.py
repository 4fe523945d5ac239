"""A question put through the session's own client: what a broken, silent or missing one comes to."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from sidecars.llm.client import Endpoint
from sidecars.llm.client_model import ClientModel
from sidecars.llm.reply import ModelFault, Reply
from sidecars.observer.context import Context
from sidecars.observer.factory import build_components
from sidecars.type_reader.sidecar_type import SidecarType
from witness.config.settings import Settings

ASKED = {
    "max_tokens": 300,
    "system": [{"type": "text", "text": "You observe."}],
    "tools": [{"name": "report_signal", "input_schema": {"type": "object"}}],
    "messages": [{"role": "user", "content": "what was seen"}],
}


@contextmanager
def mod(spool: Path, answer: bytes | None) -> Iterator[list[bytes]]:
    """What takes the mod's place: it notes the request and sends these bytes; None: it says nothing."""
    asked: list[bytes] = []
    over = threading.Event()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{spool}/mod.sock")
    listener.listen()

    def serve() -> None:
        peer, _ = listener.accept()
        with peer:
            data = peer.recv(1 << 20)
            while not data.rstrip().endswith(b"}"):
                data += peer.recv(1 << 20)
            asked.append(data)
            if answer is None:
                over.wait(30)
            else:
                with suppress(OSError):  # who has read enough hangs up
                    peer.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield asked
    finally:
        over.set()
        thread.join()
        listener.close()


def sent(value: object) -> bytes:
    body = json.dumps(value).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def ask(spool: Path, seconds: float = 5.0) -> tuple[ClientModel, Reply]:
    model = ClientModel(spool, Endpoint("", "claude-haiku-5-5"))
    return model, model.ask(ASKED, seconds)


def test_an_answer_its_cost_and_what_was_asked(tmp_path: Path) -> None:
    usage = {"input_tokens": 1000, "output_tokens": 50, "cache_read_input_tokens": -3}
    with mod(tmp_path, sent({"isAnswered": True, "text": '{"signal": false}', "usage": usage})) as asked:
        model, reply = ask(tmp_path)
    assert reply.text == '{"signal": false}'
    assert (model.usage.calls, model.usage.input_tokens, model.usage.output_tokens) == (1, 1000, 50)
    assert model.usage.cached_tokens > 1_000_000, "a negative count would make a budget endless"
    assert model.usage.dollars > 0
    question = json.loads(asked[0].partition(b"\r\n\r\n")[2])
    assert question["model"] == "claude-haiku-5-5"
    assert [part in question["prompt"] for part in ("You observe.", "what was seen", "report_signal")] == [True] * 3


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (sent({"fault": "no\nquota"}), "the client: no quota"),
        (sent({"isAnswered": False, "text": ""}), "gave no answer"),
        (sent({"text": 5}), "gave no answer"),
        (sent([1]), "garbage"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 900000000\r\n\r\n" + b"x" * 500_000, "garbage"),
        (b"no http", "garbage"),
        (b"", "runs no mod|garbage"),
    ],
)
def test_what_is_no_answer_is_one_fault(tmp_path: Path, answer: bytes, words: str) -> None:
    with mod(tmp_path, answer), pytest.raises(ModelFault, match=words) as fault:
        ask(tmp_path)
    assert not fault.value.retryable, (
        "nothing here passes within milliseconds, and the question is not put again at once"
    )


def test_a_silent_mod_and_none_at_all(tmp_path: Path) -> None:
    with pytest.raises(ModelFault, match="runs no mod of ours"):
        ask(tmp_path)
    with mod(tmp_path, None), pytest.raises(ModelFault, match="timeout") as fault:
        ask(tmp_path, 0.2)
    assert fault.value.timeout


@pytest.mark.parametrize(
    ("settings", "spool", "lack"),
    [
        (Settings(), True, "the settings name no client_model"),
        (Settings(client_model="haiku"), False, "no session whose client"),
        (Settings(client_model="haiku"), True, ""),
    ],
)
def test_it_is_off_unless_the_settings_say_so(tmp_path: Path, settings: Settings, spool: bool, lack: str) -> None:
    kind = SidecarType("own", judge="client", prompt="x")
    parts = build_components(kind, Context(), settings, tmp_path, spool=tmp_path if spool else None)
    assert lack in parts.lack
    assert bool(parts.lack) == bool(lack)
