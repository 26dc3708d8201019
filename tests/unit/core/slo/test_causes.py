from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from fleetgauge_core.slo.causes import (
    PRECEDENCE,
    Event,
    Reason,
    by_segment,
    cause_of,
    findings,
)

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def at(minute: float) -> datetime:
    return NOON + timedelta(minutes=minute)


def reason(cause: str, first: float = 0, last: float | None = 10, home: int | None = None) -> Reason:
    return Reason("orders", cause, at(first), None if last is None else at(last), home)


def event(minute: float, to_state: str, broker_id: int | None = 2, fingerprint: str = "f") -> Event:
    return Event("orders", broker_id, fingerprint, at(minute), to_state)


@pytest.mark.parametrize(("one", "other"), list(pairwise(PRECEDENCE[:-1])))
def test_of_two_that_hold_the_earlier_in_the_order_is_the_cause(one: str, other: str) -> None:
    assert cause_of(at(5), [1], False, [reason(other), reason(one)]) == one


def test_a_minute_that_nothing_explains_is_unknown_unless_a_vantage_was_late() -> None:
    assert cause_of(at(5), [1], False, []) == "unknown"
    assert cause_of(at(5), [1], True, []) == "vantage"
    assert cause_of(at(5), [1], True, [reason("throttle")]) == "throttle"


def test_what_touches_any_part_of_the_minute_holds() -> None:
    brief = reason("BROKER_DOWN", 5.5, 5.6)
    assert cause_of(at(5), [1], False, [brief]) == "BROKER_DOWN"
    assert cause_of(at(4), [1], False, [brief]) == cause_of(at(6), [1], False, [brief]) == "unknown"
    assert cause_of(at(5), [1], False, [reason("roll", 6, None)]) == "unknown"
    assert cause_of(at(99), [1], False, [reason("roll", 6, None)]) == "roll"
    assert cause_of(at(10), [1], False, [reason("roll", 0, 10)]) == "unknown"


def test_a_brokers_maintenance_explains_only_what_no_other_broker_made_bad() -> None:
    of_two = reason("maintenance", home=2)
    assert cause_of(at(5), [2], False, [of_two]) == "maintenance"
    assert cause_of(at(5), [1, 2], False, [of_two]) == "unknown"
    assert cause_of(at(5), [1, 2], False, [of_two, reason("maintenance", home=1)]) == "maintenance"
    assert cause_of(at(5), [1, 2], False, [of_two, reason("roll")]) == "roll"
    assert cause_of(at(5), [], False, [of_two]) == "unknown"


def test_an_episode_lasts_until_the_next_event_of_its_finding() -> None:
    events = [
        event(4, "HEALTHY"),
        event(1, "SUSPECT"),
        event(2, "BROKER_DOWN"),
        event(3, "BROKER_DOWN", broker_id=3, fingerprint="g"),
        event(7, "PATH"),
    ]
    assert set(findings(events)) == {
        reason("BROKER_DOWN", 2, 4),
        reason("BROKER_DOWN", 3, None),
        reason("vantage", 7, None),
    }


def test_causes_add_up_over_the_clusters_of_each_segment() -> None:
    weeks = [("a", {"roll": 3, "unknown": 1}), ("b", {"roll": 2}), ("c", {})]
    segments = [("a", "fleet", ""), ("b", "fleet", ""), ("c", "fleet", ""), ("a", "region", "eu")]
    assert by_segment(weeks, segments) == {
        ("fleet", "", "roll"): (5, 2),
        ("fleet", "", "unknown"): (1, 1),
        ("region", "eu", "roll"): (3, 1),
        ("region", "eu", "unknown"): (1, 1),
    }
