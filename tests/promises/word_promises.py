"""Words that are stored, sent or printed: kinds of findings, states, causes, actions, verdicts, outcomes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import timedelta
from typing import get_args

from fleetgauge_core.contract import Leg
from fleetgauge_core.detection import DEFAULT_THRESHOLDS, HealthCondition, HealthState
from fleetgauge_core.detection.slowness import LatencyClass
from fleetgauge_core.fleet.burn_windows import BURN_WINDOWS
from fleetgauge_core.kafka.connection_failure import ConnectionFailure
from fleetgauge_core.slo.burn import BurnAlertState as BurnState
from fleetgauge_core.slo.causes import PRECEDENCE
from fleetgauge_core.slo.levels import DEFINITION
from fleetgauge_core.tables import (
    MITIGATION_KINDS,
    REMARK_KINDS,
    ActionOutcome,
    ChangeKind,
    ChangePhase,
    ColumnType,
)
from fleetgauge_dashboards.identity import Role
from fleetgauge_dashboards.links import Window
from fleetgauge_dashboards.views.alert_remarks import AlertJudgement
from fleetgauge_dashboards.views.comparison import ComparisonVerdict as ComparedVerdict
from fleetgauge_dashboards.views.freshness import DataAge
from fleetgauge_dashboards.views.samples import SampleSource
from fleetgauge_local.layout import TOPOLOGIES
from fleetgauge_local.runner_protocol import BrokerState, ClusterState, FaultKind, MirrorState
from fleetgauge_operations.actions.plan.refusals import RefusalReason
from fleetgauge_operations.recovery.offsets.checkpoint import CheckpointOrigin
from fleetgauge_operations.recovery.offsets.mapping import ConstraintBasis
from fleetgauge_operations.recovery.offsets.mapping_rule import MappingRule
from fleetgauge_operations.recovery.plan.forecast import NotReadyReason
from fleetgauge_operations.recovery.plan.sync_decision import SyncVerdict
from fleetgauge_operations.recovery.primaries.plan.precondition_name import PreconditionName
from fleetgauge_operations.recovery.primaries.promotion_executor import PromotionOutcome
from fleetgauge_operations.recovery.readiness.plan.conditions import ConditionKind as RecoveryKind
from fleetgauge_operations.replay import SUFFIX
from fleetgauge_operations.replay.comparison import ReplayVerdict
from fleetgauge_pipelines.jobs.backtest_command import BacktestVerdict
from fleetgauge_pipelines.simulation.incidents import IncidentKind as PlantedKind
from fleetgauge_probes.agent.probe_tracker import (
    ACK_LATE,
    NO_REPORT,
    NOT_LEADING,
    NOT_RECEIVED,
)

#: The words of each kind.
_WORDS: Mapping[str, Iterable[str]] = {
    "finding: kind": HealthCondition,
    "finding: state": HealthState,
    "finding: pace of a round": LatencyClass,
    "recovery finding: kind": RecoveryKind,
    "bad minute: cause": dict.fromkeys(PRECEDENCE),
    "probe: leg": Leg,
    "probe: own failure": (ACK_LATE, NO_REPORT, NOT_LEADING, NOT_RECEIVED),
    "probe: silence": [silence.description for silence in ConnectionFailure],
    "mitigation: action": MITIGATION_KINDS,
    "mitigation: outcome": ActionOutcome,
    "mitigation: fail-safe": RefusalReason,
    "remark: kind": REMARK_KINDS,
    "remark: judgement": AlertJudgement,
    "recovery: verdict of a partition": SyncVerdict,
    "recovery: reason against a group": NotReadyReason,
    "recovery: rule": MappingRule,
    "recovery: why of a constraint": ConstraintBasis,
    "recovery: origin of a checkpoint": CheckpointOrigin,
    "change: kind": ChangeKind,
    "change: phase": ChangePhase,
    "promotion: precondition": PreconditionName,
    "promotion: outcome": PromotionOutcome,
    "replay: verdict": ReplayVerdict,
    "replay: suffix of a file": (SUFFIX,),
    "backtest: verdict": BacktestVerdict,
    "burn alert: state": BurnState,
    "compare: verdict": get_args(ComparedVerdict),
    "explain: source of samples": get_args(SampleSource),
    "page: leg": Leg,
    "page: window": Window,
    "page: role": Role,
    "page: state of the data": DataAge,
    "fleet: topology": TOPOLOGIES,
    "fleet: fault": get_args(FaultKind),
    "fleet: state of a broker": get_args(BrokerState),
    "fleet: state of a cluster": get_args(ClusterState),
    "fleet: state of a mirror": get_args(MirrorState),
    "simulate: incident": PlantedKind,
    "table: type of a column": [kind.value for kind in ColumnType],
    "week: definition": (DEFINITION,),
}


def collect() -> Iterator[str]:
    for kind, words in _WORDS.items():
        yield from (f"{kind} {word}" for word in words)
    yield f"mitigation: ladder {', '.join(MITIGATION_KINDS)}"
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
    """Yield thresholds as for `replay run --set`: durations in seconds."""
    for field in fields(DEFAULT_THRESHOLDS):
        value = getattr(DEFAULT_THRESHOLDS, field.name)
        number = value.total_seconds() if isinstance(value, timedelta) else value
        yield f"threshold: {field.name} {number:g}"
