"""``gt key``: the API key of sidecars that ask a model."""

from __future__ import annotations

import sys
from contextlib import suppress

import click

from witness.config.keys import find_key, write_key
from witness.config.settings import Settings
from witness.config.town import Town
from witness.errors import TownNotFoundError, UsageError, WitnessError
from witness.launch.town_witness import ask, witness_process
from witness.trust.settings import trusted_settings


@click.group()
def key() -> None:
    """Keep and try the API key of sidecars that ask a model.

    It stands in a file that only you can read, and goes to the process that asks the model and nowhere else.
    """


@key.command("set", epilog="Examples:\n\n  gt key set\n\n  pass show anthropic | gt key set")
def set_key() -> None:
    """Keep a key for all your towns; it is asked for without being shown, or read from standard input."""
    text = click.prompt("API key", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.read()
    click.echo(f"written: {write_key(str(text))}")
    with suppress(WitnessError):  # outside of a town there is nobody to tell
        town = Town.find()
        # Another process that may have bound its socket gets no key.
        if witness_process(town) and ask(town, {"op": "key", "key": str(text).strip()}, 5.0):
            click.echo("the running Witness has it: sidecars that start from now on use it")


@key.command()
def test() -> None:
    """Ask the model one word with the key that sidecars would use; exit code 1 when it refuses."""
    from sidecars.llm.client import Endpoint, ModelClient
    from sidecars.llm.reply import ModelFault

    settings = _settings()
    found = find_key(settings)
    if not found:
        raise UsageError(f"there is no key: write one with 'gt key set', or export {settings.key_env}")
    client = ModelClient(Endpoint(found, settings.model, settings.model_url, settings.prices))
    question = {"max_tokens": 16, "messages": [{"role": "user", "content": "Say: yes"}]}
    try:
        client.ask(question, 20.0)
    except ModelFault as error:
        raise WitnessError(f"{settings.model} does not answer: {error.reason}") from error
    finally:
        client.close()
    click.echo(f"{settings.model} answers")


def _settings() -> Settings:
    try:
        return trusted_settings(Town.find().root)
    except TownNotFoundError:
        return Settings()
