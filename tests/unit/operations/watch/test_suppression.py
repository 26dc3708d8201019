from dataclasses import replace
from datetime import timedelta

import pytest

from fleetgauge_core.detection import FindingSubject, HealthCondition, HealthState
from fleetgauge_core.slo.corrections import Correction
from fleetgauge_operations.corrections.planned_maintenance import Plan
from fleetgauge_operations.watch.suppression import SuppressedFindings
from tests.unit.operations.watch.sample_findings import BROKER, NOON, PATH, cleared, named

HOUR = timedelta(hours=1)
CLUSTER = FindingSubject("orders", HealthCondition.CLUSTER_DOWN)
OTHER = FindingSubject("payments", HealthCondition.CLUSTER_DOWN)
SEGMENTS = {"orders": frozenset({("region", "eu")}), "payments": frozenset({("region", "us")})}


OUT = Correction("c1", "cluster", NOON, NOON + HOUR, "orders")


def plan(one: Correction = OUT, zone: str = "UTC") -> Plan:
    return Plan([one], SEGMENTS, zone)


def of_broker(broker_id: int) -> Plan:
    return plan(replace(OUT, scope="broker", broker_id=broker_id))


# What is planned --------------------------------------------------------------------


@pytest.mark.parametrize(("after", "covered"), [(-1, False), (0, True), (3599, True), (3600, False)])
def test_a_cluster_that_is_planned_to_be_out_is_so_from_the_first_moment_to_the_last(
    after: int, covered: bool
) -> None:
    at = NOON + timedelta(seconds=after)
    assert plan().covers(CLUSTER, at) is covered
    assert plan().covers(BROKER, at) is covered
    assert not plan().covers(OTHER, at)


def test_of_a_broker_it_is_that_broker_and_the_way_there_alone() -> None:
    assert of_broker(3).covers(BROKER, NOON)
    assert of_broker(2).covers(PATH, NOON)
    assert not of_broker(2).covers(BROKER, NOON)
    assert not of_broker(3).covers(CLUSTER, NOON)


def test_of_a_segment_it_is_every_cluster_there() -> None:
    eu = plan(replace(OUT, scope="segment", cluster_id=None, segment="region", segment_value="eu"))
    assert eu.covers(CLUSTER, NOON)
    assert not eu.covers(OTHER, NOON)
    assert not eu.covers(FindingSubject("of no file", HealthCondition.CLUSTER_DOWN), NOON)


def test_what_recurs_does_so_at_the_same_local_time() -> None:
    """Berlin's clocks go forward on 29 March 2026, so that the same local hour is one earlier in UTC."""
    weekly = plan(replace(OUT, recurs="weekly"), "Europe/Berlin")
    in_five_weeks = NOON + timedelta(weeks=5) - HOUR
    assert weekly.covers(CLUSTER, in_five_weeks)
    assert not weekly.covers(CLUSTER, in_five_weeks + HOUR)


# What waits -------------------------------------------------------------------------

DOWN, BACK = named(), cleared()


def test_what_is_not_planned_is_told_at_once() -> None:
    waiting = SuppressedFindings()
    assert waiting.told_of(DOWN, planned=False) == (DOWN,)
    assert waiting.told_of(BACK, planned=True) == (BACK,)
    assert waiting.told_of(named(BROKER, HealthState.SUSPECT, HealthState.HEALTHY), planned=False) == ()


def test_what_ends_within_its_maintenance_is_never_told() -> None:
    waiting = SuppressedFindings()
    assert waiting.told_of(DOWN, planned=True) == ()
    assert waiting.over(lambda _: True) == ()
    assert waiting.told_of(BACK, planned=True) == ()
    assert waiting.over(lambda _: False) == ()


def test_what_outlasts_its_maintenance_is_told_then_as_what_it_is_called_by_then() -> None:
    waiting = SuppressedFindings()
    waiting.told_of(DOWN, planned=True)
    cut_off = named(BROKER, HealthState.NETWORK_UNAVAILABLE, HealthState.BROKER_DOWN)
    assert waiting.told_of(cut_off, planned=False) == ()
    assert waiting.over(lambda subject: subject != BROKER) == (cut_off,)
    assert waiting.told_of(BACK, planned=False) == (BACK,)


def test_what_an_earlier_watch_let_wait_is_told_when_its_maintenance_is_over_and_its_end_else_never() -> None:
    assert SuppressedFindings([DOWN]).over(lambda _: False) == (DOWN,)
    assert SuppressedFindings([DOWN]).told_of(BACK, planned=True) == ()


def test_what_was_told_before_its_maintenance_is_told_on_to_its_end() -> None:
    waiting = SuppressedFindings()
    cut_off = named(BROKER, HealthState.NETWORK_UNAVAILABLE, HealthState.BROKER_DOWN)
    assert waiting.told_of(DOWN, planned=False) == (DOWN,)
    assert waiting.told_of(cut_off, planned=True) == (cut_off,)
    assert waiting.told_of(BACK, planned=True) == (BACK,)
