"""Rows of a minute, from what is known at its end."""

from datetime import UTC, datetime, timedelta

from fleetgauge_core.fleet import Mirror, Recovery, Tracers
from fleetgauge_core.tables import GROUP_MINUTES, MIRROR_MINUTES, PRODUCER_MINUTES
from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    Origin,
    Route,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.mirror_state import Known
from fleetgauge_operations.recovery.plan.forecast import GroupForecast
from fleetgauge_operations.recovery.plan.sync_decision import Pair
from fleetgauge_operations.recovery.readiness.plan.minutes import (
    Moment,
    group_minute,
    mirror_minute,
    producer_minute,
    rto_by_group,
)
from fleetgauge_operations.recovery.readiness.plan.rates import Rates
from fleetgauge_operations.recovery.tracers.plan.delays import Acks, Delay

AT = datetime(2026, 3, 2, 12, 1, 3, tzinfo=UTC)
NOW_MS = round(AT.timestamp() * 1000)
MOMENT = Moment(AT, datetime(2026, 3, 2, 12, 0, tzinfo=UTC))
MIRROR = Mirror(source="north", destination="all")
RECOVERY = Recovery(mirrors=(MIRROR,), tracers=Tracers())
IDS = TopicIds("s", "d")


def known(*facts: tuple[str, Checkpoint]) -> Known:
    found = Known()
    for topic, one in facts:
        found.learn(Route("north", "all", topic, 0), IDS, one)
    return found


def at(src: int, ago_s: float, origin: Origin = Origin.SYNC) -> Checkpoint:
    return Checkpoint(src, src, NOW_MS - round(1000 * ago_s), origin)


ANSWERING = frozenset({"north"})
#: orders lacks the last 20 records; payments has nothing left to copy.
LAGS = known(
    ("orders", at(80, 50, Origin.FENCE)),
    ("orders", at(79, 9)),
    ("orders", at(100, 5, Origin.FENCE)),
    ("payments", at(10, 3, Origin.IDLE_WATERMARK)),
    ("fleetgauge.tracers", at(4, 500)),
    ("fleetgauge.tracers", at(900, 500, Origin.FENCE)),
)


def test_a_mirror_is_behind_by_all_its_partitions_but_tracers() -> None:
    row = mirror_minute(MIRROR, RECOVERY, LAGS, None, None, ANSWERING, MOMENT)
    assert set(row) == set(MIRROR_MINUTES.names)
    assert (row["source_answers"], row["destination_answers"]) == (True, False)
    assert (row["minute"], row["day"]) == (MOMENT.minute, MOMENT.minute.date())
    assert (row["partitions"], row["idle"], row["behind_at_most"], row["behind_s_at_most"]) == (
        2,
        1,
        20,
        50.0,
    )
    assert (row["silent_s"], row["fresh"], row["behind"], row["behind_s"]) == (9.0, True, None, None)


def test_a_topic_that_the_mirror_has_no_more_makes_nobody_stale() -> None:
    of_two = known(("orders", at(80, 5)), ("deleted", at(10, 500)), ("deleted", at(30, 400, Origin.FENCE)))
    assert mirror_minute(MIRROR, RECOVERY, of_two, None, None, ANSWERING, MOMENT)["silent_s"] == 500
    of_two.has_topics("north", "all", ["orders"])
    row = mirror_minute(MIRROR, RECOVERY, of_two, None, None, ANSWERING, MOMENT)
    assert (row["partitions"], row["silent_s"], row["fresh"]) == (1, 5, True)


def test_tracers_make_an_estimate_of_it_that_is_no_more_than_the_bound() -> None:
    delay = Delay(took_ms=(400, 200, 300), late_s=0.3, looped=2)
    row = mirror_minute(MIRROR, RECOVERY, LAGS, delay, 10.0, ANSWERING, MOMENT)
    assert (row["behind_s"], row["behind"]) == (0.3, 3)
    assert (row["tracers"], row["tracer_p50_ms"], row["tracer_p99_ms"], row["looped"]) == (3, 300, 400, 2)
    far = mirror_minute(MIRROR, RECOVERY, LAGS, Delay(late_s=900), 10.0, ANSWERING, MOMENT)
    assert (far["behind_s"], far["behind"]) == (900, 20)
    assert mirror_minute(MIRROR, RECOVERY, LAGS, delay, None, ANSWERING, MOMENT)["behind"] is None


def test_what_nobody_knows_is_no_zero() -> None:
    of_one = known(("orders", at(79, 9)))
    row = mirror_minute(MIRROR, RECOVERY, of_one, None, None, ANSWERING, MOMENT)
    assert (row["behind_at_most"], row["behind_s_at_most"]) == (None, None)
    row = mirror_minute(MIRROR, RECOVERY, Known(), None, None, ANSWERING, MOMENT)
    assert (row["partitions"], row["behind_at_most"], row["silent_s"], row["fresh"]) == (0, None, None, False)


def test_a_mirror_that_was_not_heard_for_longer_than_the_limit_is_not_fresh() -> None:
    late = Moment(AT + timedelta(seconds=112), MOMENT.minute)
    assert mirror_minute(MIRROR, RECOVERY, LAGS, None, None, ANSWERING, late)["fresh"] is False


def test_a_group_is_as_its_forecast_says() -> None:
    row = group_minute(Pair("north-all", "south-all"), GroupForecast("g", (), ("a", "b")), 120, MOMENT)
    assert set(row) == set(GROUP_MINUTES.names)
    assert (row["ready"], row["reasons"], row["rto_ms"], row["lost_s_at_most"]) == (False, "a,b", 120, None)


def test_a_cluster_is_as_its_tracers_were_acknowledged() -> None:
    row = producer_minute("apps", "north", Acks(3, (9, 5)), 10.0, None, MOMENT)
    assert set(row) == set(PRODUCER_MINUTES.names)
    assert (row["sent"], row["acknowledged"], row["ack_p50_ms"], row["ack_p99_ms"]) == (3, 2, 5, 9)


def test_a_drill_says_how_long_it_takes_until_the_next_one() -> None:
    def drilled(days: int, executed: bool, first: int | None = 30) -> dict[str, object]:
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

    rows = [drilled(2, executed=True), drilled(1, executed=True, first=900), drilled(3, executed=False)]
    assert rto_by_group(rows) == {("a", "p", "g"): 45}
    assert rto_by_group([drilled(1, executed=True, first=None)]) == {("a", "p", "g"): 15}


def test_a_rate_is_over_the_last_minute_and_of_what_was_there_before() -> None:
    rates = Rates()
    assert rates.of("north") is None
    rates.look("north", {("orders", 0): 100}, 0)
    assert rates.of("north") is None
    rates.look("north", {("orders", 0): 200, ("new", 0): 5_000}, 10_000)
    assert rates.of("north") == 10
    for second in range(20, 101, 10):
        rates.look("north", {("orders", 0): 200, ("new", 0): 5_000 + second}, 1_000 * second)
    assert rates.of("north") == 1
    rates.look("north", {("orders", 0): 3, ("new", 0): 5_100}, 110_000)
    assert rates.of("north") == 50 / 60
