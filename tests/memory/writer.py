"""A process that adds memories as fast as it can and says after each that it was told it is safe.

Arguments: project root, agent, session, how many, whether to fold after each. Each line on stdout is one acknowledged
content.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sidecars.memory.store import MemoryStore


def main() -> None:
    root, agent, session, count, fold = sys.argv[1:]
    store = MemoryStore(Path(root), wait=50)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(count)):
        content = f"{session} learned fact {number}"
        # Five a session is the rule, so each fifth fact begins another.
        store.change(agent, "add", f"{session}-{number // 5}", {"content": content})
        print(content, flush=True)
        if fold == "fold":
            store.fold(agent)


if __name__ == "__main__":
    main()
