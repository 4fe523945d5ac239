"""A party held for real: turns in order, rounds and word limits kept, one record written as it goes.

Who answers is somebody else's affair (``Speaker``): a model behind an endpoint, or a polecat in its pane. The turns and
their limits are those of MDAN's turn protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sidecars.memory.learn import REMEMBER, checked
from sidecars.memory.model import Model, ModelError, Tool
from sidecars.memory.operations import NEW_PER_SESSION
from sidecars.memory.secret_rules import without_secret
from sidecars.party.forms import (
    ASKS,
    WORDS,
    decision_form,
    is_rememberable,
    relations_of,
    said_so_far,
    text_of,
    transcript,
    turn_form,
    within_words,
)
from sidecars.party.party import Party
from sidecars.party.record import Contribution, PartyDecision, PartyRecord

MOST_ROUNDS = 3
# What proponent and opponent do in each round of a debate.
_DEBATE = ("proposition", "rebuttal", "counter")


class Speaker(Protocol):
    """What speaks for the agents: models, or their polecats."""

    def answer(self, agent: str, briefing: str, prompt: str, form: Tool) -> Mapping[str, Any]:
        """Let an agent answer.

        Args:
            agent: whose turn it is.
            briefing: what the agent was told at the start.
            prompt: what is asked of it now, with all that was said before.
            form: the form of its answer.

        Raises:
            ModelError: there is no usable answer.
        """
        ...


class ModelSpeaker:
    """One model that speaks for all, each with its own briefing."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def answer(self, agent: str, briefing: str, prompt: str, form: Tool) -> Mapping[str, Any]:
        """As ``Speaker.answer``."""
        return self._model.ask(briefing, prompt, form)


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn to be taken: by whom, in which round, as what."""

    agent: str
    round: int
    type: str


class PartyRun:
    """A party while it is held.

    Args:
        party: who, about what, how.
        briefings: what each agent was told at the start.
        speaker: who answers.
        keep: is given the record after each turn.
    """

    def __init__(
        self, party: Party, briefings: Mapping[str, str], speaker: Speaker, keep: Callable[[PartyRecord], object]
    ) -> None:
        self._party, self._briefings, self._speaker, self._keep = party, briefings, speaker, keep
        self.record = PartyRecord(party.topic, party.mode, party.agents)

    def hold(self, rounds: int = MOST_ROUNDS) -> PartyRecord:
        """Hold it.

        Args:
            rounds: at most so many, and never more than ``MOST_ROUNDS``; a consensus ends sooner when all agree.

        Returns:
            The record; after an error, ``record`` has what was said until then.

        Raises:
            ModelError: somebody gave no usable answer.
        """
        rounds = max(1, min(rounds, MOST_ROUNDS))
        {"discussion": self._discuss, "debate": self._debate, "consensus": self._agree}[self._party.mode](rounds)
        for agent in self._party.agents:
            self._remember(agent)
        return self.record

    def _discuss(self, rounds: int) -> None:
        for number in range(1, rounds + 1):
            for agent in self._party.agents:
                self._speak(Turn(agent, number, "reaction"))

    def _debate(self, rounds: int) -> None:
        proponent, opponent, arbitrator, *others = self._party.agents
        for number in range(1, rounds + 1):
            for agent in (proponent, opponent):
                self._speak(Turn(agent, number, _DEBATE[number - 1]))
            for agent in others:
                self._speak(Turn(agent, number, "reaction"))
            self._speak(Turn(arbitrator, number, "summary"))
        self._decide(
            Turn(arbitrator, rounds, "ruling"),
            decision_form(("proponent", "opponent", "compromise")),
            "Rule. Say whose case carries, why, how sure you are, and what the losing side still holds.",
        )

    def _agree(self, rounds: int) -> None:
        # The first agent named leads: it maps the positions and writes down what all can stand behind.
        leader = self._party.agents[0]
        for agent in self._party.agents:
            self._speak(Turn(agent, 1, "position"))
        self._speak(Turn(leader, 1, "map"))
        for number in range(1, rounds + 1):
            aligned = [self._speak(Turn(agent, number, "concession")) for agent in self._party.agents]
            if all(aligned):
                break
        self._decide(
            Turn(leader, number, "synthesis"),
            decision_form(("consensus", "compromise")),
            "Write down the one position that takes in all views that can be held together. outcome is consensus only"
            " if nobody is left with a reservation.",
        )

    def _speak(self, turn: Turn) -> bool:
        answer = self._ask(turn, ASKS[turn.type], turn_form(self._others(turn.agent)))
        content = within_words(text_of(answer, "content"), WORDS[turn.type])
        if not content and turn.type != "reaction":
            raise ModelError(f"{turn.agent} said nothing in its {turn.type}")
        if content:
            self._say(turn, content, relations_of(answer, self._others(turn.agent)))
        return answer.get("aligned") is True

    def _decide(self, turn: Turn, form: Tool, ask: str) -> None:
        answer = self._ask(turn, ask, form)
        text = within_words(text_of(answer, "decision"), WORDS[turn.type])
        outcome = text_of(answer, "outcome")
        if not text or outcome not in form.schema["properties"]["outcome"]["enum"]:
            raise ModelError(f"{turn.agent} gave no {turn.type} that can be recorded")
        rationale = within_words(text_of(answer, "rationale"), WORDS[turn.type])
        self._say(turn, within_words(f"{text} {rationale}", WORDS[turn.type]), {})
        parts = {role: agent for agent in self._party.agents if (role := self._party.role(agent)) != "participant"}
        confidence = answer.get("confidence")
        sure = confidence if isinstance(confidence, int | float) and not isinstance(confidence, bool) else 0.5
        decision = PartyDecision(
            id="",
            decision=text,
            outcome=outcome,
            rationale=rationale,
            confidence=min(1.0, max(0.0, float(sure))),
            dissent=within_words(text_of(answer, "dissent"), WORDS["position"]),
            proponent=parts.get("proponent", ""),
            opponent=parts.get("opponent", ""),
            arbitrator=parts.get("arbitrator", ""),
        )
        self._note(replace(self.record, decisions=(*self.record.decisions, decision)))

    def _remember(self, agent: str) -> None:
        said = transcript(self.record)
        prompt = (
            f"{said_so_far(said)}\n\nThe {self._party.mode} is over. What should you still know in your next session?"
        )
        answer = self._speaker.answer(agent, self._briefings[agent], prompt, REMEMBER)
        gains = checked(dict(answer), said, set())
        # One of the five memories of a session is each decision's own.
        room = max(0, NEW_PER_SESSION - len(self.record.decisions))
        memories = tuple({**memory, "agent": agent} for memory in gains.memories[:room] if is_rememberable(memory))
        self._note(replace(self.record, memories=(*self.record.memories, *memories)))

    def _ask(self, turn: Turn, ask: str, form: Tool) -> Mapping[str, Any]:
        now = f"Round {turn.round}, your {turn.type}. {ask} At most {WORDS[turn.type]} words."
        prompt = f"{said_so_far(transcript(self.record))}\n\n{now}"
        return self._speaker.answer(turn.agent, self._briefings[turn.agent], prompt, form)

    def _say(self, turn: Turn, content: str, relations: Mapping[str, tuple[str, ...]]) -> None:
        said, role = without_secret(content), self._party.role(turn.agent)
        spoken = Contribution(turn.agent, turn.round, role, turn.type, said, relations)
        self._note(replace(self.record, contributions=(*self.record.contributions, spoken)))

    def _note(self, record: PartyRecord) -> None:
        self.record = record
        self._keep(record)

    def _others(self, agent: str) -> tuple[str, ...]:
        return tuple(other for other in self._party.agents if other != agent)
