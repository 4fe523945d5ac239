"""What a sentence says of one thing that it names: that it is forbidden, allowed, or asked for.

The nearest word that rules the thing counts. Where a sentence only prefers, or hangs on a condition that nobody can look
up, it says nothing that holds: no rule is better than a wrong one.
"""

from __future__ import annotations

import re
from typing import Literal

Polarity = Literal["forbids", "allows", "asks"]
FORBIDS: Polarity = "forbids"
ALLOWS: Polarity = "allows"
ASKS: Polarity = "asks"

_NOT = r"(?:do(?:es)?\s+not|don['’]?t|doesn['’]?t|must\s*n(?:o|['’])t|must\s+never|should\s*n(?:o|['’])t|shall\s+not|may\s+not|can\s*not|can['’]t|never|is\s+not\s+to|are\s+not\s+to|not\s+to|nobody|no\s+one)"
# Whose negation is no prohibition of the thing, but the wish that it stays.
_SPARES = r"(?:remove|delete|drop|strip|forget|avoid|hesitate|omit|leave\s+out|rely\s+on\s+the\s+absence|be\s+afraid|miss|lose|break|replace|rename|worry)"
_SMALL = r"(?:\s+(?:the|a|an|any|all|our|your|existing|these|those|of|to|use|using|about))*\s*\W*$"
# Cues before a thing, the stronger first. Of all that match, the one that ends last counts.
_BEFORE: tuple[tuple[re.Pattern[str], Polarity | None], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), polarity)
    for pattern, polarity in (
        (rf"\bno\s+need\s+to\s+avoid\b|\b(?:need|have)\s*n(?:o|['’])t\s+(?:to\s+)?avoid\b|\bnothing\s+(?:is\s+)?(?:wrong\s+with|against)\b", ALLOWS),
        (rf"\b{_NOT}\b[^,]{{0,30}}?\b{_SPARES}\b{_SMALL}", ALLOWS),
        (rf"\bfeel\s+free\s+to\b|\b(?:you|we)\s+(?:may|can)\b(?!\s*not)|\bit['’]?s?\s+(?:is\s+)?(?:fine|ok|okay|allowed)\s+to\b|\bexceptions?\s+(?:is|are)\b", ALLOWS),
        (rf"\b(?:try|aim)\s+(?:not\s+)?to\b|\bprefer(?:ably|red|s)?\b|\bconsider\b|\bfavou?r\b|\bideally\b|\bthink\s+twice\b", None),
        (rf"\b{_NOT}\b", FORBIDS),
        (r"(?<![\w-])no\b(?!\s+(?:need|longer\s+(?:forbidden|banned)|problem|matter|rule|restriction|limit))|\bneither\b|\bnor\b|\bzero\b", FORBIDS),
        (r"\bavoid(?:s|ing)?\b|\brefrain\s+from\b|\b(?:ban|bans|forbid|forbids|prohibit|prohibits|disallow|disallows|reject|rejects)\b|\bstay\s+away\s+from\b|\bkeep\s+away\s+from\b|\bwithout\b(?=\s*`)", FORBIDS),
        (r"\binstead\s+of\b|\brather\s+than\b|\bnot\b|\bin\s+place\s+of\b|\breplac(?:e|es|ing)\b|\b(?:forbidden|banned|prohibited|disallowed|off[- ]limits|not\s+allowed)\s*:", FORBIDS),
        (r"\b(?:always|must|shall|only|please)?\s*\b(?:use|write|run|call|go\s+through|goes\s+through|take|pick|choose|import|inject|keep|add|name)\b|\bwe\s+(?:all\s+)?(?:use|write)\b|\b(?:must|shall|should)\s+(?:be|have|use|follow)\b", ASKS),
    )
)  # fmt: skip
_AFTER: tuple[tuple[re.Pattern[str], Polarity | None], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), polarity)
    for pattern, polarity in (
        (r"\b(?:is|are|was|were)\s+(?:no\s+longer|not)\s+(?:forbidden|banned|prohibited|disallowed|a\s+problem|an\s+issue)\b", ALLOWS),
        (r"\b(?:is|are)\s+(?:strictly\s+|absolutely\s+|generally\s+|also\s+)?(?:forbidden|banned|prohibited|disallowed|off[- ]limits|taboo|verboten|unwelcome|rejected|refused|out|a\s+no-go|illegal|a\s+bug|blocked|unacceptable)\b", FORBIDS),
        (r"\b(?:is|are|was)\s*(?:not|n['’]t|never)\s+(?:be\s+)?(?:\w+ly\s+)?(?:allowed|accepted|permitted|acceptable|welcome|wanted|used|ok|okay|fine|tolerated|merged|an\s+option|to\s+be|supported|for\s+us|committed|edited|changed|needed\s+and\s+not)\b", FORBIDS),
        (rf"\b(?:must|should|shall|may|can|will|do|does|wo)\s*(?:not|n['’]t|never)\s+(?:\w+ly\s+)?(?:be|appear|occur|exist|belong|happen|end\s+up|go|land|sleep|use|touch|pass|get|reach|make|stay|remain|leak)\b|\b(?:cannot|can['’]t)\s+be\b", FORBIDS),
        (r"\bnever\s+(?:be\b|appears?|allowed|used|accepted|ok|okay|acceptable|committed|belongs?|goes?|sleeps?)", FORBIDS),
        (r"\bdo(?:es)?\s*n(?:o|['’])t\s+(?:want|like|accept|allow|use|merge|need)\b|\bhas\s+no\s+place\b|\bhave\s+no\s+place\b|\bnot\s+(?:allowed|accepted|permitted|wanted)\b|\bgets?\s+rejected\b|\bfails?\s+(?:the\s+)?(?:review|ci|the\s+build)\b|\b(?:forbidden|banned|prohibited|disallowed)\b", FORBIDS),
        (r"\b(?:is|are|remains?)\s+(?:perfectly\s+|totally\s+|also\s+|now\s+|all\s+)?(?:fine|ok|okay|allowed|permitted|acceptable|welcome|encouraged|good|legal|right|normal|expected)\b|\bmay\s+be\b|\bcan\s+be\b|\ballowed\b|\bpermitted\b", ALLOWS),
        (r"\b(?:is|are)\s+(?:discouraged|frowned\s+upon|best\s+avoided|to\s+be\s+avoided)\b|\bshould\s+be\s+avoided\b|\bmust\s+be\s+avoided\b", FORBIDS),
        (r"\b(?:is|are)\s+(?:required|mandatory|the\s+(?:only|rule|standard|default))\b|\bmust\s+be\s+used\b|\bonly\b", ASKS),
    )
)  # fmt: skip
# What is to be taken out again must not stay.
_CLEARED = re.compile(
    r"^\W*(?:please\s+|always\s+)?(?:remove|delete|strip|clean\s+up|get\s+rid\s+of)\b(.*?)\b(?:before|prior\s+to|once|when\s+(?:you|done))\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(rf"(?:{_NOT}|\bno\s+longer|\bto\s+not)(?:\s+\w+ly|\s+ever)?\s*$", re.IGNORECASE)
# Where something else begins that a later cue belongs to.
_TURNS = re.compile(r"[,:(]\s*(?:never|not|no|but|use|instead|rather|and\s+never|write|prefer|always)\b|\bnever\s+`", re.IGNORECASE)
# Weak all the same, wherever it stands.
_HEDGED = re.compile(
    r"\b(?:where(?:ver)?\s+(?:possible|practical|you\s+can)|if\s+(?:possible|you\s+can)|when(?:ever)?\s+possible|usually|generally|as\s+a\s+rule\s+of\s+thumb|in\s+most\s+cases|mostly|should\s+rarely|sparingly|too\s+(?:many|much|long|big|large)|(?:long|large|big|huge|complex|clever)\s+\w+)\b",
    re.IGNORECASE,
)
_LABELS: tuple[tuple[re.Pattern[str], Polarity | None], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), polarity)
    for pattern, polarity in (
        (r"\bdos?\s*(?:and|&|/|,)\s*don['’]?t", None),
        (r"^\W*(?:❌|🚫|⛔|✗|✘|🛑|👎|❎)", FORBIDS),
        (r"^\W*(?:✅|✔|☑|👍|✓|🟢)", ALLOWS),
        (r"\bnot\s+(?:forbidden|banned|prohibited)\b", ALLOWS),
        (r"\b(?:never|don['’]?ts?|do\s+not|must\s+not|should\s+not|avoid|forbidden|banned|prohibited|disallowed|not\s+allowed|not\s+accepted|not\s+permitted|no-?gos?|off[- ]limits|instead\s+of|out\s+of\s+bounds|anti-?patterns?|things\s+we\s+don['’]?t|bad|wrong|rejected|hard\s+no|what\s+not\s+to)\b", FORBIDS),
        (r"\b(?:fine|ok|okay|allowed|permitted|acceptable|welcome|optional|exceptions?|good|do|dos|use|prefer(?:red)?|always|instead|recommended)\b", ALLOWS),
    )
)  # fmt: skip


