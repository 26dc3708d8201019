"""All tables of a lake."""

from fleetgauge_core.tables.bronze import PROBE_MINUTES
from fleetgauge_core.tables.gold import (
    BURN_CAUSES,
    CHANGE_COSTS,
    CLUSTER_WEEKS,
    EVIDENCE,
    FLEET_WEEKS,
    RECOVERY_WEEKS,
)
from fleetgauge_core.tables.model import Table, TableOwner
from fleetgauge_core.tables.ops import ACTIONS, CHANGES, CORRECTIONS, HEALTH_EVENTS, QUALITY, QUARANTINE
from fleetgauge_core.tables.recovery import (
    CHECKPOINTS,
    DRILLS,
    GROUP_MINUTES,
    MIRROR_MINUTES,
    PRODUCER_MINUTES,
    RECOVERY_FINDINGS,
)
from fleetgauge_core.tables.silver import BROKER_MINUTES, CLUSTER_MINUTES

ALL_TABLES: tuple[Table, ...] = (
    PROBE_MINUTES,
    QUARANTINE,
    BROKER_MINUTES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    FLEET_WEEKS,
    BURN_CAUSES,
    CHANGE_COSTS,
    EVIDENCE,
    HEALTH_EVENTS,
    CORRECTIONS,
    ACTIONS,
    CHANGES,
    QUALITY,
    CHECKPOINTS,
    DRILLS,
    MIRROR_MINUTES,
    GROUP_MINUTES,
    PRODUCER_MINUTES,
    RECOVERY_FINDINGS,
    RECOVERY_WEEKS,
)

#: The tables that the pipeline writes while it holds the lease of the lake.
PIPELINE_TABLES = tuple(table for table in ALL_TABLES if table.owner is TableOwner.PIPELINE)
