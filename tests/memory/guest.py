"""An agent that takes part in a party as a real one is told to: it fetches turns, answers, and says when it is done.

What it answers follows from the keys that the turn lists. Arguments: after how many answers to die without a word
(0: never).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys


def _gt(*arguments: str, stdin: str = "") -> str:
    argv = [sys.executable, "-m", "witness.cli", *arguments]
    return subprocess.run(argv, input=stdin, capture_output=True, text=True, check=True).stdout


def main() -> None:
    me, dies_after, answers = os.environ["GT_PARTY_AGENT"], int(sys.argv[1]), 0
    told = _gt("party", "turn")
    while "The party is over" not in told:
        if "Not your turn" in told:
            told = _gt("party", "turn")
            continue
        keys = {line.split(":")[0].strip() for line in told.rpartition("Keys:")[2].splitlines()}
        if "decision" in keys:
            answer = {
                "decision": "One repository.",
                "rationale": "Simpler.",
                "confidence": 0.8,
                "dissent": "",
                "outcome": "proponent",
            }
        elif "memories" in keys:
            memory = {
                "type": "context",
                "basis": "explicit",
                "content": f"{me} was there",
                "evidence": "speaks in turn",
            }
            answer = {"memories": [memory], "used": []}
        else:
            answer = {"content": f"{me} speaks in turn."}
        answers += 1
        if dies_after and answers > dies_after:
            os._exit(1)
        told = _gt("party", "answer", stdin=json.dumps(answer))
    _gt("done")
    sys.stdin.read()


if __name__ == "__main__":
    main()
