"""A stand-in for a client under chaos: ``python -S -I agent.py FACTS AWKWARD KIND LIFE STEP``.

It starts one awkward tree of processes below itself, then takes a step each STEP seconds: it runs the hook of a
finished tool call as a client does and writes down what it was told. What it knows of itself goes to FACTS, outside of
the town: ``RUN.record`` (its processes, one a line), ``RUN.heard`` (the numbers of the nudges that reached it, one a
line) and ``RUN.jsonl`` (its transcript).
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any

FACTS, AWKWARD, KIND, LIFE = sys.argv[1:5]
STEP = float(sys.argv[5])
RUN = os.environ["GT_RUN"]
END = time.monotonic() + float(LIFE)
HOOK_SECONDS = 60


def append(name: str, text: str) -> None:
    file = os.open(f"{FACTS}/{RUN}.{name}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, text.encode())
    os.close(file)


def now() -> str:
    seconds = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1e6):06d}Z"


def record_self() -> None:
    with open("/proc/self/stat", "rb") as file:
        ticks = file.read().rpartition(b")")[2].split()[19].decode()
    append("record", f"{os.getpid()} {ticks}\n")


def hooks_of(settings: dict[str, Any], event: str) -> list[dict[str, Any]]:
    return [each for entry in settings.get("hooks", {}).get(event, []) for each in entry["hooks"]]


def fire(settings: dict[str, Any], event: str, **payload: object) -> None:
    whole = {"session_id": RUN, "transcript_path": f"{FACTS}/{RUN}.jsonl", "cwd": os.getcwd(), "hook_event_name": event}
    for handler in hooks_of(settings, event):
        argv = [handler["command"], *handler["args"]] if "args" in handler else ["sh", "-c", handler["command"]]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as hook:
            try:
                output, _ = hook.communicate(json.dumps({**whole, **payload}).encode(), timeout=HOOK_SECONDS)
            except subprocess.TimeoutExpired:
                append("trouble", f"{event}: the hook did not end within {HOOK_SECONDS} s\n")
                hook.kill()
                continue
        # As a client does: what a hook said that did not end well counts for nothing.
        if hook.returncode == 0 and output.strip():
            take(event, json.loads(output))


def take(event: str, said: dict[str, Any]) -> None:
    added = said.get("hookSpecificOutput", {}).get("additionalContext", "")
    numbers = re.findall(r"chaos nudge (\d+)", added)
    if numbers:
        append("heard", "".join(f"{number}\n" for number in numbers))
    if added:
        kept = {"type": "hook_additional_context", "content": [added], "hookEvent": event}
        append("jsonl", json.dumps({"type": "attachment", "timestamp": now(), "attachment": kept}) + "\n")


def main() -> None:
    # Before anything else can be blocked or changed: no test leaves this behind for ever.
    signal.setitimer(signal.ITIMER_REAL, float(LIFE))
    record_self()
    with open(os.environ["GT_WITNESS_SETTINGS"]) as file:
        settings = json.load(file)
    # Never waited for: what becomes of it is the awkward thing.
    subprocess.Popen([sys.executable, "-S", "-I", AWKWARD, KIND, f"{FACTS}/{RUN}.record", LIFE])
    calls = 0
    while time.monotonic() < END:
        calls += 1
        command = {"command": f"echo {calls}"}
        fire(
            settings, "PostToolUse", tool_name="Bash", tool_input=command, tool_use_id=f"call-{calls}",
            tool_response={"stdout": str(calls)},
        )  # fmt: skip
        append("jsonl", json.dumps({"type": "assistant", "timestamp": now(), "message": {"content": []}}) + "\n")
        time.sleep(STEP)


main()
