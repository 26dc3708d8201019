"""The tables of the lake: paths, columns and keys, on which all readers rely.

The definitions are plain data, so that Spark jobs and readers without a JVM (dashboards,
operations) share them. Column names contain the unit: ``*_us`` is microseconds and
``*_minutes`` is minutes; ratios and availabilities are doubles from 0 to 1.
"""

from fleetgauge_core.tables.action_kinds import (
    CASE_KINDS,
    CAUSE_KINDS,
    MITIGATION_KINDS,
    OUTCOMES_FOR_OPERATORS,
    OUTCOMES_WITHOUT_EFFECT,
    REMARK_KINDS,
    ActionKind,
    ActionOutcome,
)
from fleetgauge_core.tables.bronze import PROBE_MINUTES
from fleetgauge_core.tables.change_kinds import REPORTED_KINDS, ChangeKind, ChangePhase
from fleetgauge_core.tables.gold import (
    BURN_CAUSES,
    CHANGE_COSTS,
    CLUSTER_WEEKS,
    EVIDENCE,
    FLEET_WEEKS,
    RECOVERY_WEEKS,
)
from fleetgauge_core.tables.model import Column, ColumnType, Table, TableOwner
from fleetgauge_core.tables.ops import (
    ACCEPTABLE_REASONS,
    ACTIONS,
    CHANGES,
    CORRECTIONS,
    HEALTH_EVENTS,
    QUALITY,
    QUARANTINE,
    QUARANTINE_REASONS,
)
from fleetgauge_core.tables.recovery import (
    CHECKPOINTS,
    DRILLS,
    GROUP_MINUTES,
    MIRROR_MINUTES,
    PRODUCER_MINUTES,
    RECOVERY_FINDINGS,
)
from fleetgauge_core.tables.registry import ALL_TABLES, PIPELINE_TABLES
from fleetgauge_core.tables.silver import BROKER_MINUTES, CLUSTER_MINUTES

__all__ = [
    "ACCEPTABLE_REASONS",
    "ACTIONS",
    "ALL_TABLES",
    "BROKER_MINUTES",
    "BURN_CAUSES",
    "CASE_KINDS",
    "CAUSE_KINDS",
    "CHANGES",
    "CHANGE_COSTS",
    "CHECKPOINTS",
    "CLUSTER_MINUTES",
    "CLUSTER_WEEKS",
    "CORRECTIONS",
    "DRILLS",
    "EVIDENCE",
    "FLEET_WEEKS",
    "GROUP_MINUTES",
    "HEALTH_EVENTS",
    "MIRROR_MINUTES",
    "MITIGATION_KINDS",
    "OUTCOMES_FOR_OPERATORS",
    "OUTCOMES_WITHOUT_EFFECT",
    "PIPELINE_TABLES",
    "PROBE_MINUTES",
    "PRODUCER_MINUTES",
    "QUALITY",
    "QUARANTINE",
    "QUARANTINE_REASONS",
    "RECOVERY_FINDINGS",
    "RECOVERY_WEEKS",
    "REMARK_KINDS",
    "REPORTED_KINDS",
    "ActionKind",
    "ActionOutcome",
    "ChangeKind",
    "ChangePhase",
    "Column",
    "ColumnType",
    "Table",
    "TableOwner",
]
