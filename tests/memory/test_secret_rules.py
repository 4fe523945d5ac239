"""Secrets are recognised; what only looks or sounds like one is not."""

from __future__ import annotations

import random
import string

import pytest

from sidecars.memory.secret_rules import find_secret

_ALPHABET = string.ascii_letters + string.digits


def _random(length: int, alphabet: str = _ALPHABET) -> str:
    # Made here, so that no file of the project holds anything that a scanner would take for a key.
    return "".join(random.Random(length).choices(alphabet, k=length))  # noqa: S311


@pytest.mark.parametrize(
    "text",
    [
        "key sk-ant-" + "api03-" + _random(40),
        "sk-proj-" + _random(48),
        "AKI" + "A" + _random(16, "ABCDEFGHIJ234567"),
        "gh" + "p_" + _random(36),
        "github_" + "pat_" + _random(50),
        "glpat" + "-" + _random(20),
        "xox" + "b-123456789012-" + _random(20),
        "AIz" + "a" + _random(35),
        "sk_" + "live_" + _random(24),
        "npm" + "_" + _random(36),
        "hf" + "_" + _random(34),
        "-----BEGIN OPENSSH " + "PRIVATE KEY-----",
        "-----BEGIN " + "PRIVATE KEY-----",
        "eyJ" + _random(20) + ".eyJ" + _random(30) + "." + _random(20),
        "postgres://app:s3cretpw@db.internal/app",
        "Authorization: Bearer " + _random(32),
        "The admin password is hunter2",
        "DB_PASSWORD=Tr0ub4dor&3",
        "api key: " + _random(20),
        'set the token to "' + _random(24) + '"',
        "the value " + _random(44) + " unlocks it",
        "passphrase: correct-horse!battery",
    ],
)
def test_a_secret_is_recognised(text: str) -> None:
    assert find_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        "The password is stored in the vault.",
        "API_KEY=$ANTHROPIC_API_KEY comes from the environment",
        "token: string is the first field of the response",
        "Reads the key from GT_WITNESS_API_KEY, never from argv.",
        "password: <set by ops>",
        "Commit 3f786850e387550fdab836ed7e6dc881de23001b broke the build.",
        "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "run 6c84fb90-12c4-11e1-840d-7b25c5ee775a ended",
        "Tests live in src/components/authentication/__tests__/LoginFormWithTwoFactor.test.tsx",
        "test_the_password_reset_mail_is_sent_once_for_each_request is flaky",
        "TestHTTP2ServerHandlesManyConcurrentStreams takes 40 s",
        "Auth uses bearer tokens issued by accounts.example.com",
        "postgres://user:$PGPASSWORD@localhost/db is the form",
        "git clone https://github.com/o/r.git works without a token",
        "The token bucket is set to 100 per minute.",
        "max_tokens: 4096 is enough",
        "The secret to good naming is patience.",
        "skip-connection layers keep sk-learn happy",
        "The secret is in config/secrets.yaml",
    ],
)
def test_what_only_speaks_of_one_is_not(text: str) -> None:
    assert not find_secret(text)


def test_the_secret_itself_is_never_told() -> None:
    secret = "gh" + "p_" + _random(36)
    assert secret not in find_secret(secret)
