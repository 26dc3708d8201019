"""What changes may have caused."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fleetgauge_core.slo.causes import CauseInterval, HealthTransition, find_cause
from fleetgauge_core.slo.change_causes import RecordedChange, build_cause_intervals

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SEGMENTS = {
    "orders": frozenset({("fleet", ""), ("region", "eu")}),
    "payments": frozenset({("fleet", ""), ("region", "us")}),
}


def at(minute: float) -> datetime:
    return NOON + timedelta(minutes=minute)


def change(kind: str, first: float, last: float | None, broker_id: int | None = None) -> RecordedChange:
    ends = None if last is None else at(last)
    change_id = f"{kind} {first}"
    return RecordedChange(
        change_id, "orders", broker_id, None, None, kind, "happened", ends or at(first), at(first), ends, "{}"
    )


def restart(first: float, last: float, broker_id: int = 2, orderly: bool | None = True) -> RecordedChange:
    evidence = json.dumps({"orderly": orderly})
    return replace(change("broker_restarted", first, last, broker_id), evidence=evidence)


def finding(kind: str, first: float, last: float, broker_id: int | None = 2) -> list[HealthTransition]:
    name = f"{kind} {broker_id}"
    return [
        HealthTransition("orders", broker_id, name, at(first), kind),
        HealthTransition("orders", broker_id, name, at(last), "HEALTHY"),
    ]


def cause(
    minute: int,
    *changes: RecordedChange,
    findings: tuple[HealthTransition, ...] = (),
    homes: tuple[int, ...] = (2,),
) -> str:
    return find_cause(at(minute), homes, False, build_cause_intervals(findings, changes, SEGMENTS))


def test_an_orderly_restart_is_a_roll_from_when_leaders_are_handed_over_until_they_are_back() -> None:
    (interval,) = build_cause_intervals((), [restart(5, 6)])
    assert interval == CauseInterval("orders", "roll", at(4.75), at(7), after_findings=True)


@pytest.mark.parametrize("orderly", [False, None])
def test_a_crash_is_no_roll(orderly: bool | None) -> None:
    assert build_cause_intervals((), [restart(5, 6, orderly=orderly)]) == []
    down = (*finding("BROKER_DOWN", 5, 6),)
    assert cause(5, restart(5, 6, orderly=orderly), findings=down) == "BROKER_DOWN"


def test_what_a_roll_makes_of_its_broker_is_the_rolls() -> None:
    assert cause(5, restart(5, 6), findings=(*finding("BROKER_DOWN", 5.1, 6.5),)) == "roll"
    assert cause(6, restart(5, 6), findings=(*finding("DEGRADED", 6.4, 9),)) == "roll"


def test_a_fault_of_another_broker_or_of_the_cluster_stays_that() -> None:
    for broker_id in (3, None):
        down = (*finding("BROKER_DOWN", 5.1, 6.5, broker_id),)
        assert cause(5, restart(5, 6), findings=down) == "BROKER_DOWN"


def test_a_restart_that_ends_a_fault_is_its_remedy_and_no_roll() -> None:
    stalled = (*finding("STORAGE_STALLED", 2, 6.5),)
    assert {cause(minute, restart(5, 6), findings=stalled) for minute in (2, 4, 5, 6)} == {"STORAGE_STALLED"}


def test_an_outage_that_was_noticed_before_the_broker_was_told_to_stop_is_no_product_of_its_restart() -> None:
    # Its connections end at 5; an operator acts within seconds.
    assert cause(5, restart(5, 6), findings=(*finding("BROKER_DOWN", 4.8, 6.5),)) == "BROKER_DOWN"
    # While it hands over what it leads, it may be slow.
    assert cause(5, restart(5, 6), findings=(*finding("DEGRADED", 4.8, 6.5),)) == "roll"


def test_a_report_that_was_withdrawn_explains_nothing() -> None:
    deploy = change("deploy", 2, 4)
    withdrawn = replace(deploy, phase="cancelled", at=at(9))
    assert (cause(3, deploy), cause(3, deploy, withdrawn)) == ("change", "unknown")
    # A reassignment that was cancelled has taken place until then.
    assert cause(3, replace(change("reassignment", 2, 4), phase="cancelled")) == "reassignment"


def test_a_restart_after_a_fault_was_resolved_is_a_roll() -> None:
    assert cause(9, restart(9, 9.5), findings=(*finding("BROKER_DOWN", 2, 4),)) == "roll"


def test_what_an_ill_vantage_sees_is_not_the_rolls() -> None:
    assert cause(9, findings=(*finding("VANTAGE_ILL", 8, 12, None),)) == "vantage"
    assert cause(8, restart(5, 6), findings=(*finding("VANTAGE_ILL", 6.5, 12),)) == "vantage"


@pytest.mark.parametrize("kind", ["reassignment", "throttle"])
def test_a_change_that_lasts_explains_until_a_minute_after_its_end_what_no_finding_explains(
    kind: str,
) -> None:
    lasting = change(kind, 2, 8)
    assert [cause(minute, lasting) for minute in (1, 2, 8, 9)] == ["unknown", kind, kind, "unknown"]
    assert cause(5, lasting, findings=(*finding("DEGRADED", 5, 6),)) == "DEGRADED"
    assert cause(5, lasting, restart(5, 6)) == "roll"


def test_of_one_change_the_latest_record_counts() -> None:
    begun, ended = change("throttle", 2, None), replace(change("throttle", 2, 4), at=at(4))
    assert cause(9, begun) == "throttle"
    for order in ((begun, ended), (ended, begun)):
        assert cause(9, *order) == "unknown"


def test_a_change_of_which_nothing_is_heard_explains_until_the_end_of_the_next_day() -> None:
    (interval,) = build_cause_intervals((), [change("throttle", 0, None)])
    assert interval.ends == datetime(2026, 3, 4, 0, 1, tzinfo=UTC)


def test_a_reported_change_explains_what_nothing_else_does_on_its_subject() -> None:
    deploy = change("deploy", 2, 4)
    assert [cause(minute, deploy) for minute in (1, 2, 13, 14)] == ["unknown", "change", "change", "unknown"]
    assert cause(3, deploy, change("throttle", 2, 8)) == "throttle"
    assert cause(3, deploy, findings=(*finding("VANTAGE_ILL", 2, 8, None),)) == "vantage"
    of_broker = replace(deploy, broker_id=2)
    assert (cause(3, of_broker), cause(3, of_broker, homes=(1, 2))) == ("change", "unknown")


@pytest.mark.parametrize(
    ("segment", "clusters"),
    [
        (("fleet", ""), {"orders", "payments"}),
        (("region", "eu"), {"orders"}),
        (("region", "mars"), set()),
        (("fleet", "no"), set()),
    ],
)
def test_a_change_of_a_segment_concerns_its_clusters(segment: tuple[str, str], clusters: set[str]) -> None:
    name, value = segment
    reported = replace(change("ticket", 2, 4), cluster_id=None, segment=name, segment_value=value)
    assert {interval.cluster_id for interval in build_cause_intervals((), [reported], SEGMENTS)} == clusters


def test_other_changes_explain_nothing() -> None:
    assert (
        build_cause_intervals((), [change("setting_changed", 2, 4), change("leadership_moved", 2, 4)]) == []
    )


@pytest.mark.parametrize("moment", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)])
def test_a_change_at_the_end_of_the_calendar_explains_no_more_than_that(moment: datetime) -> None:
    times = {"at": moment, "starts": moment, "ends": None}
    changes = [replace(change(kind, 0, 0), **times) for kind in ("throttle", "deploy")]
    changes.append(replace(restart(0, 0), **times))
    assert len(build_cause_intervals((), changes, SEGMENTS)) == 3
