"""Putting a sidecar together from its assignment."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sidecars.observer.context import Context
from sidecars.observer.context.files import read_text, within
from sidecars.observer.context.fixed_texts import FixedTexts, fixed_texts
from sidecars.observer.context.gather import gather
from sidecars.observer.inject.deliver import Deliverer
from sidecars.observer.inject.gate import Gates
from sidecars.observer.judge.rules import RulesJudge
from sidecars.observer.judge.verdict import Judge
from sidecars.observer.pipeline import DecisionPipeline
from sidecars.type_reader.sidecar_type import Rule, SidecarType
from sidecars.type_reader.type_loader import assigned_type
from witness.assignment import Assignment
from witness.clock import Clock
from witness.config.keys import find_key
from witness.config.settings import Settings
from witness.errors import DeclarationError, UsageError
from witness.journal import Journal
from witness.judging.hosts import HostLink
from witness.prompts import TEXT, present
from witness.trust.settings import trusted_settings

if TYPE_CHECKING:
    from sidecars.llm.client import ModelClient
    from sidecars.llm.client_model import ClientModel


@dataclass(frozen=True, slots=True)
class Components:
    """What a sidecar consists of once its declaration is read.

    Args:
        kind: its type, all layers put together.
        material: its context.
        settings: the town's and the rig's.
        judge: who judges.
        lack: what it has to do without, empty when nothing; said once in the town's history.
        host: the way to the process that judges, where it is another one.
        runtime: the runtime folder of the town, where such a process is looked for; None outside of any.
        spool: the run's spool, where the session's own client is asked; None outside of any run.
        texts: what of the project its context was made of.
    """

    kind: SidecarType
    material: Context
    settings: Settings
    judge: Judge
    lack: str = ""
    host: HostLink | None = None
    runtime: Path | None = None
    spool: Path | None = None
    texts: FixedTexts = field(default_factory=FixedTexts)

    @property
    def mute(self) -> str:
        """Why it can never speak; empty when it can."""
        return _mute_reason(self)

    @property
    def found(self) -> str:
        """What of the project it holds an agent to, in one line: rules with their files, paths in and out of scope."""
        counts = Counter(rule.source.rpartition(":")[0] or "its documents" for rule in self.material.rules)
        places = ", ".join(f"{count} in {name}" for name, count in counts.items())
        rules = f"{counts.total()} rule{'s' * (counts.total() > 1)} ({places})"
        sets = [f"{name} {', '.join(globs)}" for name, globs in self.material.sets.items() if globs]
        return "; ".join(([rules] if counts else []) + sets)

    def with_prompt(self, prompt: str, workdir: Path) -> Components | None:
        """The same sidecar where nobody has left the polecat's prompt: the first one that is typed is taken for it.

        Args:
            prompt: what was typed, empty for nothing.
            workdir: where the agent works.

        Returns:
            None where it goes by no prompt, has one, or none of its blocks is in this one.
        """
        if not prompt or self.material.blocks is not None or "prompt" not in self.kind.context:
            return None
        blocks = present(prompt) - {TEXT}
        if not blocks:
            return None
        material = replace(self.material, blocks=blocks)
        return build_components(self.kind, material, self.settings, workdir, self.runtime, self.spool)

    def observer(
        self, assignment: Assignment, journal: Journal, clock: Clock, aloud: bool = True, aside: bool = False
    ) -> DecisionPipeline:
        """The sidecar's mind over a journal.

        Args:
            assignment: which agent it observes.
            journal: where decisions go.
            clock: where the time comes from.
            aloud: whether signals are queued.
            aside: whether a slow judge is asked in a thread of its own.
        """
        gates = Gates(self.kind, assignment, self.settings, journal, clock)
        deliverer = Deliverer(assignment, clock) if aloud else None
        return DecisionPipeline(
            self.kind,
            assignment,
            judge=self.judge,
            gates=gates,
            journal=journal,
            clock=clock,
            deliverer=deliverer,
            aside=aside,
        )


def assemble(assignment: Assignment, *, starts: bool = False) -> Components:
    """Read everything that a sidecar is declared by.

    Args:
        assignment: its.
        starts: it begins to observe: what it reads of the project holds for every later start in this run.

    Raises:
        JournalError: what it read at its first start cannot be kept or read.
        UsageError: the type is unknown, or a file of its declaration is missing or wrong.
    """
    town = Path(assignment.town) if assignment.town else None
    workdir = Path(assignment.workdir)
    kind = assigned_type(assignment)
    settings, fault = Settings(), ""
    try:
        settings = trusted_settings(town, assignment.group.rig) if town else settings
    except DeclarationError as error:
        # A slip in the settings must not leave a polecat unobserved: what a sidecar is stands in its definition.
        fault = f"the settings are wrong, and their defaults count: {error.problems[0]}"
    with fixed_texts(assignment) if starts else nullcontext(FixedTexts()) as texts:
        material = gather(kind, assignment)
    spool = Path(assignment.run_dir) / "spool"
    parts = build_components(kind, material, settings, workdir, runtime_of(assignment), spool)
    parts = replace(parts, texts=texts)
    return replace(parts, lack="; ".join(filter(None, (fault, parts.lack)))) if fault else parts


def runtime_of(assignment: Assignment) -> Path | None:
    """The runtime folder of the town that a sidecar belongs to; None outside of any."""
    return Path(assignment.journal).parent if assignment.town else None


def prospects(assignment: Assignment) -> tuple[str, str]:
    """(why a sidecar so declared could never speak, empty when it can; what it found to hold an agent to).

    Args:
        assignment: as it would be given at its start; asked before that, so the agent's process may be missing.

    Raises:
        UsageError: its declaration is wrong, as for ``assemble``.
    """
    parts = assemble(assignment)
    parts.judge.close()
    return parts.mute, parts.found


def _mute_reason(parts: Components) -> str:
    if not isinstance(parts.judge, RulesJudge):
        return ""
    threshold = parts.kind.threshold
    sure = tuple(rule for rule in (*parts.material.rules, *parts.kind.rules) if rule.confidence >= threshold)
    if missing := _what_rules_lack(sure, parts.material):
        return missing if not parts.lack or missing == parts.lack else f"{missing}; {parts.lack}"
    return ""


def _what_rules_lack(rules: tuple[Rule, ...], material: Context) -> str:
    # A prompt that is not known yet may turn out to lack any block.
    known = material if material.blocks is not None else replace(material, blocks=frozenset())
    if RulesJudge(rules, known).can_fire:
        return ""
    if not rules:
        return "none of its rules is sure enough to speak by itself, and its documents declare none"
    globs = [glob for rule in rules for glob in (*rule.touches, *rule.writes, *rule.opens, *rule.writes_outside,
                                                 *rule.touches_outside)]  # fmt: skip
    if not material.sets and any(glob.startswith("@") for glob in globs):
        missing = "its issue lists no files: and no not:"
    elif any(rule.lacks_block for rule in rules) and not material.library:
        missing = "it has no blocks to give; write .gt/blocks.xml"
    elif any(rule.given for rule in rules):
        missing = "the project's documents ask for nothing that they know"
    else:
        missing = "its documents give them no hold"
    return f"none of its rules can hold here: {missing}"


def cited(rule: Rule, workdir: Path) -> str:
    """Where a rule's words stand: the line that it cites, if the project has it, else its own.

    Args:
        rule: one of the type's.
        workdir: the project.
    """
    file, _, line = rule.cites.rpartition(":")
    if file and (path := workdir / file).is_file() and int(line) <= len(read_text(path).splitlines()):
        return rule.cites
    return within(rule.source, workdir)


def _model(kind: SidecarType, settings: Settings) -> tuple[ModelClient | None, str]:
    """Who puts a question to a model with the sidecars' own key, or why nobody can."""
    try:
        key = find_key(settings)
    except UsageError as error:
        return None, str(error)
    if not key:
        return None, f"no key in {settings.key_env}"
    from sidecars.llm.client import Endpoint, ModelClient

    endpoint = Endpoint(key, kind.model or settings.model, settings.model_url, settings.prices)
    return ModelClient(endpoint), ""


