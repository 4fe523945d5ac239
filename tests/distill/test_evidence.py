"""A quote stands where it is said to stand, or is moved there, or is called unverified."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from sidecars.distill import evidence as evidence_module
from sidecars.distill import text as text_module
from sidecars.distill.answer import Claim
from sidecars.distill.evidence import Checked, Checker, Quote
from sidecars.distill.text import shown
from sidecars.distill.text_pool import TextPool

Shelved = Callable[..., TextPool]
LOG = b"".join(b"line %d says %d\n" % (number, number * 7) for number in range(1, 201))


def check(shelf: TextPool, quote: str, locator: str, path: str = "a.log") -> Checked:
    return Checker(shelf).check(Claim(path, locator, quote, "why"))


def test_a_quote_at_its_place_is_verified(shelved: Shelved) -> None:
    found = check(shelved(a_log=LOG), "line 12 says 84", "L12")
    assert found.evidence.verified
    assert (found.evidence.locator, found.gap) == ("L12", "")
    assert found.evidence.path.endswith("shelf/a.log")


@pytest.mark.parametrize("locator", ["L18", "L6", "L9999", "L1-L3", "nonsense", "", "/a/b"])
def test_a_right_quote_with_a_wrong_place_is_moved(shelved: Shelved, locator: str) -> None:
    found = check(shelved(a_log=LOG), "line 12 says 84", locator)
    assert found.evidence.verified
    assert found.evidence.locator == "L12"


def test_an_invented_quote_is_unverified_and_said(shelved: Shelved) -> None:
    found = check(shelved(a_log=LOG), "line 12 says 85", "L12")
    assert not found.evidence.verified
    assert "nowhere" in found.gap


def test_a_quote_that_exists_by_half_is_unverified(shelved: Shelved) -> None:
    found = check(shelved(a_log=LOG), "line 12 says 84 and the build was green", "L12")
    assert not found.evidence.verified


def test_a_quote_that_stands_in_several_places_is_not_moved_to_any(shelved: Shelved) -> None:
    found = check(shelved(a_log=LOG + b"retry failed\n" * 3), "retry failed", "L5")
    assert not found.evidence.verified
    assert "L201, L202, L203" in found.gap


def test_a_short_quote_is_not_looked_for(shelved: Shelved) -> None:
    shelf = shelved(a_log=LOG)
    assert check(shelf, "84", "L12").evidence.verified
    assert not check(shelf, "84", "L13").evidence.verified


@pytest.mark.parametrize("quote", ["", "   ", "\n", "\ufffd\ufffd"])
def test_no_quote_is_no_evidence(shelved: Shelved, quote: str) -> None:
    assert not check(shelved(a_log=LOG + b"\xff\xff\n"), quote, "L12").evidence.verified


def test_a_place_as_wide_as_the_file_is_narrowed(shelved: Shelved) -> None:
    assert check(shelved(a_log=LOG), "line 12 says 84", "L1-L200").evidence.locator == "L12"
    assert check(shelved(a_log=LOG), "line 12 says 84", "L10-L14").evidence.locator == "L10-L14"


def test_a_place_beyond_the_end_is_brought_back(shelved: Shelved) -> None:
    assert check(shelved(a_log=LOG), "line 200 says 1400", "L199-L230").evidence.locator == "L199-L200"


def test_colours_tabs_and_line_ends_are_no_part_of_a_quote(shelved: Shelved) -> None:
    shelf = shelved(a_log=b"x\n\x1b[31mFA\x1b[1mIL\x1b[0m:\tgot  3,\r\n  wanted 4\r\n")
    found = check(shelf, "FAIL: got 3, wanted 4", "L2-L3")
    assert found.evidence.verified
    assert check(shelf, "FAIL: got 3,\nwanted 4", "L9").evidence.locator == "L2-L3"


def test_bytes_that_are_no_text_match_as_they_were_shown(shelved: Shelved) -> None:
    raw = b"bad \xc3\x28\xff value\n"
    assert check(shelved(a_log=b"x\n" + raw), shown(raw), "L7").evidence.locator == "L2"


@pytest.mark.timeout(20)
def test_no_quote_makes_the_search_hang(shelved: Shelved) -> None:
    shelf = shelved(a_log="é".encode() * 50_000 + b" " * 200_000 + b"\xff" * 50_000)
    for quote in ("\ufffdé" * 300 + "x", "\ufffd" * 900 + "x", "é " * 300 + "x", "\ufffd \ufffd " * 200 + "x"):
        assert not check(shelf, quote, "L1").evidence.verified


def test_no_quote_is_a_pattern(shelved: Shelved) -> None:
    shelf = shelved(a_log=b"plain\n" + b"call f(a[0])* + $x ^ y | z\n")
    assert check(shelf, "call f(a[0])* + $x ^ y | z", "L1").evidence.locator == "L2"
    assert not check(shelf, "pl.*n text", "L1").evidence.verified


def test_a_path_outside_is_unverified(shelved: Shelved) -> None:
    shelf = shelved(a_log=LOG, b_log=b"other\n")
    for path in ("/etc/passwd", "../secret", "c.log"):
        found = check(shelf, "line 12 says 84", "L12", path)
        assert not found.evidence.verified
        assert "outside" in found.gap


def test_with_one_artifact_its_bare_name_will_do_and_no_other(shelved: Shelved) -> None:
    shelf = shelved(a_log=LOG)
    assert check(shelf, "line 12 says 84", "L12", "").evidence.verified
    assert check(shelf, "line 12 says 84", "L12", "/elsewhere/a.log").evidence.verified
    assert not check(shelf, "line 12 says 84", "L12", "/etc/passwd").evidence.verified


def test_json_pointers_are_checked_and_given(shelved: Shelved) -> None:
    document = {"cases": [{"name": "one", "ok": True}, {"name": "two", "ok": False, "why": "no such file: x"}]}
    shelf = shelved(a_json=json.dumps(document).encode())
    assert check(shelf, "no such file: x", "/cases/1/why", "a.json").evidence.verified
    moved = check(shelf, "no such file: x", "/cases/0/why", "a.json")
    assert moved.evidence.verified
    assert moved.evidence.locator == "/cases/1/why"
    assert check(shelf, "no such file: x", "L1", "a.json").evidence.locator == "L1"
    assert not check(shelf, "no such file: y", "/cases/1/why", "a.json").evidence.verified


def test_like_claims_are_one(shelved: Shelved) -> None:
    claims = [Claim("a.log", "L12", "line 12 says 84"), Claim("a.log", "L13", "line 12 says 84")]
    assert len(Checker(shelved(a_log=LOG)).check_all(claims)) == 1


PRINTABLE = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Z"]), min_size=1, max_size=12)


@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.lists(PRINTABLE, min_size=3, max_size=40),
    blanks=st.lists(
        st.sampled_from([" ", "\t", "  ", "\n", "\r\n", " \x1b[31m", "\x1b[0m "]), min_size=40, max_size=40
    ),
    cut=st.tuples(st.integers(0, 39), st.integers(1, 10)),
    said=st.integers(1, 60),
)
def test_any_run_of_words_that_was_shown_is_found_wherever_it_is_said_to_be(
    shelved: Shelved,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    blanks: list[str],
    cut: tuple[int, int],
    said: int,
) -> None:
    for module in (text_module, evidence_module):
        monkeypatch.setattr(module, "PIECE", 32)
    monkeypatch.setattr(evidence_module, "SLACK", 64)
    chosen = words[cut[0] % len(words) :][: cut[1]]
    quote = " ".join(chosen)
    assume(len("".join(chosen)) >= 6)
    raw = "x" + "".join(word + blank for word, blank in zip(words, blanks, strict=False))
    plain = " ".join(shown(raw.encode()).split())
    # Once, also where it overlaps itself.
    assume(sum(plain.startswith(quote, at) for at in range(len(plain))) == 1)
    found = check(shelved(a_log=raw.encode()), quote, f"L{said}")
    assert found.evidence.verified
    first, _, last = found.evidence.locator.replace("L", "").partition("-")
    lines = raw.encode().split(b"\n")[int(first) - 1 : int(last or first)]
    assert quote in " ".join(shown(b"\n".join(lines)).split())
    assert not check(shelved(a_log=raw.encode()), quote + "⁂nothing of that kind", f"L{said}").evidence.verified


@settings(deadline=None, max_examples=150)
@given(st.text(min_size=1, max_size=200))
def test_any_text_makes_a_pattern(quote: str) -> None:
    Quote(quote)
