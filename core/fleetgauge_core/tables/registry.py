"""Every table of a lake, family by family."""

from fleetgauge_core.tables.bronze import PROBE_MINUTES
from fleetgauge_core.tables.gold import BURN_CAUSES, CLUSTER_WEEKS, EVIDENCE, FLEET_WEEKS, RECOVERY_WEEKS
from fleetgauge_core.tables.model import Owner, Table
from fleetgauge_core.tables.ops import ACTIONS, CORRECTIONS, HEALTH_EVENTS, QUALITY, QUARANTINE
from fleetgauge_core.tables.recovery import (
    CHECKPOINTS,
    DRILLS,
    GROUP_MINUTES,
    MIRROR_MINUTES,
    PRODUCER_MINUTES,
    RECOVERY_FINDINGS,
)
from fleetgauge_core.tables.silver import BROKER_MINUTES, CLUSTER_MINUTES

ALL: tuple[Table, ...] = (
    PROBE_MINUTES,
    QUARANTINE,
    BROKER_MINUTES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    FLEET_WEEKS,
    BURN_CAUSES,
    EVIDENCE,
    HEALTH_EVENTS,
    CORRECTIONS,
    ACTIONS,
    QUALITY,
    CHECKPOINTS,
    DRILLS,
    MIRROR_MINUTES,
    GROUP_MINUTES,
    PRODUCER_MINUTES,
    RECOVERY_FINDINGS,
    RECOVERY_WEEKS,
)

#: What the pipeline writes, under its lease; the others have writers of their own.
OF_THE_PIPELINE = tuple(table for table in ALL if table.owner is Owner.PIPELINE)
