"""What a failover is said to cost."""

from dataclasses import replace

import pytest

from fleetgauge_core.fleet import RecoveryLimits
from fleetgauge_operations.recovery.group_offset_sync import GroupPlan
from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    Log,
    Origin,
    Route,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.lag import Lag, lag_of
from fleetgauge_operations.recovery.offsets.mirror_state import Known
from fleetgauge_operations.recovery.plan.forecast import GroupForecast, forecast
from fleetgauge_operations.recovery.plan.sync_decision import (
    Decision,
    Pair,
    Passive,
    Position,
    Verdict,
)
from tests.unit.operations.recovery.known import known

IDS = TopicIds("s", "d")
ROUTE = Route("north", "south-all", "orders", 0)
LIMITS = RecoveryLimits(replay_records=30, lost_records=5)
#: 100 records on both sides, of which the group has not consumed the last ten.
DECISION = Decision(
    Position("orders", 0, committed=90, end=100),
    Passive("orders", 0, Log(0, 100), connected=False),
    Verdict.WRITE,
    resume=70,
    into_passive=(ROUTE,),
)


def knows(*rows: Checkpoint) -> Known:
    found = Known()
    for row in rows:
        found.learn(ROUTE, IDS, row)
    return found


ALL_ACROSS = knows(Checkpoint(99, 99, 1_000), Checkpoint(100, 100, 2_000, Origin.IDLE_WATERMARK))


def forecast_of(
    *decisions: Decision, of: Known = ALL_ACROSS, failing: frozenset[str] = frozenset({"north"})
) -> GroupForecast:
    return forecast("billing", decisions, failing, LIMITS, of, now_ms=10_000)


def test_what_is_read_again_is_what_lies_behind_but_for_what_is_not_consumed() -> None:
    found = forecast_of(DECISION)
    assert (found.replay_at_most, found.replay, found.lost_at_most) == (30, 20, 0)
    assert (found.is_ready, found.reasons) == (True, ())


def test_what_has_not_got_across_is_lost_with_its_source() -> None:
    behind = knows(
        Checkpoint(80, 80, 3_000, Origin.FENCE),
        Checkpoint(89, 89, 4_000),
        Checkpoint(97, 95, 5_000, Origin.FENCE),
    )
    found = forecast_of(DECISION, of=behind)
    assert found.lost_at_most == 7
    assert found.partitions[0].lost_s_at_most == 7.0
    assert found.reasons == ("loss",)
    assert forecast_of(DECISION, of=behind, failing=frozenset()).lost_at_most == 0


def test_what_nobody_knows_is_no_zero() -> None:
    assert forecast_of(DECISION, of=Known()).reasons == ("unknown_lag",)
    unknown = replace(DECISION, verdict=Verdict.UNBOUNDED, resume=None)
    found = forecast_of(DECISION, unknown)
    assert (found.replay, found.replay_at_most) == (None, None)
    assert found.reasons == ("unbounded",)


def test_without_a_hand_that_writes_it_goes_on_from_what_is_there() -> None:
    """As MirrorMaker's own sync may have written it; where nothing is, nobody is ready."""
    plan = GroupPlan("billing", Pair("north-all", "south-all"), (DECISION,))
    assert forecast_of(*plan.unwritten.decisions).reasons == ("not_written",)
    there = replace(DECISION, passive=replace(DECISION.passive, committed=65))
    found = forecast_of(*replace(plan, decisions=(there,)).unwritten.decisions)
    assert (found.replay_at_most, found.replay, found.reasons) == (35, 25, ())
    gone = replace(DECISION, passive=replace(DECISION.passive, log=Log(66, 100), committed=65))
    assert forecast_of(*replace(plan, decisions=(gone,)).unwritten.decisions).reasons == ("not_written",)
    set_back = replace(DECISION, passive=replace(DECISION.passive, committed=71))
    assert forecast_of(*replace(plan, decisions=(set_back,)).unwritten.decisions).reasons == ("backwards",)
    stays = replace(DECISION, verdict=Verdict.UNCHANGED)
    assert replace(plan, decisions=(stays,)).unwritten.decisions == (stays,)


@pytest.mark.parametrize("verdict", [one for one in Verdict if not one.is_fine])
def test_whatever_keeps_a_group_from_being_written_keeps_it_from_being_ready(verdict: Verdict) -> None:
    assert forecast_of(DECISION, replace(DECISION, verdict=verdict)).reasons[0] == verdict


def test_too_much_to_read_again_is_not_ready() -> None:
    assert forecast_of(replace(DECISION, resume=59)).reasons == ("replay",)


def test_a_group_that_has_committed_nothing_is_not_ready() -> None:
    assert forecast_of().reasons == ("nothing_committed",)


def test_a_mirrors_lag_is_bounded_by_what_was_seen() -> None:
    assert lag_of(known(), 0) is None
    assert lag_of(known([(9, 9)], watermarks=[(10, 10)]), 0) == Lag(0, 0)
    assert lag_of(known([(9, 9)], fences=[(15, 12)]), 5_000) == Lag(5, None)
    history = known([(9, 9)])
    history.append(Checkpoint(10, 10, 1_000, Origin.FENCE))
    history.append(Checkpoint(15, 12, 4_000, Origin.FENCE))
    assert lag_of(history, 5_000) == Lag(5, 4.0)
