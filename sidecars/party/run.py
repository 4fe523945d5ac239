"""A party held for real: turns in order, rounds and word limits kept, one record written as it goes.

Who answers is somebody else's affair (``Speaker``): a model behind an endpoint, or a polecat in its pane. The turns and
their limits are those of MDAN's turn protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, astuple, dataclass, replace
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
from sidecars.party.party import MOST_ROUNDS, Party
from sidecars.party.record import Contribution, PartyDecision, PartyRecord

# After so many turns in a row that could not be had there is no party any more.
_MOST_SKIPPED = 3
# The record's key for what became of each turn, by which a party that broke off goes on where it was.
TURNS = "turns"
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


class PartyStoppedError(ModelError):
    """The party may not go on: its money or its time is spent."""


class PartyRun:
    """A party while it is held.

    An answer that is none is asked for once more. When the second is none either, the turn is skipped and the party
    goes on; without a ruling or a synthesis there is no party, and after three turns in a row nobody is there.

    Args:
        party: who, about what, how.
        briefings: what each agent was told at the start.
        speaker: who answers.
        keep: is given the record after each turn.
        record: of a party that broke off: turns that were taken are not asked for again.
        stop: says before each question why there may be none, empty when there may.
    """

    def __init__(
        self,
        party: Party,
        briefings: Mapping[str, str],
        speaker: Speaker,
        keep: Callable[[PartyRecord], object],
        *,
        record: PartyRecord | None = None,
        stop: Callable[[], str] = lambda: "",
    ) -> None:
        self._party, self._briefings, self._speaker, self._keep = party, briefings, speaker, keep
        self.record = record or PartyRecord(party.topic, party.mode, party.agents)
        self._stop, self._skipped, self._why = stop, 0, ""

    def hold(self, rounds: int = MOST_ROUNDS) -> PartyRecord:
        """Hold it.

        Args:
            rounds: at most so many, and never more than ``MOST_ROUNDS``; a consensus ends sooner when all agree.

        Returns:
            The record; after an error, ``record`` has what was said until then.

        Raises:
            PartyStoppedError: the money or the time is spent.
            ModelError: nobody answers any more, or there is no decision.
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
        taken = self._taken(turn)
        if taken:
            return taken == "aligned"
        others = self._others(turn.agent)

        def said(answer: Mapping[str, Any]) -> str:
            content = within_words(text_of(answer, "content"), WORDS[turn.type])
            if not content and turn.type != "reaction":
                raise ModelError(f"{turn.agent} said nothing in its {turn.type}")
            return content

        answer = self._ask(turn, ASKS[turn.type], turn_form(others), said)
        if answer is None:
            return False
        aligned = answer.get("aligned") is True
        outcome = "aligned" if aligned else "taken"
        if content := said(answer):
            self._say(turn, content, relations_of(answer, others), outcome)
        else:
            self._note(self._with_turn(turn, "passed"))
        return aligned

    def _decide(self, turn: Turn, form: Tool, ask: str) -> None:
        if self.record.decisions:
            return

        def checked_decision(answer: Mapping[str, Any]) -> str:
            text = within_words(text_of(answer, "decision"), WORDS[turn.type])
            if not text or text_of(answer, "outcome") not in form.schema["properties"]["outcome"]["enum"]:
                raise ModelError(f"{turn.agent} gave no {turn.type} that can be recorded")
            return text

        answer = self._ask(turn, ask, form, checked_decision)
        if answer is None:
            raise ModelError(self._why or f"{turn.agent} gave no {turn.type} that can be recorded")
        text, outcome = checked_decision(answer), text_of(answer, "outcome")
        rationale = within_words(text_of(answer, "rationale"), WORDS[turn.type])
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
        # In one writing with what was said: a crash leaves both or neither.
        self.record = replace(self.record, decisions=(*self.record.decisions, decision))
        self._say(turn, within_words(f"{text} {rationale}", WORDS[turn.type]), {}, "taken")

    def _remember(self, agent: str) -> None:
        turn = Turn(agent, 0, "remember")
        if self._taken(turn):
            return
        said = transcript(self.record)
        prompt = (
            f"{said_so_far(said)}\n\nThe {self._party.mode} is over. What should you still know in your next session?"
        )
        answer = self._answer(turn, prompt, REMEMBER, lambda answer: None)
        if answer is None:
            return
        gains = checked(dict(answer), said, set())
        # One of the five memories of a session is each decision's own.
        room = max(0, NEW_PER_SESSION - len(self.record.decisions))
        memories = tuple({**memory, "agent": agent} for memory in gains.memories[:room] if is_rememberable(memory))
        self._note(replace(self._with_turn(turn, "taken"), memories=(*self.record.memories, *memories)))

    def _ask(
        self, turn: Turn, ask: str, form: Tool, check: Callable[[Mapping[str, Any]], object]
    ) -> Mapping[str, Any] | None:
        now = f"Round {turn.round}, your {turn.type}. {ask} At most {WORDS[turn.type]} words."
        return self._answer(turn, f"{said_so_far(transcript(self.record))}\n\n{now}", form, check)

    def _answer(
        self, turn: Turn, prompt: str, form: Tool, check: Callable[[Mapping[str, Any]], object]
    ) -> Mapping[str, Any] | None:
        """An answer that stands the check; None when two did not and the turn is skipped."""
        for attempt in (1, 2):
            if reason := self._stop():
                raise PartyStoppedError(reason)
            try:
                answer = self._speaker.answer(turn.agent, self._briefings[turn.agent], prompt, form)
                check(answer)
            except ModelError as error:
                if attempt == 1:
                    continue
                self._note(self._with_turn(turn, "skipped", str(error)))
                self._skipped, self._why = self._skipped + 1, str(error)
                if self._skipped >= _MOST_SKIPPED:
                    raise
            else:
                self._skipped, self._why = 0, ""
                return answer
        return None

    def _taken(self, turn: Turn) -> str:
        """What became of a turn that was taken before the party broke off, empty when it was not."""
        taken = self.record.extra.get(TURNS)
        for each in taken if isinstance(taken, list) else []:
            if isinstance(each, dict) and (each.get("agent"), each.get("round"), each.get("type")) == astuple(turn):
                return "" if each.get("outcome") == "skipped" else str(each.get("outcome"))
        return ""

    def _with_turn(self, turn: Turn, outcome: str, reason: str = "") -> PartyRecord:
        taken = self.record.extra.get(TURNS)
        others = [
            each
            for each in (taken if isinstance(taken, list) else [])
            if isinstance(each, dict) and (each.get("agent"), each.get("round"), each.get("type")) != astuple(turn)
        ]
        entry = {**asdict(turn), "outcome": outcome, **({"reason": without_secret(reason)} if reason else {})}
        return replace(self.record, extra={**self.record.extra, TURNS: [*others, entry]})

    def _say(self, turn: Turn, content: str, relations: Mapping[str, tuple[str, ...]], outcome: str) -> None:
        said, role = without_secret(content), self._party.role(turn.agent)
        spoken = Contribution(turn.agent, turn.round, role, turn.type, said, relations)
        self._note(replace(self._with_turn(turn, outcome), contributions=(*self.record.contributions, spoken)))

    def _note(self, record: PartyRecord) -> None:
        self.record = record
        self._keep(record)

    def _others(self, agent: str) -> tuple[str, ...]:
        return tuple(other for other in self._party.agents if other != agent)
