"""Minute rows built from the state at the end of a minute."""

from datetime import UTC, datetime, timedelta

from fleetgauge_core.fleet import Mirror, Recovery, Tracers
from fleetgauge_core.tables import GROUP_MINUTES, MIRROR_MINUTES, PRODUCER_MINUTES
from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    CheckpointOrigin,
    PartitionRoute,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.mirror_state import ReplicationState
from fleetgauge_operations.recovery.plan.forecast import GroupForecast
from fleetgauge_operations.recovery.plan.sync_decision import ClusterPair
from fleetgauge_operations.recovery.readiness.plan.minutes import (
    EvaluationTime,
    build_group_minute,
    build_mirror_minute,
    build_producer_minute,
    latest_rto_by_group,
)
from fleetgauge_operations.recovery.readiness.plan.rates import InboundRates
from fleetgauge_operations.recovery.tracers.plan.delays import MirrorDelay, TracerAcks

AT = datetime(2026, 3, 2, 12, 1, 3, tzinfo=UTC)
NOW_MS = round(AT.timestamp() * 1000)
TIME = EvaluationTime(AT, datetime(2026, 3, 2, 12, 0, tzinfo=UTC))
MIRROR = Mirror(source="north", destination="all")
RECOVERY = Recovery(mirrors=(MIRROR,), tracers=Tracers())
IDS = TopicIds("s", "d")


def build_state(*records: tuple[str, Checkpoint]) -> ReplicationState:
    state = ReplicationState()
    for topic, checkpoint in records:
        state.apply_checkpoint(PartitionRoute("north", "all", topic, 0), IDS, checkpoint)
    return state


def build_checkpoint(src: int, ago_s: float, origin: CheckpointOrigin = CheckpointOrigin.SYNC) -> Checkpoint:
    return Checkpoint(src, src, NOW_MS - round(1000 * ago_s), origin)


REACHABLE = frozenset({"north"})
#: 20 records of orders are not replicated; payments is replicated completely.
LAGGING = build_state(
    ("orders", build_checkpoint(80, 50, CheckpointOrigin.FENCE)),
    ("orders", build_checkpoint(79, 9)),
    ("orders", build_checkpoint(100, 5, CheckpointOrigin.FENCE)),
    ("payments", build_checkpoint(10, 3, CheckpointOrigin.IDLE_WATERMARK)),
    ("fleetgauge.tracers", build_checkpoint(4, 500)),
    ("fleetgauge.tracers", build_checkpoint(900, 500, CheckpointOrigin.FENCE)),
)


def test_a_mirror_minute_sums_all_partitions_except_the_tracers_topic() -> None:
    row = build_mirror_minute(MIRROR, RECOVERY, LAGGING, None, None, REACHABLE, TIME)
    assert set(row) == set(MIRROR_MINUTES.column_names)
    assert (row["source_answers"], row["destination_answers"]) == (True, False)
    assert (row["minute"], row["day"]) == (TIME.minute, TIME.minute.date())
    assert (row["partitions"], row["idle"], row["behind_at_most"], row["behind_s_at_most"]) == (
        2,
        1,
        20,
        50.0,
    )
    assert (row["silent_s"], row["fresh"], row["behind"], row["behind_s"]) == (9.0, True, None, None)


def test_a_topic_that_is_no_longer_mirrored_does_not_make_the_mirror_stale() -> None:
    of_two = build_state(
        ("orders", build_checkpoint(80, 5)),
        ("deleted", build_checkpoint(10, 500)),
        ("deleted", build_checkpoint(30, 400, CheckpointOrigin.FENCE)),
    )
    assert build_mirror_minute(MIRROR, RECOVERY, of_two, None, None, REACHABLE, TIME)["silent_s"] == 500
    of_two.set_topics("north", "all", ["orders"])
    row = build_mirror_minute(MIRROR, RECOVERY, of_two, None, None, REACHABLE, TIME)
    assert (row["partitions"], row["silent_s"], row["fresh"]) == (1, 5, True)


