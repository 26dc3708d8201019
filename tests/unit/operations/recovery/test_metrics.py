from prometheus_client import CollectorRegistry

from fleetgauge_core.fleet import Mirror
from fleetgauge_operations.recovery.group_offset_sync import GroupPlan
from fleetgauge_operations.recovery.metrics import RecoverMetrics
from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    Log,
    Origin,
    Route,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.mirror_state import Known
from fleetgauge_operations.recovery.plan.sync_decision import (
    Decision,
    Pair,
    Passive,
    Position,
    Verdict,
)

IDS = TopicIds("s", "d")
MIRROR = Mirror(source="north", destination="south")
WAY = {"source": "north", "destination": "south"}


def test_a_mirror_is_as_far_as_its_last_partition_and_behind_by_all_of_them() -> None:
    registry = CollectorRegistry()
    known = Known()
    for number, at_ms in ((0, 5_000), (1, 9_000)):
        route = Route("north", "south", "orders", number)
        known.learn(route, IDS, Checkpoint(9, 9, at_ms))
        known.learn(route, IDS, Checkpoint(14, 10, 9_000, Origin.FENCE))
    known.learn(Route("north", "elsewhere", "orders", 0), IDS, Checkpoint(9, 9, 1_000))
    RecoverMetrics(registry).looked(known, [MIRROR], 10_000)
    assert registry.get_sample_value("fleetgauge_mirror_kept_up_timestamp_seconds", WAY) == 5.0
    assert registry.get_sample_value("fleetgauge_mirror_behind_records", WAY) == 8


def test_groups_are_counted_by_what_is_said_of_their_partitions() -> None:
    registry = CollectorRegistry()
    metrics = RecoverMetrics(registry)

    def plan(group: str, *verdicts: Verdict) -> GroupPlan:
        position, there = Position("orders", 0, 5, 9), Passive("orders", 0, Log(0, 9), connected=False)
        decisions = tuple(Decision(position, there, verdict) for verdict in verdicts)
        return GroupPlan(group, Pair("north", "south"), decisions)

    def count(verdict: str) -> float | None:
        labels = {"active": "north", "passive": "south", "verdict": verdict}
        return registry.get_sample_value("fleetgauge_recovery_groups", labels)

    stale = plan("billing", Verdict.STALE, Verdict.STALE, Verdict.WRITE)
    metrics.moved("north", "south", [stale, plan("orders", Verdict.UNCHANGED)])
    assert (count("stale"), count("write"), count("unchanged"), count("connected")) == (1, 1, 1, 0)
    metrics.moved("north", "south", [plan("orders", Verdict.UNCHANGED)])
    assert (count("stale"), count("unchanged")) == (0, 1)
