"""Words that are stored, sent or printed: kinds of findings, states, causes, actions, verdicts, outcomes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import timedelta
from typing import get_args

from fleetgauge_core.contract import Leg
from fleetgauge_core.detection import DEFAULT_THRESHOLDS, Chain, Phase
from fleetgauge_core.detection.slowness import Pace
from fleetgauge_core.fleet.burn_windows import BURN_WINDOWS
from fleetgauge_core.kafka.connection_failure import Silence
from fleetgauge_core.slo.burn import State as BurnState
from fleetgauge_core.slo.causes import PRECEDENCE
from fleetgauge_core.slo.levels import DEFINITION
from fleetgauge_core.tables import Type
from fleetgauge_dashboards.identity import Role
from fleetgauge_dashboards.links import Leg as ShownLeg
from fleetgauge_dashboards.links import Window
from fleetgauge_dashboards.views.compared import Verdict as ComparedVerdict
from fleetgauge_dashboards.views.freshness import Age
from fleetgauge_dashboards.views.remarks import ACKNOWLEDGE, JUDGE, Judgement
from fleetgauge_dashboards.views.samples import Source
from fleetgauge_local.layout import TOPOLOGIES
from fleetgauge_local.messages import BrokerState, ClusterState, MirrorState
from fleetgauge_local.messages import Kind as FaultKind
from fleetgauge_operations.mitigation.case import LADDER, Action
from fleetgauge_operations.mitigation.case import Outcome as CaseOutcome
from fleetgauge_operations.mitigation.fail_safes import Why as FailSafe
from fleetgauge_operations.recovery.offsets.checkpoint import Origin
from fleetgauge_operations.recovery.offsets.mapping import Rule, Why
from fleetgauge_operations.recovery.plan.forecast import Reason
from fleetgauge_operations.recovery.plan.sync_decision import Verdict as GroupVerdict
from fleetgauge_operations.recovery.primaries.plan.promotion import Name as Precondition
from fleetgauge_operations.recovery.primaries.promotion_executor import Outcome as PromotionOutcome
from fleetgauge_operations.recovery.readiness.plan.conditions import Kind as RecoveryKind
from fleetgauge_operations.replay.incident import SUFFIX
from fleetgauge_operations.replay.rerun import Verdict as ReplayVerdict
from fleetgauge_pipelines.jobs.backtest_cli import Verdict as BacktestVerdict
from fleetgauge_pipelines.simulation.incidents import Kind as PlantedKind
from fleetgauge_probes.agent.probe_tracker import (
    ACK_LATE,
    NO_REPORT,
    NOT_LEADING,
    NOT_RECEIVED,
)

#: By what they are words of.
_WORDS: Mapping[str, Iterable[str]] = {
    "finding: kind": Chain,
    "finding: state": Phase,
    "finding: pace of a round": Pace,
    "recovery finding: kind": RecoveryKind,
    "bad minute: cause": PRECEDENCE,
    "probe: leg": Leg,
    "probe: own failure": (ACK_LATE, NO_REPORT, NOT_LEADING, NOT_RECEIVED),
    "probe: silence": [silence.value for silence in Silence],
    "mitigation: action": Action,
    "mitigation: outcome": CaseOutcome,
    "mitigation: fail-safe": FailSafe,
    "remark: kind": (ACKNOWLEDGE, JUDGE),
    "remark: judgement": Judgement,
    "recovery: verdict of a partition": GroupVerdict,
    "recovery: reason against a group": Reason,
    "recovery: rule": Rule,
    "recovery: why of a constraint": Why,
    "recovery: origin of a checkpoint": Origin,
    "promotion: precondition": Precondition,
    "promotion: outcome": PromotionOutcome,
    "replay: verdict": ReplayVerdict,
    "replay: suffix of a file": (SUFFIX,),
    "backtest: verdict": BacktestVerdict,
    "burn alert: state": BurnState,
    "compare: verdict": get_args(ComparedVerdict),
    "explain: source of samples": get_args(Source),
    "page: leg": ShownLeg,
    "page: window": Window,
    "page: role": Role,
    "page: state of the data": Age,
    "fleet: topology": TOPOLOGIES,
    "fleet: fault": get_args(FaultKind),
    "fleet: state of a broker": get_args(BrokerState),
    "fleet: state of a cluster": get_args(ClusterState),
    "fleet: state of a mirror": get_args(MirrorState),
    "simulate: incident": PlantedKind,
    "table: type of a column": [kind.value for kind in Type],
    "week: definition": (DEFINITION,),
}


def collect() -> Iterator[str]:
    for what, words in _WORDS.items():
        yield from (f"{what} {word}" for word in words)
    yield f"mitigation: ladder {', '.join(LADDER)}"
    yield from (f"recovery finding: {kind} is a {kind.severity}" for kind in RecoveryKind)
    yield from _burn_windows()
    yield from _thresholds()


def _burn_windows() -> Iterator[str]:
    for days, windows in BURN_WINDOWS.items():
        yield from (
            f"burn alert: {days} days, {window.severity} {window.name} at {window.factor:g}"
            for window in windows
        )


def _thresholds() -> Iterator[str]:
    """As `replay run --set` takes them: durations in seconds."""
    for field in fields(DEFAULT_THRESHOLDS):
        value = getattr(DEFAULT_THRESHOLDS, field.name)
        number = value.total_seconds() if isinstance(value, timedelta) else value
        yield f"threshold: {field.name} {number:g}"
