"""The metrics of `fleetgauge recover run`."""

from prometheus_client import CollectorRegistry

from fleetgauge_core.fleet import Mirror
from fleetgauge_operations.recovery.group_offset_sync import GroupSyncPlan
from fleetgauge_operations.recovery.metrics import RecoveryMetrics
from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    CheckpointOrigin,
    LogRange,
    PartitionRoute,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.mirror_state import ReplicationState
from fleetgauge_operations.recovery.plan.sync_decision import (
    ClusterPair,
    CommittedPosition,
    PassivePartition,
    SyncDecision,
    SyncVerdict,
)

IDS = TopicIds("s", "d")
MIRROR = Mirror(source="north", destination="south")
LABELS = {"source": "north", "destination": "south"}


def test_mirror_gauges_have_the_oldest_progress_and_the_total_lag() -> None:
    registry = CollectorRegistry()
    state = ReplicationState()
    for number, at_ms in ((0, 5_000), (1, 9_000)):
        route = PartitionRoute("north", "south", "orders", number)
        state.apply_checkpoint(route, IDS, Checkpoint(9, 9, at_ms))
        state.apply_checkpoint(route, IDS, Checkpoint(14, 10, 9_000, CheckpointOrigin.FENCE))
    state.apply_checkpoint(PartitionRoute("north", "elsewhere", "orders", 0), IDS, Checkpoint(9, 9, 1_000))
    RecoveryMetrics(registry).update_mirrors(state, [MIRROR], 10_000)
    assert registry.get_sample_value("fleetgauge_mirror_kept_up_timestamp_seconds", LABELS) == 5.0
    assert registry.get_sample_value("fleetgauge_mirror_behind_records", LABELS) == 8


def test_groups_are_counted_by_the_verdicts_on_their_partitions() -> None:
    registry = CollectorRegistry()
    metrics = RecoveryMetrics(registry)

    def plan(group: str, *verdicts: SyncVerdict) -> GroupSyncPlan:
        position, there = (
            CommittedPosition("orders", 0, 5, 9),
            PassivePartition("orders", 0, LogRange(0, 9), has_members=False),
        )
        decisions = tuple(SyncDecision(position, there, verdict) for verdict in verdicts)
        return GroupSyncPlan(group, ClusterPair("north", "south"), decisions)

    def count(verdict: str) -> float | None:
        labels = {"active": "north", "passive": "south", "verdict": verdict}
        return registry.get_sample_value("fleetgauge_recovery_groups", labels)

    stale = plan("billing", SyncVerdict.STALE, SyncVerdict.STALE, SyncVerdict.WRITE)
    metrics.update_groups("north", "south", [stale, plan("orders", SyncVerdict.UNCHANGED)])
    assert (count("stale"), count("write"), count("unchanged"), count("connected")) == (1, 1, 1, 0)
    metrics.update_groups("north", "south", [plan("orders", SyncVerdict.UNCHANGED)])
    assert (count("stale"), count("unchanged")) == (0, 1)
