"""The state of a town in Prometheus' text format; needs the extra ``metrics``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from witness.errors import WitnessError
from witness.state.records import ActivityKind, PolecatState, TownState

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from witness.journal.decisions import Spend

_POLECAT = ["rig", "polecat"]
_SIDECAR = [*_POLECAT, "sidecar"]


def metrics_text(state: TownState, spend: Spend) -> str:
    """A page for Prometheus: the town, each living polecat and each of its sidecars.

    Args:
        state: of the town.
        spend: what the sidecars of the town have spent in all.

    Raises:
        WitnessError: ``prometheus-client`` is not installed.
    """
    try:
        from prometheus_client import CollectorRegistry, generate_latest
    except ImportError as error:
        raise WitnessError("metrics need prometheus-client: pip install 'gt-witness[metrics]'") from error
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(state, spend))
    return str(generate_latest(registry).decode())


class _Collector:
    def __init__(self, state: TownState, spend: Spend) -> None:
        self._state, self._spend = state, spend

    def collect(self) -> Iterator[Metric]:
        yield from self._of_town()
        living = [each for each in self._state.polecats if each.ended is None]
        yield from _of_polecats(living)
        yield from _of_use(living)
        yield from _of_sidecars(living)

    def _of_town(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        state = self._state
        yield GaugeMetricFamily("gt_witness_up", "Whether a Witness runs.", value=int(bool(state.witness["running"])))
        available = state.machine["memory_available"]
        yield GaugeMetricFamily("gt_machine_memory_available_bytes", "Memory that is free for use.", value=available)
        kinds = Counter(each.activity for each in state.polecats)
        by_kind = GaugeMetricFamily("gt_polecats", "Polecats by what their agents do.", labels=["activity"])
        for kind in ActivityKind:
            by_kind.add_metric([kind], kinds[kind])
        yield by_kind
        spent = CounterMetricFamily("gt_sidecars_dollars", "What the sidecars' own model calls have cost.")
        spent.add_metric([], self._spend.dollars)
        yield spent
        calls = CounterMetricFamily("gt_sidecars_calls", "The sidecars' own model calls.")
        calls.add_metric([], self._spend.calls)
        yield calls


def _of_polecats(living: list[PolecatState]) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    doing = GaugeMetricFamily("gt_polecat_activity", "1 for what the agent does.", labels=[*_POLECAT, "activity"])
    waiting = GaugeMetricFamily("gt_polecat_waiting", "1 while it waits for a person.", labels=[*_POLECAT, "for"])
    uptime = GaugeMetricFamily("gt_polecat_uptime_seconds", "Since its spawn.", labels=_POLECAT)
    memory = GaugeMetricFamily("gt_polecat_memory_bytes", "Of its whole process tree.", labels=_POLECAT)
    used = CounterMetricFamily("gt_polecat_cpu_seconds", "Processor time of its living tree.", labels=_POLECAT)
    for each in living:
        who = [each.rig, each.polecat]
        doing.add_metric([*who, each.activity], 1)
        if each.waiting:
            waiting.add_metric([*who, each.waiting.reason], 1)
        for metric, value in ((uptime, each.uptime), (memory, each.memory), (used, each.cpu_seconds)):
            if value is not None:
                metric.add_metric(who, value)
    yield from (doing, waiting, uptime, memory, used)


def _of_use(living: list[PolecatState]) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    tokens = CounterMetricFamily("gt_polecat_tokens", "Of the agent's own model calls.", labels=[*_POLECAT, "kind"])
    dollars = CounterMetricFamily("gt_polecat_dollars", "What they cost, where that is known.", labels=_POLECAT)
    share = GaugeMetricFamily("gt_polecat_context_ratio", "Of its model's window that is full.", labels=_POLECAT)
    for each in living:
        who, usage = [each.rig, each.polecat], each.usage
        if usage is None:
            continue
        for kind in ("input", "cached", "cache_written", "output"):
            tokens.add_metric([*who, kind], getattr(usage, f"{kind}_tokens"))
        if usage.dollars is not None:
            dollars.add_metric(who, usage.dollars)
        if usage.context_share is not None:
            share.add_metric(who, usage.context_share)
    yield from (tokens, dollars, share)


def _of_sidecars(living: list[PolecatState]) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    speaks = GaugeMetricFamily("gt_sidecar_up", "1 while it runs and can speak.", labels=_SIDECAR)
    restarts = CounterMetricFamily("gt_sidecar_restarts", "In this run.", labels=_SIDECAR)
    lines = CounterMetricFamily("gt_sidecar_lines", "What became of what it said.", labels=[*_SIDECAR, "stage"])
    for each in living:
        for sidecar in each.sidecars:
            who = [each.rig, each.polecat, sidecar.name]
            speaks.add_metric(who, int(sidecar.state == "RUNNING" and not sidecar.mute))
            restarts.add_metric(who, sidecar.restarts)
            for stage in ("said", "delivered", "seen", "heeded", "unheeded"):
                lines.add_metric([*who, stage], getattr(sidecar.lines, stage))
    yield from (speaks, restarts, lines)
