"""One question to a model, answered in the form of one tool: for what a transcript taught, and for a party's turns.

The model is called through the Anthropic SDK, which reads the endpoint from ``ANTHROPIC_BASE_URL``; the key comes from
the variable that the town's settings name and stands nowhere else. No sampling parameters: current models refuse them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sidecars.llm.client import Endpoint, ModelClient
from sidecars.llm.reply import ModelFault
from witness.config.keys import find_key
from witness.config.settings import Settings
from witness.config.town import Town
from witness.errors import TownNotFoundError, UsageError, WitnessError
from witness.journal.records import Usage
from witness.trust.settings import trusted_settings

# A turn of a party is short, but a model that thinks first counts its thoughts against this.
_MOST_TOKENS = 4096
_TIMEOUT = 60.0


class ModelError(WitnessError):
    """The model gave no usable answer."""


@dataclass(frozen=True, slots=True)
class Tool:
    """The form of an answer.

    Args:
        name: what the model calls.
        description: when.
        schema: JSON schema of its input.
    """

    name: str
    description: str
    schema: Mapping[str, Any]


class Model(Protocol):
    """A model that answers a question in the form of a tool."""

    def ask(self, system: str, prompt: str, tool: Tool) -> dict[str, Any]:
        """Put a question.

        Args:
            system: the stable part, which comes first so that it can be cached.
            prompt: the question.
            tool: the form of the answer.

        Raises:
            ModelError: there is no usable answer.
        """
        ...


class AnthropicModel:
    """The model behind the Messages API.

    Args:
        endpoint: where it is.
        timeout: seconds for one question, retries included.
    """

    def __init__(self, endpoint: Endpoint, timeout: float = _TIMEOUT) -> None:
        self._client, self._timeout = ModelClient(endpoint), timeout

    @property
    def usage(self) -> Usage:
        """What all its questions cost so far."""
        return self._client.usage

    def ask(self, system: str, prompt: str, tool: Tool) -> dict[str, Any]:
        """As ``Model.ask``."""
        name = self._client.endpoint.model
        arguments = {
            "max_tokens": _MOST_TOKENS,
            "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
            "thinking": {"type": "disabled"},
            "messages": [{"role": "user", "content": prompt}],
            "tools": [{"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}],
            "tool_choice": {"type": "tool", "name": tool.name},
        }
        try:
            reply = self._client.ask(arguments, self._timeout)
        except ModelFault as error:
            raise ModelError(f"{name} gave no answer: {error.reason}") from error
        given = reply.called(tool.name)
        if not isinstance(given, dict):
            raise ModelError(f"{name} did not answer with {tool.name} (stopped: {reply.stop})")
        return given

    def close(self) -> None:
        """Close its connections."""
        self._client.close()


def model_for(start: Path) -> AnthropicModel:
    """The model that the town's settings name.

    Args:
        start: where the town is looked for; without one the defaults hold.

    Raises:
        UsageError: the variable that should hold the key is empty.
    """
    try:
        settings = trusted_settings(Town.find(start).root)
    except TownNotFoundError:
        settings = Settings()
    key = find_key(settings)
    if not key:
        raise UsageError(f"no API key: set {settings.key_env}")
    return AnthropicModel(Endpoint(key, settings.model, settings.model_url, settings.prices))
