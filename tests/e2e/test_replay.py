"""A session of the real client, replayed from its transcript: the same actions that its hooks told of."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from sidecars.observer.observe.events import EventReader
from sidecars.observer.observe.recorded import read_events, read_transcript
from tests.e2e.conftest import Session
from witness.testing import MessagesServer, say, use


def test_the_transcript_tells_what_the_hooks_told(
    session: Session, server: MessagesServer, work: Path, home: Path
) -> None:
    (work / "issue.md").write_text("---\nnot: [app.py]\n---\n")
    server.play(
        [use("Read", file_path=str(work / "app.py")), use("Bash", command="exit 3")],
        use("Edit", file_path=str(work / "app.py"), old_string="a - b", new_string="a + b"),
        use("Write", file_path=str(work / "new.py"), content="x = 1\n"),
        say("Done."),
    )
    session.headless()
    (transcript,) = home.glob(".claude/projects/*/*.jsonl")
    reader = EventReader(str(work))

    def actions(moments: list) -> list[tuple[object, ...]]:  # type: ignore[type-arg]
        seen = [reader.read(moment.payload, moment.id) for moment in moments]
        return sorted(
            (each.tool, each.failed, each.opened, each.written, each.text) for each in seen if each and not each.prompt
        )

    told, written = read_events(session.spool / "events.jsonl"), read_transcript(transcript)
    assert actions(written) == actions(told)
    assert len(actions(written)) == 4
    done = subprocess.run(
        [sys.executable, "-m", "witness.cli", "sidecar", "replay", "--transcript", str(transcript),
         "--type", "scope:issue.md", "--json"],
        capture_output=True, check=True,
    )  # fmt: skip
    said = [row["message"] for row in json.loads(done.stdout)["log"] if row["outcome"] == "injected"]
    assert [words.split(",")[0] for words in said] == [
        "[sidecar:scope] app.py was opened",
        "[sidecar:scope] app.py was changed",
    ]
