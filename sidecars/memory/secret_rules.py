"""Recognising keys, tokens and passwords, so that no memory ever holds one.

A memory is read into every later session and travels with the project's state, so one that holds a secret is refused
whole rather than masked. The forms are those that the issuers document (prefix and alphabet of their tokens): a new one
is one line here and one in ``tests/memory/test_secret_rules.py``, which holds each line to a sample. Beside them stand
passwords named as such, and long random runs that nobody would write by hand. A false alarm costs the agent one
rewording; a miss leaks. Commit hashes, UUIDs, paths and identifiers are no secrets.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache

# Kind → form. Lengths are lower bounds where issuers have changed them over the years.
ISSUED = (
    ("private key", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"),
    ("Anthropic key", r"\bsk-ant-[\w-]{16,}"),
    ("OpenAI key", r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9][\w-]{19,}"),
    ("AWS access key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    ("GitHub token", r"\b(?:gh[opusr]_[A-Za-z0-9]{30,}|github_pat_\w{22,})"),
    ("GitLab token", r"\bgl(?:pat|ptt|rt|dt|oas|cbt|imt|soat)-[\w.=-]{20,}"),
    ("Slack token", r"\b(?:xox[abeoprs]|xapp)-[\w-]{10,}"),
    ("Slack webhook", r"hooks\.slack\.com/(?:services|workflows)/[\w/+]{20,}"),
    ("Google key", r"\bAIza[\w-]{35}|\bya29\.[\w-]{20,}|\bGOCSPX-[\w-]{20,}"),
    ("Stripe key", r"\b(?:[sr]k_(?:live|test|prod)_|whsec_)[A-Za-z0-9]{10,}"),
    ("npm token", r"\bnpm_[A-Za-z0-9]{36}"),
    ("PyPI token", r"\bpypi-[\w-]{30,}"),
    ("Hugging Face token", r"\bhf_[A-Za-z0-9]{30,}"),
    ("SendGrid key", r"\bSG\.[\w-]{16,}\.[\w-]{16,}"),
    ("DigitalOcean token", r"\bdo[opr]_v1_[a-f0-9]{64}"),
    ("Databricks token", r"\bdapi[a-f0-9]{32}"),
    ("Telegram bot token", r"\b\d{8,10}:AA[\w-]{32,}"),
    ("Vault token", r"\bhv[sbr]\.[\w-]{24,}"),
    ("age key", r"\bAGE-SECRET-KEY-1[A-Z0-9]{58}"),
    ("Azure storage key", r"\bAccountKey=[A-Za-z0-9+/]{40,}={0,2}"),
    ("Azure signature", r"[?&]sig=[\w%+/-]{40,}={0,2}"),
    ("Azure client secret", r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}"),
    ("Google refresh token", r"\b1//0[\w-]{40,}"),
    ("Alibaba access key", r"\bLTAI[A-Za-z0-9]{12,24}\b"),
    ("Yandex key", r"\bAQVN[\w-]{35,}"),
    ("Twilio key", r"\bSK[0-9a-f]{32}\b"),
    ("Mailgun key", r"\bkey-[0-9a-f]{32}\b"),
    ("Mailchimp key", r"\b[0-9a-f]{32}-us\d{1,2}\b"),
    ("Discord token", r"\b[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}"),
    ("Discord webhook", r"discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20,}"),
    ("Teams webhook", r"webhook\.office\.com/webhookb2/\S+/IncomingWebhook/[0-9a-f]{32}"),
    ("Shopify token", r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    ("Square token", r"\b(?:sq0(?:atp|csp|idp)-[\w-]{22,}|EAAA[\w-]{56,})"),
    ("Dropbox token", r"\bsl\.(?:u\.)?[\w-]{60,}"),
    ("Linear key", r"\blin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    ("Notion token", r"\b(?:secret|ntn)_[A-Za-z0-9]{40,}"),
    ("Atlassian token", r"\bAT(?:ATT3|CTT3|BB)[\w=-]{20,}"),
    ("Postman key", r"\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    ("New Relic key", r"\bNR(?:AK|JS|II|RA)-[A-Za-z0-9_-]{19,}"),
    ("Sentry token", r"\bsntry[su]_[\w=+/-]{40,}"),
    ("Grafana token", r"\bgl(?:sa|c)_[\w=+/-]{32,}"),
    ("Datadog key", r"\bDD_(?:API|APP|APPLICATION)_KEY\s*[=:]\s*[a-f0-9]{32,40}"),
    ("Doppler token", r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{40,}"),
    ("Pulumi token", r"\bpul-[a-f0-9]{40}"),
    ("Terraform token", r"\b[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,}"),
    ("Docker token", r"\bdckr_(?:pat|oat)_[\w-]{27,}"),
    ("RubyGems key", r"\brubygems_[a-f0-9]{48}"),
    ("crates.io token", r"\bcio[A-Za-z0-9]{32}\b"),
    ("Groq key", r"\bgsk_[A-Za-z0-9]{40,}"),
    ("Replicate token", r"\br8_[A-Za-z0-9]{37,}"),
    ("Perplexity key", r"\bpplx-[A-Za-z0-9]{40,}"),
    ("xAI key", r"\bxai-[A-Za-z0-9]{60,}"),
    ("Supabase token", r"\bsb(?:p|_secret)_[\w-]{20,}"),
    ("PlanetScale token", r"\bpscale_(?:tkn|pw|oauth)_[\w=.-]{32,}"),
    ("Figma token", r"\bfig[dou]r?_[\w-]{40,}"),
    ("Airtable token", r"\bpat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    ("Heroku key", r"\bHRKU-[\w-]{30,}"),
    ("Netlify token", r"\bnf[pcou]_[A-Za-z0-9]{36,}"),
    ("Tailscale key", r"\btskey-(?:auth|api|client|scim|webhook)-[\w-]{16,}"),
    ("Fly.io token", r"\b(?:fo1_[\w-]{43}|fm[12][ar]?_[\w+/=-]{60,})"),
    ("Buildkite token", r"\bbk(?:ua|pi)_[a-f0-9]{40}"),
    ("1Password token", r"\bops_eyJ[\w-]{40,}"),
    ("PuTTY key", r"\bPuTTY-User-Key-File-\d"),
    ("npm token", r"_authToken=(?!\$)\S{16,}"),
    ("JSON web token", r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*"),
)
_URL_PASSWORD = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@]*:([^\s/@]+)@", re.IGNORECASE)
_AUTHORIZATION = re.compile(r"\b(?:bearer|basic|token)\s+([A-Za-z0-9+/._~=-]{16,})", re.IGNORECASE)
# English, and the word for it in some other languages.
_WORD = (
    r"(?:pass(?:word|wd|wort|phrase|code)?|pwd|kennwort|contraseña|mot de passe|senha|secret|token|credentials?"
    r"|(?:api|access|secret|private|auth|signing|encryption)[ _-]?key)"
)
_NAMED = re.compile(
    _WORD + r"\w{0,20}[\"'`]?\s*(?:=>|:=|[=:]|\b(?:is|was|to|ist|est|es)\b|\bé\b)\s*([\"'`]?)(?P<value>[^\s\"'`,;]+)",
    re.IGNORECASE,
)
# Without a word in between only what is surely chosen: "password hunter2", not "password reset" or "token v2".
_BESIDE = re.compile(r"\b(?:password|passwd|passwort|pwd|passphrase)\s+[\"'`]?(?P<value>[^\s\"'`,;]+)", re.IGNORECASE)
_ALGORITHM = re.compile(
    r"(?:base|sha|md|aes|utf|hmac|rsa|ed|argon|pbkdf|bcrypt|oauth|http|ipv|win|x)-?\d.*", re.IGNORECASE
)
# Where programs take a password in their arguments.
_ARGUMENT = re.compile(
    r"(?:--(?:password|passwd|pass|token|secret|api-key)[= ]|\bsshpass -p ?|\bmysql\b[^|;]* -p(?=\S)"
    r"|\b(?:curl|wget|http)\b[^|;]* (?:-u|--user)[= ]?[\w.@-]+:)[\"'`]?(?P<value>[^\s\"'`]+)"
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
    for kind, form in _issued():
        if form.search(text):
            return kind
    return _named_secret(text)


@cache
def _issued() -> tuple[tuple[str, re.Pattern[str]], ...]:
    # Not at the import: to read many forms takes longer than a command of ours may.
    return tuple((kind, re.compile(form)) for kind, form in ISSUED)


def _named_secret(text: str) -> str:
    for match in _URL_PASSWORD.finditer(text):
        if not _REFERENCE.fullmatch(match[1]):
            return "password in a URL"
    if any(_is_random(match[1]) for match in _AUTHORIZATION.finditer(text)):
        return "authorization header"
    named = (match["value"].rstrip(".!?)") for match in _NAMED.finditer(text))
    beside = (match["value"].rstrip(".!?)") for match in _BESIDE.finditer(text))
    if any(map(_looks_chosen, named)) or any(
        _looks_chosen(value) and not _ALGORITHM.fullmatch(value) for value in beside
    ):
        return "password or token"
    if any(not _REFERENCE.fullmatch(match["value"]) for match in _ARGUMENT.finditer(text)):
        return "password in a command"
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
