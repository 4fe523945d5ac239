"""The table at which a party's polecats sit: each turn is a file that its agent fetches, and one that it answers with.

Agents ask for their turn and answer by a command, so nothing is ever typed into a pane, and any agent that can run a
command can take part.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sidecars.memory.model import ModelError, Tool
from sidecars.memory.paths import check_agent
from sidecars.memory.store import write_file
from sidecars.party.forms import described, faults
from sidecars.party.party import PARTIES
from witness.clock import Clock
from witness.errors import UsageError
from witness.files import parse_json, read_project

PARTY_VARIABLE, AGENT_VARIABLE = "GT_PARTY", "GT_PARTY_AGENT"
# Nobody notices a quarter of a second in a turn of a minute.
_PAUSE = 0.25


@dataclass(frozen=True, slots=True)
class Ask:
    """A turn that waits for its agent.

    Args:
        number: its place among all turns.
        agent: whose turn it is.
        prompt: what is asked.
        form: the form of the answer.
    """

    number: int
    agent: str
    prompt: str
    form: Tool

    def text(self) -> str:
        """What the agent reads: the question, and how to answer it."""
        keys = "\n".join(f"  {line}" for line in described(self.form.schema))
        example = json.dumps(dict.fromkeys(self.form.schema.get("required", ()), "…"), ensure_ascii=False)
        return (
            f"{self.prompt}\n\n{self.form.description} Answer with one JSON object on stdin:\n"
            f"gt party answer <<'ANSWER'\n{example}\nANSWER\nKeys:\n{keys}"
        )


class Table:
    """The table of one party.

    Args:
        root: the project's root.
        party: the party's id.
    """

    def __init__(self, root: Path, party: str) -> None:
        self._folder = root / PARTIES / check_agent(party)

    # -- the side that holds the party --------------------------------------------------------------------------------

    def ask(self, agent: str, prompt: str, form: Tool) -> Ask:
        """Give an agent its turn."""
        ask = Ask(max(self._numbers("ask"), default=0) + 1, agent, prompt, form)
        self._write(f"ask-{ask.number:04d}.json", asdict(ask))
        return ask

    def answered(self, ask: Ask) -> dict[str, Any] | None:
        """The answer to a turn, None while there is none."""
        raw = self._read(f"answer-{ask.number:04d}.json")
        return raw if isinstance(raw, dict) else None

    def reopen(self) -> None:
        """Let a party that broke off go on: it is not over, and turns that nobody answered are asked anew."""
        answered = set(self._numbers("answer"))
        for path in (*self._folder.glob("over.json"), *self._folder.glob("ask-*.json")):
            if path.name == "over.json" or int(path.stem.rpartition("-")[2]) not in answered:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Say that the party is over."""
        self._write("over.json", {})

    # -- the agents' side ---------------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether nobody will be asked any more."""
        return (self._folder / "over.json").exists()

    def turn_of(self, agent: str) -> Ask | None:
        """The turn that waits for an agent, None when it is not its turn."""
        answered = set(self._numbers("answer"))
        for number in self._numbers("ask"):
            raw = self._read(f"ask-{number:04d}.json")
            if number not in answered and isinstance(raw, dict) and raw.get("agent") == agent:
                return Ask(number, agent, raw["prompt"], Tool(**raw["form"]))
        return None

    def answer(self, agent: str, value: Any) -> None:
        """Take an agent's answer.

        Raises:
            UsageError: it is not its turn, or the answer is not in the form that was asked for.
        """
        ask = self.turn_of(agent)
        if ask is None:
            raise UsageError(f"it is not {agent}'s turn: 'gt party turn' waits for it")
        wrong = list(faults(value, ask.form.schema))
        if wrong:
            raise UsageError("\n".join(wrong))
        self._write(f"answer-{ask.number:04d}.json", value)

    def wait_for_turn(self, agent: str, clock: Clock, seconds: float) -> Ask | None:
        """Wait until it is an agent's turn; None when that does not come in time or the party is over first."""
        deadline = clock.monotonic() + seconds
        while True:
            ask = self.turn_of(agent)
            if ask is not None or self.is_over or clock.monotonic() >= deadline:
                return ask
            time.sleep(_PAUSE)

    def _numbers(self, kind: str) -> list[int]:
        return sorted(int(path.stem.rpartition("-")[2]) for path in self._folder.glob(f"{kind}-*.json"))

    def _write(self, name: str, value: Any) -> None:
        write_file(self._folder / name, json.dumps(value, ensure_ascii=False, indent=2).encode())

    def _read(self, name: str) -> Any:
        try:
            return parse_json(read_project(self._folder / name))
        except FileNotFoundError:
            return None


class TableSpeaker:
    """Lets each agent answer at the table.

    Args:
        table: the party's table.
        clock: for the limit of a turn.
        alive: whether an agent is still there.
        limit: seconds that a turn may take.
    """

    def __init__(self, table: Table, clock: Clock, alive: Callable[[str], bool], limit: float) -> None:
        self._table, self._clock, self._alive, self._limit = table, clock, alive, limit

    def answer(self, agent: str, briefing: str, prompt: str, form: Tool) -> Mapping[str, Any]:
        """As ``Speaker.answer``; the agent has had its briefing when it was started."""
        ask = self._table.ask(agent, prompt, form)
        deadline = self._clock.monotonic() + self._limit
        while True:
            given = self._table.answered(ask)
            if given is not None:
                return given
            if not self._alive(agent):
                raise ModelError(f"{agent}'s polecat ended before it had answered")
            if self._clock.monotonic() >= deadline:
                raise ModelError(f"{agent} did not answer within {self._limit:g} s")
            time.sleep(_PAUSE)
