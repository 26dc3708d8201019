"""The cause of each bad minute."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from fleetgauge_core.detection import HealthState
from fleetgauge_core.slo.causes import (
    PRECEDENCE,
    VANTAGE,
    CauseInterval,
    HealthTransition,
    build_cause_intervals,
    count_by_segment,
    find_cause,
)

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def at(minute: float) -> datetime:
    return NOON + timedelta(minutes=minute)


def interval(cause: str, first: float = 0, last: float | None = 10, home: int | None = None) -> CauseInterval:
    return CauseInterval("orders", cause, at(first), None if last is None else at(last), home)


def transition(
    minute: float, to_state: str, broker_id: int | None = 2, fingerprint: str = "f"
) -> HealthTransition:
    return HealthTransition("orders", broker_id, fingerprint, at(minute), to_state)


@pytest.mark.parametrize(("first", "second"), list(pairwise(PRECEDENCE[:-1])))
def test_of_broker_2_active_intervals_the_one_of_higher_precedence_is_the_cause(
    first: str, second: str
) -> None:
    assert find_cause(at(5), [1], False, [interval(second), interval(first)]) == first


def test_a_minute_without_an_active_interval_is_unknown_unless_a_vantage_was_late() -> None:
    assert find_cause(at(5), [1], False, []) == "unknown"
    assert find_cause(at(5), [1], True, []) == "vantage"
    assert find_cause(at(5), [1], True, [interval("throttle")]) == "throttle"


def test_an_interval_that_overlaps_part_of_a_minute_is_active_in_it() -> None:
    brief = interval("BROKER_DOWN", 5.5, 5.6)
    assert find_cause(at(5), [1], False, [brief]) == "BROKER_DOWN"
    assert find_cause(at(4), [1], False, [brief]) == find_cause(at(6), [1], False, [brief]) == "unknown"
    assert find_cause(at(5), [1], False, [interval("roll", 6, None)]) == "unknown"
    assert find_cause(at(99), [1], False, [interval("roll", 6, None)]) == "roll"
    assert find_cause(at(10), [1], False, [interval("roll", 0, 10)]) == "unknown"


def test_maintenance_of_a_broker_explains_only_minutes_that_no_other_broker_made_bad() -> None:
    of_broker_2 = interval("maintenance", home=2)
    assert find_cause(at(5), [2], False, [of_broker_2]) == "maintenance"
    assert find_cause(at(5), [1, 2], False, [of_broker_2]) == "unknown"
    assert find_cause(at(5), [1, 2], False, [of_broker_2, interval("maintenance", home=1)]) == "maintenance"
    assert find_cause(at(5), [1, 2], False, [of_broker_2, interval("roll")]) == "roll"
    assert find_cause(at(5), [], False, [of_broker_2]) == "unknown"


def test_a_finding_lasts_until_the_next_transition_with_its_fingerprint() -> None:
    transitions = [
        transition(4, "HEALTHY"),
        transition(1, "SUSPECT"),
        transition(2, "BROKER_DOWN"),
        transition(3, "BROKER_DOWN", broker_id=3, fingerprint="g"),
        transition(7, "PATH"),
    ]
    assert set(build_cause_intervals(transitions)) == {
        interval("BROKER_DOWN", 2, 4),
        interval("BROKER_DOWN", 3, None),
        interval("vantage", 7, None),
    }


def test_bad_minutes_are_summed_over_the_clusters_of_each_segment() -> None:
    weeks = [("a", {"roll": 3, "unknown": 1}), ("b", {"roll": 2}), ("c", {})]
    segments = [("a", "fleet", ""), ("b", "fleet", ""), ("c", "fleet", ""), ("a", "region", "eu")]
    assert count_by_segment(weeks, segments) == {
        ("fleet", "", "roll"): (5, 2),
        ("fleet", "", "unknown"): (1, 1),
        ("region", "eu", "roll"): (3, 1),
        ("region", "eu", "unknown"): (1, 1),
    }


#: Alerts that explain no bad minute: of missing data, and of budgets that bad minutes burn.
WITHOUT_CAUSE = {state for state in HealthState if state is HealthState.NO_DATA or "BURN" in state.value}


@pytest.mark.parametrize("state", [state for state in HealthState if state.is_alert])
def test_every_kind_of_alert_is_a_cause_unless_it_explains_no_minute(state: HealthState) -> None:
    transition = HealthTransition("orders", 1, "f", at(0), state.value)
    causes = [interval.cause for interval in build_cause_intervals([transition])]
    expected = VANTAGE if state in (HealthState.PATH, HealthState.VANTAGE_ILL) else state.value
    assert causes == ([] if state in WITHOUT_CAUSE else [expected])
