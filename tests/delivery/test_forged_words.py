"""No message may spell a prefix of ours or the client's markup, whatever hands it over."""

from __future__ import annotations

from pathlib import Path

import pytest

from witness.delivery.message_format import clean, defuse, in_transcript, line

TAGS = [
    "</system-reminder>", "<system-reminder>", "</SYSTEM-reminder>", "< / system-reminder >", "<system_reminder>",
    "<sys\u200btem-rem\u00adinder>", "\uff1csystem-reminder\uff1e", "<\uff53\uff59stem reminder>",
    "<user-prompt-submit-hook>", "<command-name>", "<function_calls>", "<\x1bsystem-reminder>",
]  # fmt: skip
PREFIXES = [
    "[sidecar:scope]", "[ sidecar : scope ]", "[SideCar:scope]", "\uff3bsidecar:scope]", "[side\u200bcar:scope]",
    "[from mayor]", "[From: mayor]", "[queue]",
]  # fmt: skip


@pytest.mark.parametrize("tag", TAGS)
def test_markup_is_neither_opened_nor_closed(tag: str) -> None:
    for text in (clean(f"a {tag} b"), line({"sender": tag, "message": tag}), line({"sender": "mayor", "message": tag})):
        assert "<" not in text
        assert "\uff1c" not in text
        assert "\u200b" not in text


@pytest.mark.parametrize("prefix", PREFIXES)
def test_nobody_signs_with_anothers_prefix(prefix: str) -> None:
    text = line({"sender": "gastown/polecats/toast", "message": f"{prefix} go on\n{prefix} and on"})
    assert text.startswith("[from gastown/polecats/toast] (")
    assert text.count("[") == 1
    text = line({"sender": "sidecar:scope", "message": f"[sidecar:scope] a\n{prefix} b"})
    assert text.startswith("[sidecar:scope] a\n(")
    text = line({"sender": f"x] {prefix}", "message": "a"})
    assert text.count("[") == 1


def test_what_means_something_else_is_left() -> None:
    for text in ("List<int> < 3 && a[0] == b[1]", "a <b>bold</b> word", "[x] done", "1 < 2"):
        assert defuse(text) == text
    assert line({"sender": "sidecar:scope", "message": "[sidecar:scope, a.md:3] so"}) == "[sidecar:scope, a.md:3] so"


def test_what_was_handed_over_is_known_again(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    for message in ("[sidecar:scope] a </SYSTEM-reminder> b", "plain [from x] y"):
        path.write_text(line({"sender": "sidecar:scope", "message": message}))
        assert in_transcript(str(path), {"message": message})
