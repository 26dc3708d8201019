"""The cause of each bad minute."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from fleetgauge_core.detection import HealthState
from fleetgauge_core.slo.causes import (
    PRECEDENCE,
    VANTAGE,
    CauseInterval,
    HealthTransition,
    build_finding_interval,
    count_by_segment,
    find_cause,
    list_findings,
)

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def at(minute: float) -> datetime:
    return NOON + timedelta(minutes=minute)


def interval(cause: str, first: float = 0, last: float | None = 10, home: int | None = None) -> CauseInterval:
    return CauseInterval("orders", cause, at(first), None if last is None else at(last), home)


def interval_of_rank(rank: int) -> CauseInterval:
    is_second = PRECEDENCE[rank] in PRECEDENCE[:rank]
    return replace(interval(PRECEDENCE[rank]), after_findings=is_second)


def transition(
    minute: float, to_state: str, broker_id: int | None = 2, fingerprint: str = "f"
) -> HealthTransition:
    return HealthTransition("orders", broker_id, fingerprint, at(minute), to_state)


@pytest.mark.parametrize(("first", "second"), list(pairwise(range(len(PRECEDENCE) - 1))))
def test_of_two_active_intervals_the_one_of_higher_precedence_is_the_cause(first: int, second: int) -> None:
    intervals = [interval_of_rank(second), interval_of_rank(first)]
    assert find_cause(at(5), [1], False, intervals) == PRECEDENCE[first]


def test_a_roll_precedes_what_it_produces_and_comes_after_the_findings_of_others() -> None:
    effects, fault = replace(interval("roll"), after_findings=True), interval("DEGRADED")
    assert find_cause(at(5), [1], False, [effects, fault]) == "DEGRADED"
    assert find_cause(at(5), [1], False, [interval("roll"), fault]) == "roll"
    assert find_cause(at(5), [1], False, [effects, interval("reassignment")]) == "roll"


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
    assert {(finding.kind, finding.starts, finding.ends) for finding in list_findings(transitions)} == {
        ("BROKER_DOWN", at(2), at(4)),
        ("BROKER_DOWN", at(3), None),
        ("PATH", at(7), None),
    }


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        # Named within ten seconds; clients have recovered a minute after its end.
        ("BROKER_DOWN", interval("BROKER_DOWN", 2 - 10 / 60, 5)),
        # Named after up to 75 s; it is only resolved when the broker is as fast as before.
        ("DEGRADED", interval("DEGRADED", 2 - 75 / 60, 4)),
        ("VANTAGE_ILL", interval("vantage", 2, 4)),
    ],
)
def test_a_finding_explains_the_time_until_it_was_noticed_and_until_clients_have_recovered(
    kind: str, expected: CauseInterval
) -> None:
    (finding,) = list_findings([transition(2, kind), transition(4, "HEALTHY")])
    assert build_finding_interval(finding) == expected


@pytest.mark.parametrize("moment", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)])
def test_a_finding_at_the_end_of_the_calendar_explains_no_more_than_that(moment: datetime) -> None:
    (finding,) = list_findings([HealthTransition("orders", 2, "f", moment, "DEGRADED")])
    assert build_finding_interval(finding).starts <= moment


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
    findings = list_findings([transition(0, state.value)])
    causes = [build_finding_interval(finding).cause for finding in findings]
    expected = VANTAGE if state in (HealthState.PATH, HealthState.VANTAGE_ILL) else state.value
    assert causes == ([] if state in WITHOUT_CAUSE else [expected])
