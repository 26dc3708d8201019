"""The lake's tables: names, columns and keys, the contract with every reader.

Plain data, so that readers without a JVM (dashboards, operations) and Spark
jobs share one truth. Units are in the names: ``*_us`` is microseconds,
``*_minutes`` minutes, ratios and availability are doubles in 0..1.
"""

from fleetgauge_core.tables.bronze import PROBE_MINUTES
from fleetgauge_core.tables.gold import BURN_CAUSES, CLUSTER_WEEKS, EVIDENCE, FLEET_WEEKS, RECOVERY_WEEKS
from fleetgauge_core.tables.model import Column, Owner, Table, Type
from fleetgauge_core.tables.ops import ACTIONS, CORRECTIONS, HEALTH_EVENTS, QUALITY, QUARANTINE, REASONS
from fleetgauge_core.tables.recovery import (
    CHECKPOINTS,
    DRILLS,
    GROUP_MINUTES,
    MIRROR_MINUTES,
    PRODUCER_MINUTES,
    RECOVERY_FINDINGS,
)
from fleetgauge_core.tables.registry import ALL, OF_THE_PIPELINE
from fleetgauge_core.tables.silver import BROKER_MINUTES, CLUSTER_MINUTES

__all__ = [
    "ACTIONS",
    "ALL",
    "BROKER_MINUTES",
    "BURN_CAUSES",
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
    "OF_THE_PIPELINE",
    "PROBE_MINUTES",
    "PRODUCER_MINUTES",
    "QUALITY",
    "QUARANTINE",
    "REASONS",
    "RECOVERY_FINDINGS",
    "RECOVERY_WEEKS",
    "Column",
    "Owner",
    "Table",
    "Type",
]
