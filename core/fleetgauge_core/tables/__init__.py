"""The lake's tables: names, columns and keys, the contract with every reader.

Plain data, so that readers without a JVM (dashboards, operations) and Spark
jobs share one truth. Units are in the names: ``*_us`` is microseconds,
``*_minutes`` minutes, ratios and availability are doubles in 0..1.
"""

from fleetgauge_core.tables.model import Column, Table, Type
from fleetgauge_core.tables.registry import (
    ACTIONS,
    ALL,
    BROKER_MINUTES,
    BURN_CAUSES,
    CHECKPOINTS,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    CORRECTIONS,
    DRILLS,
    EVIDENCE,
    FLEET_WEEKS,
    GROUP_MINUTES,
    HEALTH_EVENTS,
    MIRROR_MINUTES,
    OF_THE_PIPELINE,
    PROBE_MINUTES,
    PRODUCER_MINUTES,
    QUALITY,
    QUARANTINE,
    REASONS,
    RECOVERY_FINDINGS,
    RECOVERY_WEEKS,
)

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
    "Table",
    "Type",
]