def _client_model(settings: Settings, spool: Path | None) -> tuple[ClientModel | None, str]:
    """Who has the session's own client ask, or why nobody can."""
    if not settings.client_model:
        return None, "the settings name no client_model, so the agent's client is not asked"
    if spool is None:
        return None, "there is no session whose client could be asked"
    from sidecars.llm.client import Endpoint
    from sidecars.llm.client_model import ClientModel

    return ClientModel(spool, Endpoint("", settings.client_model, prices=settings.prices)), ""


def build_components(
    kind: SidecarType,
    material: Context,
    settings: Settings,
    workdir: Path,
    runtime: Path | None = None,
    spool: Path | None = None,
) -> Components:
    """Give a type with its context the judge that it asks for, or the next best that there is.

    Without a key, a type that wants a model runs on those of its rules that reach its threshold by themselves; one
    without such rules stays silent. Either is said once.

    Args:
        kind, material, settings: the type, its context, the settings that count.
        workdir: where the agent works.
        runtime: the runtime folder of its town, None outside of any.
        spool: the run's spool, None outside of any run.
    """
    parts = _with_judge(kind, material, settings, workdir, runtime, spool)
    return replace(parts, runtime=runtime, spool=spool)


def _with_judge(
    kind: SidecarType, material: Context, settings: Settings, workdir: Path, runtime: Path | None, spool: Path | None
) -> Components:
    kind = replace(
        kind,
        rules=tuple(replace(rule, source=cited(rule, workdir)) for rule in kind.rules),
        sources={
            name: source
            for name in kind.snippets
            if (source := within(kind.origins.get(f"snippets.{name}", ""), workdir))
        },
    )
    rules = (*material.rules, *kind.rules)
    if kind.judge == "command":
        from sidecars.observer.judge.command import CommandJudge

        return Components(kind, material, settings, CommandJudge(kind, material, workdir))
    if kind.judge == "python":
        from sidecars.observer.judge.python import PythonJudge

        function = PythonJudge(kind, material, runtime)
        return Components(kind, material, settings, function, host=function.host)
    if not kind.asks_model:
        return Components(kind, material, settings, RulesJudge(rules, material), _what_rules_lack(rules, material))
    client, why = _client_model(settings, spool) if kind.judge == "client" else _model(kind, settings)
    if client is None:
        sure = tuple(rule for rule in rules if rule.confidence >= kind.threshold)
        lack = f"{why}: " + ("it runs on its rules alone" if sure else "it stays silent")
        return Components(replace(kind, judge="rules"), material, settings, RulesJudge(sure, material), lack)
    from sidecars.observer.judge.model import CombinedJudge, ModelJudge

    model = ModelJudge(kind, material, client)
    if kind.judge == "model":
        return Components(kind, material, settings, model)
    return Components(kind, material, settings, CombinedJudge(RulesJudge(rules, material), model, kind.threshold))
