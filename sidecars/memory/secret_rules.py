"""Recognising keys, tokens and passwords, so that no memory ever holds one.

A memory is read into every later session and travels with the project's state, so one that holds a secret is refused
whole rather than masked. The forms are those that the issuers document (prefix and alphabet of their tokens); beside
them stand passwords named as such, and long random runs that nobody would write by hand. A false alarm costs the agent
one rewording; a miss leaks. Commit hashes, UUIDs, paths and identifiers are no secrets.
"""

from __future__ import annotations

import math
import re
from collections import Counter

# Kind → form. Lengths are lower bounds where issuers have changed them over the years.
_ISSUED = (
    ("private key", re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")),
    ("Anthropic key", re.compile(r"\bsk-ant-[\w-]{16,}")),
    ("OpenAI key", re.compile(r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9][\w-]{19,}")),
    ("AWS access key", re.compile(r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b")),
    ("GitHub token", re.compile(r"\b(?:gh[opusr]_[A-Za-z0-9]{30,}|github_pat_\w{22,})")),
    ("GitLab token", re.compile(r"\bgl(?:pat|ptt|rt|dt|oas|cbt|imt|soat)-[\w.=-]{20,}")),
    ("Slack token", re.compile(r"\b(?:xox[abeoprs]|xapp)-[\w-]{10,}")),
    ("Slack webhook", re.compile(r"hooks\.slack\.com/(?:services|workflows)/[\w/+]{20,}")),
    ("Google key", re.compile(r"\bAIza[\w-]{35}|\bya29\.[\w-]{20,}|\bGOCSPX-[\w-]{20,}")),
    ("Stripe key", re.compile(r"\b(?:[sr]k_(?:live|test|prod)_|whsec_)[A-Za-z0-9]{10,}")),
    ("npm token", re.compile(r"\bnpm_[A-Za-z0-9]{36}")),
    ("PyPI token", re.compile(r"\bpypi-[\w-]{30,}")),
    ("Hugging Face token", re.compile(r"\bhf_[A-Za-z0-9]{30,}")),
    ("SendGrid key", re.compile(r"\bSG\.[\w-]{16,}\.[\w-]{16,}")),
    ("DigitalOcean token", re.compile(r"\bdo[opr]_v1_[a-f0-9]{64}")),
    ("Databricks token", re.compile(r"\bdapi[a-f0-9]{32}")),
    ("Telegram bot token", re.compile(r"\b\d{8,10}:AA[\w-]{32,}")),
    ("Vault token", re.compile(r"\bhv[sbr]\.[\w-]{24,}")),
    ("age key", re.compile(r"\bAGE-SECRET-KEY-1[A-Z0-9]{58}")),
    ("Azure storage key", re.compile(r"\bAccountKey=[A-Za-z0-9+/]{40,}={0,2}")),
    ("JSON web token", re.compile(r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*")),
)
_URL_PASSWORD = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@]*:([^\s/@]+)@", re.IGNORECASE)
_AUTHORIZATION = re.compile(r"\b(?:bearer|basic|token)\s+([A-Za-z0-9+/._~=-]{16,})", re.IGNORECASE)
_NAMED = re.compile(
    r"(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|credentials?|(?:api|access|secret|private|auth)[ _-]?key)"
    r"\w{0,20}[\"'`]?\s*(?:=>|:=|[=:]|\bis\b|\bwas\b|\bto\b)\s*([\"'`]?)(?P<value>[^\s\"'`,;]+)",
    re.IGNORECASE,
)
_RUN = re.compile(r"[A-Za-z0-9+_=-]{32,}")
_HARMLESS_RUN = re.compile(r"[0-9a-f-]+|[0-9A-F-]+|[a-z_=+-]+|[A-Z_0-9=+-]+")
# Stands where the value would be: a reference to it, a mask, or a word about it.
_REFERENCE = re.compile(
    r"[$<{%\[(*].*|x+|\.{2,}.*|(?:os\.environ|process\.env|env[.:]|vault:|secret:|op://|file:|/|~|\./).*"
)

_NAMED_LENGTH = 6
_RUN_DIGITS = 4
# Bits a character; English words and identifiers of that length stay under it, random base64 lies near 5.
_RUN_ENTROPY = 4.0


def find_secret(text: str) -> str:
    """What kind of secret stands in a text.

    Returns:
        The kind (``GitHub token``), never the secret itself; empty when there is none.
    """
    for kind, form in _ISSUED:
        if form.search(text):
            return kind
    for match in _URL_PASSWORD.finditer(text):
        if not _REFERENCE.fullmatch(match[1]):
            return "password in a URL"
    if any(_is_random(match[1]) for match in _AUTHORIZATION.finditer(text)):
        return "authorization header"
    if any(_looks_chosen(match["value"].rstrip(".!?)")) for match in _NAMED.finditer(text)):
        return "password or token"
    if any(_is_long_random(match.group()) for match in _RUN.finditer(text)):
        return "long random text"
    return ""


def without_secret(text: str) -> str:
    """The text, or a word about what was left out when it holds a secret."""
    kind = find_secret(text)
    return f"[left out: it holds what looks like a secret ({kind})]" if kind else text


def _looks_chosen(value: str) -> bool:
    # "password is required", "token: string" and "API_KEY=$KEY" speak about a secret; "hunter2" and "S3cr-et" are one.
    if len(value) < _NAMED_LENGTH or _REFERENCE.fullmatch(value):
        return False
    if re.fullmatch(r"[A-Z][A-Z0-9_]*", value) or re.fullmatch(r"[\w.-]+\.[a-z]{1,5}|\d+(?:\.\d+)*\w{0,3}", value):
        return False  # the name of a variable, of a file, a number with its unit
    kinds = [any(map(test, value)) for test in (str.islower, str.isupper, str.isdigit)]
    symbols = any(not char.isalnum() and char not in "_-./:()" for char in value)
    return (kinds[2] and (kinds[0] or kinds[1])) or (symbols and any(kinds))


def _is_random(value: str) -> bool:
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and _entropy(value) >= 3.0


def _is_long_random(run: str) -> bool:
    if _HARMLESS_RUN.fullmatch(run) or sum(map(str.isdigit, run)) < _RUN_DIGITS:
        return False
    return _entropy(run) >= _RUN_ENTROPY


def _entropy(text: str) -> float:
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())