def test_the_lag_estimated_by_tracers_does_not_exceed_the_upper_bound() -> None:
    delay = MirrorDelay(delays_ms=(400, 200, 300), late_s=0.3, looped=2)
    row = build_mirror_minute(MIRROR, RECOVERY, LAGGING, delay, 10.0, REACHABLE, TIME)
    assert (row["behind_s"], row["behind"]) == (0.3, 3)
    assert (row["tracers"], row["tracer_p50_ms"], row["tracer_p99_ms"], row["looped"]) == (3, 300, 400, 2)
    far = build_mirror_minute(MIRROR, RECOVERY, LAGGING, MirrorDelay(late_s=900), 10.0, REACHABLE, TIME)
    assert (far["behind_s"], far["behind"]) == (900, 20)
    assert build_mirror_minute(MIRROR, RECOVERY, LAGGING, delay, None, REACHABLE, TIME)["behind"] is None


def test_unknown_values_are_none_instead_of_zero() -> None:
    of_one = build_state(("orders", build_checkpoint(79, 9)))
    row = build_mirror_minute(MIRROR, RECOVERY, of_one, None, None, REACHABLE, TIME)
    assert (row["behind_at_most"], row["behind_s_at_most"]) == (None, None)
    row = build_mirror_minute(MIRROR, RECOVERY, ReplicationState(), None, None, REACHABLE, TIME)
    assert (row["partitions"], row["behind_at_most"], row["silent_s"], row["fresh"]) == (0, None, None, False)


def test_a_mirror_without_progress_beyond_the_limit_is_not_fresh() -> None:
    late = EvaluationTime(AT + timedelta(seconds=112), TIME.minute)
    assert build_mirror_minute(MIRROR, RECOVERY, LAGGING, None, None, REACHABLE, late)["fresh"] is False


def test_a_group_minute_has_the_values_of_its_forecast() -> None:
    row = build_group_minute(
        ClusterPair("north-all", "south-all"), GroupForecast("g", (), ("a", "b")), 120, TIME
    )
    assert set(row) == set(GROUP_MINUTES.column_names)
    assert (row["ready"], row["reasons"], row["rto_ms"], row["lost_s_at_most"]) == (False, "a,b", 120, None)


def test_a_producer_minute_counts_acknowledged_tracers() -> None:
    row = build_producer_minute("apps", "north", TracerAcks(3, (9, 5)), 10.0, None, TIME)
    assert set(row) == set(PRODUCER_MINUTES.column_names)
    assert (row["sent"], row["acknowledged"], row["ack_p50_ms"], row["ack_p99_ms"]) == (3, 2, 5, 9)


def test_the_rto_is_that_of_the_last_executed_drill() -> None:
    def drill_row(days: int, executed: bool, first: int | None = 30) -> dict[str, object]:
        return {
            "at": AT + timedelta(days=days),
            "executed": executed,
            "active": "a",
            "passive": "p",
            "group_id": "g",
            "decide_ms": 10,
            "write_ms": 5,
            "first_record_ms": first,
        }

    rows = [drill_row(2, executed=True), drill_row(1, executed=True, first=900), drill_row(3, executed=False)]
    assert latest_rto_by_group(rows) == {("a", "p", "g"): 45}
    assert latest_rto_by_group([drill_row(1, executed=True, first=None)]) == {("a", "p", "g"): 15}


def test_a_rate_covers_the_last_minute_and_ignores_new_partitions() -> None:
    rates = InboundRates()
    assert rates.records_per_s("north") is None
    rates.observe("north", {("orders", 0): 100}, 0)
    assert rates.records_per_s("north") is None
    rates.observe("north", {("orders", 0): 200, ("new", 0): 5_000}, 10_000)
    assert rates.records_per_s("north") == 10
    for second in range(20, 101, 10):
        rates.observe("north", {("orders", 0): 200, ("new", 0): 5_000 + second}, 1_000 * second)
    assert rates.records_per_s("north") == 1
    rates.observe("north", {("orders", 0): 3, ("new", 0): 5_100}, 110_000)
    assert rates.records_per_s("north") == 50 / 60
