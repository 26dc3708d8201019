"""Forecasts of the replay and loss of a failover."""

from dataclasses import replace

import pytest

from fleetgauge_core.fleet import RecoveryLimits
from fleetgauge_operations.recovery.group_offset_sync import GroupSyncPlan
from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    CheckpointOrigin,
    LogRange,
    PartitionRoute,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.lag import ReplicationLag, measure_lag
from fleetgauge_operations.recovery.offsets.mirror_state import ReplicationState
from fleetgauge_operations.recovery.plan.forecast import GroupForecast, forecast_group
from fleetgauge_operations.recovery.plan.sync_decision import (
    ClusterPair,
    CommittedPosition,
    PassivePartition,
    SyncDecision,
    SyncVerdict,
)
from tests.unit.operations.recovery.histories import build_history

IDS = TopicIds("s", "d")
ROUTE = PartitionRoute("north", "south-all", "orders", 0)
LIMITS = RecoveryLimits(replay_records=30, lost_records=5)
#: 100 records on both sides, of which the group has not consumed the last ten.
DECISION = SyncDecision(
    CommittedPosition("orders", 0, committed=90, end=100),
    PassivePartition("orders", 0, LogRange(0, 100), has_members=False),
    SyncVerdict.WRITE,
    resume=70,
    passive_routes=(ROUTE,),
)


def build_state(*rows: Checkpoint) -> ReplicationState:
    state = ReplicationState()
    for row in rows:
        state.apply_checkpoint(ROUTE, IDS, row)
    return state


FULLY_REPLICATED = build_state(
    Checkpoint(99, 99, 1_000), Checkpoint(100, 100, 2_000, CheckpointOrigin.IDLE_WATERMARK)
)


def forecast_failover(
    *decisions: SyncDecision,
    state: ReplicationState = FULLY_REPLICATED,
    failing: frozenset[str] = frozenset({"north"}),
) -> GroupForecast:
    return forecast_group("billing", decisions, failing, LIMITS, state, now_ms=10_000)


def test_replay_excludes_unconsumed_records() -> None:
    forecast = forecast_failover(DECISION)
    assert (forecast.replay_at_most, forecast.replay, forecast.lost_at_most) == (30, 20, 0)
    assert (forecast.is_ready, forecast.reasons) == (True, ())


def test_unreplicated_records_of_failing_sources_are_lost() -> None:
    behind = build_state(
        Checkpoint(80, 80, 3_000, CheckpointOrigin.FENCE),
        Checkpoint(89, 89, 4_000),
        Checkpoint(97, 95, 5_000, CheckpointOrigin.FENCE),
    )
    forecast = forecast_failover(DECISION, state=behind)
    assert forecast.lost_at_most == 7
    assert forecast.partitions[0].lost_s_at_most == 7.0
    assert forecast.reasons == ("loss",)
    assert forecast_failover(DECISION, state=behind, failing=frozenset()).lost_at_most == 0


def test_unknown_values_are_none_instead_of_zero() -> None:
    assert forecast_failover(DECISION, state=ReplicationState()).reasons == ("unknown_lag",)
    unknown = replace(DECISION, verdict=SyncVerdict.UNBOUNDED, resume=None)
    forecast = forecast_failover(DECISION, unknown)
    assert (forecast.replay, forecast.replay_at_most) == (None, None)
    assert forecast.reasons == ("unbounded",)


def test_without_writes_a_group_resumes_from_the_committed_offset() -> None:
    """The committed offset may be that of MirrorMaker's own group offset sync."""
    plan = GroupSyncPlan("billing", ClusterPair("north-all", "south-all"), (DECISION,))
    assert forecast_failover(*plan.without_writes.decisions).reasons == ("not_written",)
    committed = replace(DECISION, passive=replace(DECISION.passive, committed=65))
    forecast = forecast_failover(*replace(plan, decisions=(committed,)).without_writes.decisions)
    assert (forecast.replay_at_most, forecast.replay, forecast.reasons) == (35, 25, ())
    expired = replace(DECISION, passive=replace(DECISION.passive, log=LogRange(66, 100), committed=65))
    assert forecast_failover(*replace(plan, decisions=(expired,)).without_writes.decisions).reasons == (
        "not_written",
    )
    reset = replace(DECISION, passive=replace(DECISION.passive, committed=71))
    assert forecast_failover(*replace(plan, decisions=(reset,)).without_writes.decisions).reasons == (
        "backwards",
    )
    unchanged = replace(DECISION, verdict=SyncVerdict.UNCHANGED)
    assert replace(plan, decisions=(unchanged,)).without_writes.decisions == (unchanged,)


@pytest.mark.parametrize("verdict", [verdict for verdict in SyncVerdict if not verdict.is_ok])
def test_every_verdict_against_writing_makes_a_group_not_ready(verdict: SyncVerdict) -> None:
    assert forecast_failover(DECISION, replace(DECISION, verdict=verdict)).reasons[0] == verdict


def test_too_much_replay_is_not_ready() -> None:
    assert forecast_failover(replace(DECISION, resume=59)).reasons == ("replay",)


def test_a_group_without_committed_offsets_is_not_ready() -> None:
    assert forecast_failover().reasons == ("nothing_committed",)


def test_the_replication_lag_is_bounded_by_observations() -> None:
    assert measure_lag(build_history(), 0) is None
    assert measure_lag(build_history([(9, 9)], watermarks=[(10, 10)]), 0) == ReplicationLag(0, 0)
    assert measure_lag(build_history([(9, 9)], fences=[(15, 12)]), 5_000) == ReplicationLag(5, None)
    history = build_history([(9, 9)])
    history.append(Checkpoint(10, 10, 1_000, CheckpointOrigin.FENCE))
    history.append(Checkpoint(15, 12, 4_000, CheckpointOrigin.FENCE))
    assert measure_lag(history, 5_000) == ReplicationLag(5, 4.0)
