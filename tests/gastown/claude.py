"""What runs as ``claude`` in a real town's sessions: it shows a prompt, keeps what is typed, does what a test asks.

Gas Town goes by the process's name, so it takes that of the client. A test talks to it over a socket, one JSON line
each way: ``{"argv": [...], "stdin": "...", "env": {...}}`` is run as a child of this process, as hooks and tools are.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path


def main(folder: Path) -> None:
    ctypes.CDLL(None).prctl(15, b"claude", 0, 0, 0)  # PR_SET_NAME
    session = os.environ.get("GT_SESSION") or f"pid-{os.getpid()}"
    place = folder / session
    server = socket.socket(socket.AF_UNIX)
    place.with_suffix(".sock").unlink(missing_ok=True)
    server.bind(str(place.with_suffix(".sock")))
    server.listen()
    threading.Thread(target=_serve, args=(server,), daemon=True).start()
    born = place.with_suffix(".new")
    born.write_text(json.dumps({"pid": os.getpid(), "argv": sys.argv[2:], "environ": dict(os.environ)}))
    born.replace(place.with_suffix(".json"))
    print("\n❯ ", end="", flush=True)
    for line in sys.stdin:
        with place.with_suffix(".typed").open("a") as typed:
            typed.write(line)
        print("\n❯ ", end="", flush=True)


def _serve(server: socket.socket) -> None:
    while True:
        connection, _ = server.accept()
        threading.Thread(target=_answer, args=(connection,), daemon=True).start()


def _answer(connection: socket.socket) -> None:
    with connection, connection.makefile("rw") as stream:
        asked = json.loads(stream.readline())
        done = subprocess.run(
            asked["argv"], input=asked["stdin"], env={**os.environ, **asked["env"]}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        stream.write(json.dumps([done.returncode, done.stdout, done.stderr]) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
