"""Replication states of two regions and their aggregates."""

from fleetgauge_core.fleet import (
    Capacity,
    Mirror,
    Recovery,
    RecoveryLimits,
)
from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    CheckpointOrigin,
    PartitionRoute,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.mirror_state import ReplicationState
from fleetgauge_operations.recovery.plan.sync_decision import ClusterPair
from fleetgauge_operations.recovery.primaries.plan.primary_state import ClusterReachability

PAIR = ClusterPair("north-all", "south-all")
REGIONS = {"north": "north", "north-all": "north", "south": "south", "south-all": "south"}
ALL_REACHABLE = ClusterReachability(REGIONS, frozenset(REGIONS), frozenset(REGIONS))
RECOVERY = Recovery(
    mirrors=tuple(
        Mirror(source=source, destination=aggregate, names="kept")
        for aggregate in ("north-all", "south-all")
        for source in ("north", "south")
    ),
    limits=RecoveryLimits(stale_s=30, lost_records=100),
    capacities=(Capacity(cluster="south-all", records_per_s=1_000),),
)
NOW_MS = 1_000_000
#: When the window starts, and when the first observation was made.
BEGAN_MS, FIRST_MS = NOW_MS - 300_000, NOW_MS - 400_000


def add_observations(
    state: ReplicationState,
    source: str,
    destination: str,
    replicated: int,
    end: int,
    began: int | None = 0,
    topic: str = "orders",
    at_ms: int = NOW_MS,
    source_id: str = "s",
) -> ReplicationState:
    """Add a partition whose source ended at ``began`` when the window began, and ends at ``end``."""
    route, ids = PartitionRoute(source, destination, topic, 0), TopicIds(source_id, "d")
    if began is not None:
        state.apply_checkpoint(route, ids, Checkpoint(began, began, FIRST_MS, CheckpointOrigin.FENCE))
    if replicated:
        state.apply_checkpoint(route, ids, Checkpoint(replicated - 1, replicated - 1, at_ms - 1_000))
    origin = CheckpointOrigin.IDLE_WATERMARK if replicated == end else CheckpointOrigin.FENCE
    state.apply_checkpoint(route, ids, Checkpoint(end, max(replicated, began or 0), at_ms, origin))
    state.mark_inspected(source, destination, at_ms)
    return state


def build_state(
    in_north: int = 500, in_south: int = 500, end: int = 500, began: int | None = 100
) -> ReplicationState:
    """Return a state in which the partition of south is replicated completely."""
    state = ReplicationState()
    add_observations(state, "north", "north-all", in_north, end, began)
    add_observations(state, "north", "south-all", in_south, end, began)
    for aggregate in ("north-all", "south-all"):
        add_observations(state, "south", aggregate, 50, 50)
    return state
