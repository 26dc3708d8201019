"""Two regions and their aggregates, as far as they are known."""

from fleetgauge_core.fleet import (
    Capacity,
    Mirror,
    Recovery,
    RecoveryLimits,
)
from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    Origin,
    Route,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.mirror_state import Known
from fleetgauge_operations.recovery.plan.sync_decision import Pair
from fleetgauge_operations.recovery.primaries.plan.primary_state import Reach

PAIR = Pair("north-all", "south-all")
REGIONS = {"north": "north", "north-all": "north", "south": "south", "south-all": "south"}
REACH = Reach(REGIONS, frozenset(REGIONS), frozenset(REGIONS))
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
#: When the window began, and the first look was.
BEGAN_MS, FIRST_MS = NOW_MS - 300_000, NOW_MS - 400_000


def sight(
    known: Known,
    source: str,
    destination: str,
    copied: int,
    end: int,
    began: int | None = 0,
    topic: str = "orders",
    at_ms: int = NOW_MS,
    source_id: str = "s",
) -> Known:
    """One partition: the source ended at ``began`` when the window began, and ends at ``end``."""
    route, ids = Route(source, destination, topic, 0), TopicIds(source_id, "d")
    if began is not None:
        known.learn(route, ids, Checkpoint(began, began, FIRST_MS, Origin.FENCE))
    if copied:
        known.learn(route, ids, Checkpoint(copied - 1, copied - 1, at_ms - 1_000))
    origin = Origin.IDLE_WATERMARK if copied == end else Origin.FENCE
    known.learn(route, ids, Checkpoint(end, max(copied, began or 0), at_ms, origin))
    known.look(source, destination, at_ms)
    return known


def sights(in_north: int = 500, in_south: int = 500, end: int = 500, began: int | None = 100) -> Known:
    """Of the topic of north; south's is all across."""
    known = Known()
    sight(known, "north", "north-all", in_north, end, began)
    sight(known, "north", "south-all", in_south, end, began)
    for aggregate in ("north-all", "south-all"):
        sight(known, "south", aggregate, 50, 50)
    return known
