"""How agents and sidecars are asked to write, and the check that cuts what breaks them.

Result first, the fewest words, no filler, no politeness, no emoji: the rules of the agent-memory template.
``STYLE_BLOCK`` asks for it in every prompt; ``trim`` makes sure of it in everything that is injected, without a model.
"""

from __future__ import annotations

import re

STYLE_BLOCK = """\
Style:
- Result first. Then only what is needed to act on it.
- Fewest words. One word beats ten.
- No filler, no preamble, no recap, no politeness.
- No explanation that nobody asked for.
- No emoji unless asked.
- Stop when done."""

# The contract for injected text: one or two sentences, at most this many characters.
INJECTION_LIMIT = 600

# Words that people put before what they have to say. These are words of ordinary sentences as well ("so far", "right
# click", "let me fail loudly is rule 3"), so only a mark after them shows that they were said for their own sake.
_ALONE = (
    r"(?:hi|hello|hey|greetings)(?: there| again| all| team| everyone)?",
    r"oh|ah|well|so|okay|ok|alright|right",
    r"sure(?: thing)?|certainly|absolutely|definitely|of course|no problem|understood|got it|sounds good",
    r"(?:great|good|excellent|nice|fantastic|interesting) (?:question|point|catch|idea|work|job|progress)",
    r"(?:thanks|thank you)(?: so much| very much| a lot)?(?: for [^.!?,:\n]{1,60})?",
    r"sorry(?: to (?:bother|interrupt)(?: you)?| for (?:the|any) [^.!?,:\n]{1,40})?",
    r"(?:(?:i'?m|i am|i'?d be|i would be) )?(?:happy|glad|pleased|delighted) to (?:help|assist)(?: [^.!?,:\n]{1,30})?",
    r"i hope (?:this|that|you)[^.!?,:\n]{0,60}",
    r"as an ai(?: language)?(?: model| assistant)?",
    r"(?:just )?(?:a )?(?:(?:quick|friendly|gentle|small|kind) )*(?:reminder|heads[- ]?up|note|fyi)",
    r"in (?:short|summary|conclusion)|to (?:summarize|summarise|recap|sum up)|basically|essentially|obviously|clearly",
    r"here(?:'s| is| are) (?:the|a|an|some|what|your) [^.!?,:\n]{0,40}(?=:)",
    r"let me (?:explain|clarify|check|see|think|take a look|start|begin|walk you through|help)[^.!?,:\n]{0,40}",
)
# These carry on into the fact itself, with or without a mark. Hedges ("it looks like") are no filler: without them an
# unsure statement would be a sure one.
_LEADING = (
    r"(?:just )?(?:a )?(?:(?:quick|friendly|gentle|small|kind) )*(?:reminder|heads[- ]?up|note) that",
    r"just (?:so you know|to let you know|letting you know|wanted to (?:say|mention|note|let you know))(?: that)?",
    r"(?:please )?(?:kindly )?(?:note|be aware|be advised|keep in mind|bear in mind|remember),? that",
    r"(?:i|we)(?: just)? (?:wanted|would like|want) to (?:say|mention|note|let you know)(?: that)?",
    r"(?:i|we)(?:'d like|'d just like) to (?:say|mention|note|let you know)(?: that)?",
    r"(?:(?:i|we)(?: just| would like|'d like)? want(?:ed)? to|just wanted to) (?:flag|point out|highlight|share) that",
    r"(?:i|we)(?: have|'ve)?(?: just)? (?:noticed|noted|observed|see|saw) that",
    r"it(?: is|'s) (?:worth|important|useful) (?:noting|mentioning|to note|to mention|to remember)(?: that)?",
    r"please(?: kindly| just)?",
)
_MARK = r"\s*(?:[,.!:;\u2013\u2014-]+(?=\s|$)\s*)"
_OPENING = re.compile(
    rf"(?:(?:{'|'.join(_ALONE)})(?:{_MARK}|\s*$)|(?:{'|'.join(_LEADING)})(?:{_MARK}|\s+|$))", re.IGNORECASE
)
_CLOSINGS = re.compile(
    r"(?:^|(?<=[.!?:;]))\s*(?:"
    r"(?:i )?hope (?:this|that|it) helps"
    r"|(?:please )?(?:just )?let me know if [^.!?\n]*"
    r"|(?:please )?(?:do not|don'?t) hesitate to [^.!?\n]*"
    r"|(?:please )?feel free to (?:ask|reach out|let me know)[^.!?\n]*"
    r"|(?:many )?thanks(?: in advance| again| a lot)?|thank you(?: very much| in advance| again)?"
    r"|happy (?:coding|hacking|to help)[^.!?\n]*"
    r"|(?:keep up the |great |good |nice )+(?:work|job)"
    r"|good luck|cheers|have a (?:great|nice|good) [^.!?\n]*"
    r"|is there anything else[^.!?\n]*"
    r")\s*[.!?]*\s*$",
    re.IGNORECASE,
)
# Pictographs only. Ticks, arrows and bullets are ordinary signs of technical text and stay.
_PICTOGRAPH = (
    "\U0001f000-\U0001faff\u2600-\u26ff\u2705\u270a-\u270d\u2728\u274c\u274e"
    "\u2753-\u2755\u2757\u2763\u2764\u2795-\u2797\u2b50\u2b55"
)
_EMOJI = re.compile(rf"[^\S\n]*(?:[{_PICTOGRAPH}][\ufe0e\ufe0f\u20e3\U000e0020-\U000e007f]*\u200d?)+")
_CODE = re.compile(r"(`+[^`]*`+)")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
_WORD_WITHOUT_CASE = re.compile(r"[a-z]+(?=$|[\s,:])")


def trim(text: str, limit: int = INJECTION_LIMIT, *, emoji: bool = False) -> str:
    """Cut filler openings and closings, emoji and over-length from a text that is about to be said.

    Nothing is added or reworded: what is left is the text's own. Code between backticks is not touched. Applying it
    twice changes nothing more.

    Args:
        text: what is to be said.
        limit: the most characters that may be left; the cut falls on the end of a sentence, else of a word.
        emoji: leave emoji in (the user asked for them).

    Returns:
        The text, or an empty string when it held nothing but filler: then nothing should be said.
    """
    text = text.strip()
    if not emoji:
        text = _without_emoji(text)
    while True:
        shorter = _shorten(_without_closing(_without_opening(text)), limit)
        if shorter == text:
            return text
        text = shorter


def _without_emoji(text: str) -> str:
    parts = _CODE.split(text)
    return "".join(part if index % 2 else _EMOJI.sub("", part) for index, part in enumerate(parts)).strip()


def _without_opening(text: str) -> str:
    while match := _OPENING.match(text):
        text = _capitalised(text[match.end() :])
    return text


def _capitalised(text: str) -> str:
    # A name from code (snake_case, a path, camelCase) must keep its spelling.
    return text[0].upper() + text[1:] if _WORD_WITHOUT_CASE.match(text) else text


def _without_closing(text: str) -> str:
    while match := _CLOSINGS.search(text):
        text = text[: match.start()].rstrip()
    return text


def _shorten(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    ends = [match.end() for match in _SENTENCE_END.finditer(text) if match.end() <= limit]
    if ends and ends[-1] >= limit // 3:
        return text[: ends[-1]]
    cut = text[: max(limit - 1, 0)]
    head, space, _ = cut.rpartition(" ")
    return ((head if space and len(head) >= limit // 2 else cut).rstrip() + "…")[: max(limit, 0)]
