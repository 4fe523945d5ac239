"""Secrets are recognised; what only looks or sounds like one is not."""

from __future__ import annotations

import random
import string

import pytest

from sidecars.memory.secret_rules import ISSUED, find_secret

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
        "log in as root with password hunter2",
        "das Passwort ist Sommer2024!",
        "mysql -u root -p" + "geheim42 shop",
        "curl -u admin:" + "letmein https://x.example",
        "run it with --password hunter2 once",
        "sshpass -p trustno1 ssh host",
    ],
)
def test_a_secret_is_recognised(text: str) -> None:
    assert find_secret(text)


_HEX = "0123456789abcdef"
# One of each form that an issuer documents, made up here.
_ISSUED = {
    "private key": "-----BEGIN RSA " + "PRIVATE KEY-----",
    "Anthropic key": "sk-" + "ant-api03-" + _random(90),
    "OpenAI key": "sk-" + "svcacct-" + _random(40),
    "AWS access key": "ASI" + "A" + _random(16, "ABCDEFGHIJ234567"),
    "GitHub token": "gh" + "s_" + _random(36),
    "GitLab token": "gl" + "rt-" + _random(20),
    "Slack token": "xap" + "p-1-" + _random(20),
    "Slack webhook": "https://hooks." + "slack.com/services/T0/B0/" + _random(24),
    "Google key": "GOC" + "SPX-" + _random(28),
    "Stripe key": "rk_" + "test_" + _random(24),
    "PyPI token": "pypi" + "-" + _random(60),
    "Hugging Face token": "hf" + "_" + _random(34),
    "SendGrid key": "SG" + "." + _random(22) + "." + _random(43),
    "DigitalOcean token": "do" + "p_v1_" + _random(64, _HEX),
    "Databricks token": "dap" + "i" + _random(32, _HEX),
    "Telegram bot token": "123456789" + ":AA" + _random(33),
    "Vault token": "hv" + "s." + _random(30),
    "age key": "AGE-SECRET" + "-KEY-1" + _random(58, string.ascii_uppercase + string.digits),
    "Azure storage key": "Account" + "Key=" + _random(86) + "==",
    "Azure signature": "https://x.blob.core.windows.net/c?sv=1&" + "sig=" + _random(44),
    "Azure client secret": "abc8" + "Q~" + _random(34),
    "Google refresh token": "1/" + "/0" + _random(60),
    "Alibaba access key": "LTA" + "I" + _random(20),
    "Yandex key": "AQV" + "N" + _random(36),
    "Twilio key": "S" + "K" + _random(32, _HEX),
    "Mailgun key": "ke" + "y-" + _random(32, _HEX),
    "Mailchimp key": _random(32, _HEX) + "-us" + "12",
    "Discord token": "M" + _random(24) + "." + _random(6) + "." + _random(38),
    "Discord webhook": "https://discord.com/api/" + "webhooks/123456/" + _random(60),
    "Teams webhook": "https://x.webhook." + "office.com/webhookb2/a@b/IncomingWebhook/" + _random(32, _HEX) + "/c",
    "Shopify token": "shp" + "at_" + _random(32, _HEX),
    "Square token": "sq0" + "csp-" + _random(43),
    "Dropbox token": "sl" + "." + _random(130),
    "Linear key": "lin_" + "api_" + _random(40),
    "Notion token": "nt" + "n_" + _random(46),
    "Atlassian token": "ATA" + "TT3" + _random(60),
    "Postman key": "PMA" + "K-" + _random(24, _HEX) + "-" + _random(34, _HEX),
    "New Relic key": "NRA" + "K-" + _random(27, string.ascii_uppercase),
    "Sentry token": "sntry" + "s_" + _random(80),
    "Grafana token": "gls" + "a_" + _random(32) + "_" + _random(8, _HEX),
    "Datadog key": "DD_API_" + "KEY=" + _random(32, _HEX),
    "Doppler token": "dp." + "st.dev." + _random(43),
    "Pulumi token": "pu" + "l-" + _random(40, _HEX),
    "Terraform token": _random(14) + ".atlas" + "v1." + _random(67),
    "Docker token": "dckr_" + "pat_" + _random(27),
    "RubyGems key": "ruby" + "gems_" + _random(48, _HEX),
    "crates.io token": "ci" + "o" + _random(32),
    "Groq key": "gs" + "k_" + _random(52),
    "Replicate token": "r" + "8_" + _random(37),
    "Perplexity key": "pp" + "lx-" + _random(48),
    "xAI key": "xa" + "i-" + _random(80),
    "Supabase token": "sb" + "p_" + _random(40, _HEX),
    "PlanetScale token": "pscale" + "_pw_" + _random(43),
    "Figma token": "fig" + "d_" + _random(40),
    "Airtable token": "pa" + "t" + _random(14) + "." + _random(64, _HEX),
    "Heroku key": "HRK" + "U-" + _random(60),
    "Netlify token": "nf" + "p_" + _random(40),
    "Tailscale key": "ts" + "key-auth-" + _random(12) + "-" + _random(32),
    "Fly.io token": "fo" + "1_" + _random(43),
    "Buildkite token": "bk" + "ua_" + _random(40, _HEX),
    "1Password token": "op" + "s_eyJ" + _random(200),
    "PuTTY key": "PuTTY-User-" + "Key-File-3: ssh-ed25519",
    "npm token": "//registry.npmjs.org/:_auth" + "Token=" + _random(36),
    "JSON web token": "ey" + "J" + _random(20) + ".eyJ" + _random(30) + "." + _random(20),
}


@pytest.mark.parametrize("kind", _ISSUED)
def test_each_issuers_form_is_known_by_its_name(kind: str) -> None:
    assert find_secret(f"use {_ISSUED[kind]} for it") == kind
    assert find_secret(f"`{_ISSUED[kind]}`") == kind


def test_each_form_has_a_sample() -> None:
    assert {kind for kind, _ in ISSUED} == set(_ISSUED)


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
        "password reset mails are sent by the worker",
        "password base64 encoding is done by the proxy",
        "mysql -p asks for the password",
        "curl -u admin:$ADMIN_PASSWORD works in CI",
        "run it with --password $PASSWORD or --token <token>",
        "password PBKDF2 hashing takes 100 ms",
        "npm reads _authToken=${NPM_TOKEN} from .npmrc",
        "keys of the map are sorted, key-value pairs are not",
    ],
)
def test_what_only_speaks_of_one_is_not(text: str) -> None:
    assert not find_secret(text)


def test_the_secret_itself_is_never_told() -> None:
    secret = "gh" + "p_" + _random(36)
    assert secret not in find_secret(secret)