_SIGNS = re.compile(r"^\W*?(?:(❌|🚫|⛔|✗|✘|🛑|👎|❎)|(✅|✔|☑|👍|✓|🟢))")


def of_sign(text: str) -> Polarity | None:
    """What a sign at the beginning of a text says of it."""
    found = _SIGNS.match(text)
    return None if found is None else FORBIDS if found[1] else ALLOWS


def of_label(text: str) -> Polarity | None:
    """What a heading, a column's head, a label or a sign says of what stands below or behind it."""
    text = text.strip()
    if not text or len(text) > 60:
        return None
    return next((polarity for pattern, polarity in _LABELS if pattern.search(text)), None)


def hedged(text: str) -> bool:
    """Whether a sentence leaves it to the reader."""
    return _HEDGED.search(text) is not None


def polarity_of(text: str, start: int, end: int, around: Polarity | None = None) -> Polarity | None:
    """What a sentence says of the thing that stands at ``start`` to ``end``.

    Args:
        text: the sentence, with what is in backquotes blanked if it is not the thing itself.
        start, end: where it names the thing; the words that name it may hold the cue themselves.
        around: what stands above the sentence, where it has no word of its own.
    """
    if hedged(text):
        return None
    if (cleared := _CLEARED.match(text)) and start < cleared.end(1):
        return FORBIDS
    before, after = text[:start], text[end:]
    if turn := _TURNS.search(after):
        after = after[: turn.start()]
    best: tuple[int, int, Polarity | None] | None = None
    for rank, (pattern, polarity) in enumerate(_BEFORE):
        for found in pattern.finditer(before + " "):
            told = FORBIDS if polarity == ASKS and _NEGATED.search(before[: found.start()]) else polarity
            place = (found.end(), -rank, told)
            if best is None or place[:2] > best[:2]:
                best = place
    behind = None
    for rank, (pattern, polarity) in enumerate(_AFTER):
        if found := pattern.search(after):
            place = (-found.start(), -rank, polarity)
            if behind is None or place[:2] > behind[:2]:
                behind = place
    if best is not None and (best[2] != ASKS or behind is None):
        return best[2]
    if behind is not None:
        return behind[2]
    return around
