"""Active alerts, and times since when brokers are healthy, from the findings of the watch."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise

from fleetgauge_core.detection import (
    Finding,
    FindingSubject,
    HealthCondition,
    HealthState,
)
from fleetgauge_core.detection.finding import build_finding, mark_as_unwatched
from fleetgauge_operations.actions.plan.snapshot import ActiveAlert, find_active_alerts, find_healthy_since
from tests.unit.operations.mitigation.simulated_cluster import NOON

AVAILABILITY = FindingSubject("orders", HealthCondition.BROKER_DOWN, 2)
LATENCY = FindingSubject("orders", HealthCondition.DEGRADED, 2)
MINUTE = timedelta(minutes=1)


def build_findings(subject: FindingSubject, *states: HealthState) -> Sequence[Finding]:
    """Return the findings of a subject that has these states, changing every minute from noon on."""
    return [
        build_finding(subject, before, after, NOON + number * MINUTE, {})
        for number, (before, after) in enumerate(pairwise(states))
    ]


def test_an_alert_is_active_since_its_first_state_that_is_an_alert() -> None:
    findings = build_findings(
        AVAILABILITY,
        HealthState.HEALTHY,
        HealthState.SUSPECT,
        HealthState.BROKER_DOWN,
        HealthState.NETWORK_UNAVAILABLE,
    )
    assert find_active_alerts(findings, "orders") == (
        ActiveAlert(2, HealthState.NETWORK_UNAVAILABLE, NOON + MINUTE),
    )


def test_an_alert_that_returns_to_broker_down_has_that_state_since_then() -> None:
    """A broker that was cut off and is then rebooted is down since the reboot, and may return in a minute."""
    states = (
        HealthState.HEALTHY,
        HealthState.BROKER_DOWN,
        HealthState.NETWORK_UNAVAILABLE,
        HealthState.BROKER_DOWN,
    )
    assert find_active_alerts(build_findings(AVAILABILITY, *states), "orders") == (
        ActiveAlert(2, HealthState.BROKER_DOWN, NOON, state_since=NOON + 2 * MINUTE),
    )
    states = (*states, HealthState.NETWORK_UNAVAILABLE)
    assert find_active_alerts(build_findings(AVAILABILITY, *states), "orders") == (
        ActiveAlert(2, HealthState.NETWORK_UNAVAILABLE, NOON, state_since=NOON + 2 * MINUTE),
    )


def test_a_resolved_alert_is_not_active_and_a_broker_may_have_two_alerts() -> None:
    slow = build_findings(LATENCY, HealthState.HEALTHY, HealthState.DEGRADED)
    down = build_findings(AVAILABILITY, HealthState.HEALTHY, HealthState.BROKER_DOWN)
    recovered = build_findings(
        AVAILABILITY, HealthState.HEALTHY, HealthState.BROKER_DOWN, HealthState.HEALTHY
    )
    assert find_active_alerts([*slow, *recovered], "orders") == (ActiveAlert(2, HealthState.DEGRADED, NOON),)
    assert [alert.state for alert in find_active_alerts([*slow, *down], "orders")] == [
        HealthState.DEGRADED,
        HealthState.BROKER_DOWN,
    ]


def test_other_clusters_paths_and_vantages_are_ignored() -> None:
    other_cluster = FindingSubject("payments", HealthCondition.DEGRADED, 2)
    path = FindingSubject("orders", HealthCondition.PATH, vantage="a", target_broker_id=2)
    vantage = FindingSubject("orders", HealthCondition.VANTAGE_ILL, vantage="a")
    findings = [
        *build_findings(other_cluster, HealthState.HEALTHY, HealthState.DEGRADED),
        *build_findings(path, HealthState.HEALTHY, HealthState.PATH),
        *build_findings(vantage, HealthState.HEALTHY, HealthState.VANTAGE_ILL),
    ]
    assert find_active_alerts(findings, "orders") == ()


def test_an_alert_of_a_whole_cluster_has_no_broker_id() -> None:
    cluster = FindingSubject("orders", HealthCondition.CLUSTER_DOWN)
    findings = build_findings(cluster, HealthState.HEALTHY, HealthState.CLUSTER_DOWN)
    assert find_active_alerts(findings, "orders") == (ActiveAlert(None, HealthState.CLUSTER_DOWN, NOON),)


def test_a_broker_is_healthy_since_its_last_alert_ended() -> None:
    recovered = build_findings(
        AVAILABILITY,
        HealthState.HEALTHY,
        HealthState.SUSPECT,
        HealthState.BROKER_DOWN,
        HealthState.HEALTHY,
    )
    assert find_healthy_since(recovered, "orders") == {2: NOON + 2 * MINUTE}
    assert find_healthy_since(recovered, "payments") == {}
    slow = build_findings(LATENCY, HealthState.HEALTHY, HealthState.DEGRADED)
    assert find_healthy_since([*slow, *recovered], "orders") == {}
    suspected = build_findings(AVAILABILITY, HealthState.HEALTHY, HealthState.SUSPECT, HealthState.HEALTHY)
    assert find_healthy_since(suspected, "orders") == {}


def test_a_broker_whose_cluster_is_no_longer_watched_is_not_healthy() -> None:
    opened, cleared, again, removed = build_findings(
        LATENCY,
        HealthState.HEALTHY,
        HealthState.DEGRADED,
        HealthState.HEALTHY,
        HealthState.DEGRADED,
        HealthState.HEALTHY,
    )
    assert find_healthy_since([opened, cleared], "orders") == {2: NOON + MINUTE}
    assert find_healthy_since([opened, cleared, again, mark_as_unwatched(removed)], "orders") == {}
