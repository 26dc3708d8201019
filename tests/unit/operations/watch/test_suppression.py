"""Planned maintenance, and findings that are suppressed during it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fleetgauge_core.detection import FindingSubject, HealthCondition, HealthState
from fleetgauge_core.slo.corrections import Correction
from fleetgauge_operations.corrections.planned_maintenance import MaintenancePlan
from fleetgauge_operations.watch.suppression import SuppressedFindings
from tests.unit.operations.watch.sample_findings import BROKER, NOON, PATH, cleared, opened

HOUR = timedelta(hours=1)
CLUSTER = FindingSubject("orders", HealthCondition.CLUSTER_DOWN)
OTHER_CLUSTER = FindingSubject("payments", HealthCondition.CLUSTER_DOWN)
SEGMENTS = {"orders": frozenset({("region", "eu")}), "payments": frozenset({("region", "us")})}
MAINTENANCE = Correction("c1", "cluster", NOON, NOON + HOUR, "orders")


def build_plan(correction: Correction = MAINTENANCE, zone: str = "UTC") -> MaintenancePlan:
    return MaintenancePlan([correction], SEGMENTS, zone)


def build_broker_plan(broker_id: int) -> MaintenancePlan:
    return build_plan(replace(MAINTENANCE, scope="broker", broker_id=broker_id))


# Planned maintenance ----------------------------------------------------------------


@pytest.mark.parametrize(("after_s", "is_covered"), [(-1, False), (0, True), (3599, True), (3600, False)])
def test_the_maintenance_of_a_cluster_covers_its_brokers_from_its_start_to_its_end(
    after_s: int, is_covered: bool
) -> None:
    at = NOON + timedelta(seconds=after_s)
    assert build_plan().covers(CLUSTER, at) is is_covered
    assert build_plan().covers(BROKER, at) is is_covered
    assert not build_plan().covers(OTHER_CLUSTER, at)


def test_the_maintenance_of_a_broker_covers_that_broker_and_paths_to_it_alone() -> None:
    assert build_broker_plan(3).covers(BROKER, NOON)
    assert build_broker_plan(2).covers(PATH, NOON)
    assert not build_broker_plan(2).covers(BROKER, NOON)
    assert not build_broker_plan(3).covers(CLUSTER, NOON)


def test_the_maintenance_of_a_segment_covers_all_of_its_clusters() -> None:
    eu = build_plan(
        replace(MAINTENANCE, scope="segment", cluster_id=None, segment="region", segment_value="eu")
    )
    assert eu.covers(CLUSTER, NOON)
    assert not eu.covers(OTHER_CLUSTER, NOON)
    assert not eu.covers(FindingSubject("unknown", HealthCondition.CLUSTER_DOWN), NOON)


def test_recurring_maintenance_keeps_its_local_time() -> None:
    """Berlin changes to summer time on 29 March 2026, so that the same local hour is one earlier in UTC."""
    weekly = build_plan(replace(MAINTENANCE, recurs="weekly"), "Europe/Berlin")
    in_five_weeks = NOON + timedelta(weeks=5) - HOUR
    assert weekly.covers(CLUSTER, in_five_weeks)
    assert not weekly.covers(CLUSTER, in_five_weeks + HOUR)


# Suppressed findings ----------------------------------------------------------------

DOWN, RECOVERED = opened(), cleared()
CUT_OFF = opened(BROKER, HealthState.NETWORK_UNAVAILABLE, HealthState.BROKER_DOWN)


def test_a_finding_outside_maintenance_is_notified_at_once() -> None:
    suppressed = SuppressedFindings()
    assert suppressed.filter_finding(DOWN, is_in_maintenance=False) == (DOWN,)
    assert suppressed.filter_finding(RECOVERED, is_in_maintenance=True) == (RECOVERED,)
    suspect = opened(BROKER, HealthState.SUSPECT, HealthState.HEALTHY)
    assert suppressed.filter_finding(suspect, is_in_maintenance=False) == ()


def test_an_alert_that_clears_within_its_maintenance_is_never_notified() -> None:
    suppressed = SuppressedFindings()
    assert suppressed.filter_finding(DOWN, is_in_maintenance=True) == ()
    assert suppressed.release(lambda _: True) == ()
    assert suppressed.filter_finding(RECOVERED, is_in_maintenance=True) == ()
    assert suppressed.release(lambda _: False) == ()


def test_an_alert_that_outlasts_its_maintenance_is_notified_then_with_its_present_kind() -> None:
    suppressed = SuppressedFindings()
    suppressed.filter_finding(DOWN, is_in_maintenance=True)
    assert suppressed.filter_finding(CUT_OFF, is_in_maintenance=False) == ()
    assert suppressed.release(lambda subject: subject != BROKER) == (CUT_OFF,)
    assert suppressed.filter_finding(RECOVERED, is_in_maintenance=False) == (RECOVERED,)


def test_an_alert_that_an_earlier_watch_suppressed_stays_suppressed_until_its_maintenance_ends() -> None:
    assert SuppressedFindings([DOWN]).release(lambda _: False) == (DOWN,)
    assert SuppressedFindings([DOWN]).filter_finding(RECOVERED, is_in_maintenance=True) == ()


def test_an_alert_that_was_notified_before_its_maintenance_is_notified_until_it_clears() -> None:
    suppressed = SuppressedFindings()
    assert suppressed.filter_finding(DOWN, is_in_maintenance=False) == (DOWN,)
    assert suppressed.filter_finding(CUT_OFF, is_in_maintenance=True) == (CUT_OFF,)
    assert suppressed.filter_finding(RECOVERED, is_in_maintenance=True) == (RECOVERED,)
