"""One question to a model, answered in the form of one tool: for what a transcript taught, and for a party's turns.

The model is called through the Anthropic SDK, which reads the endpoint from ``ANTHROPIC_BASE_URL``; the key comes from
the variable that the town's settings name and stands nowhere else. No sampling parameters: current models refuse them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from sidecars.llm.prices import dollars
from witness.config.settings import Settings, load_settings
from witness.config.town import Town
from witness.errors import TownNotFoundError, UsageError, WitnessError
from witness.journal.records import Usage

# A turn of a party is short, but a model that thinks first counts its thoughts against this.
_MOST_TOKENS = 4096
_TIMEOUT = 60.0
_RETRIES = 2


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
    """Whoever can answer a question in the form of a tool."""

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
    """A model behind an Anthropic-compatible endpoint.

    Args:
        name: the model's id.
        key: the API key.
        url: base address of the endpoint; from the environment, else Anthropic's own, when empty.
        timeout: seconds for one call.

    Attributes:
        usage: what all its calls cost so far.
    """

    def __init__(self, name: str, key: str, url: str = "", timeout: float = _TIMEOUT) -> None:
        from anthropic import Anthropic

        self._name = name
        self.usage = Usage(model=name)
        self._client = Anthropic(api_key=key, base_url=url or None, timeout=timeout, max_retries=_RETRIES)

    def ask(self, system: str, prompt: str, tool: Tool) -> dict[str, Any]:
        """As ``Model.ask``."""
        from anthropic import AnthropicError, APIStatusError

        try:
            answer = self._client.messages.create(
                model=self._name,
                max_tokens=_MOST_TOKENS,
                system=[{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
                messages=[{"role": "user", "content": prompt}],
                tools=[{"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}],
                tool_choice={"type": "tool", "name": tool.name},
            )
        except APIStatusError as error:
            said = f"{error.status_code} {error.type or ''} {error.api_message or ''}"
            raise ModelError(f"{self._name} gave no answer: {_one_line(said)}") from error
        except AnthropicError as error:
            raise ModelError(f"{self._name} gave no answer: {_one_line(str(error) or type(error).__name__)}") from error
        self._count(answer.usage)
        # Blocks are picked by type: a model that thinks puts its thoughts first.
        for block in answer.content:
            if block.type == "tool_use" and block.name == tool.name and isinstance(block.input, dict):
                return dict(block.input)
        raise ModelError(f"{self._name} did not answer with {tool.name} (stopped: {answer.stop_reason})")

    def _count(self, reported: Any) -> None:
        counts = {
            "input_tokens": reported.input_tokens,
            "cached_tokens": reported.cache_read_input_tokens,
            "cache_written_tokens": reported.cache_creation_input_tokens,
            "output_tokens": reported.output_tokens,
        }
        sums = {name: getattr(self.usage, name) + (count or 0) for name, count in counts.items()}
        usage = replace(self.usage, calls=self.usage.calls + 1, **sums)
        self.usage = replace(usage, dollars=dollars(usage))

    def close(self) -> None:
        """Close its connections."""
        self._client.close()


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]


def model_for(start: Path) -> AnthropicModel:
    """The model that the town's settings name.

    Args:
        start: where the town is looked for; without one the defaults hold.

    Raises:
        UsageError: the variable that should hold the key is empty.
    """
    try:
        settings = load_settings(Town.find(start).root)
    except TownNotFoundError:
        settings = Settings()
    key = os.environ.get(settings.key_env, "")
    if not key:
        raise UsageError(f"no API key: set {settings.key_env}")
    return AnthropicModel(settings.model, key)
