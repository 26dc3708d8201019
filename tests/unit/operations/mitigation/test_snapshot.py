from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise

from fleetgauge_core.detection import (
    Finding,
    FindingSubject,
    HealthCondition,
    HealthState,
)
from fleetgauge_core.detection.finding import build_finding
from fleetgauge_operations.mitigation.snapshot import ActiveAlert, find_active_alerts, find_healthy_since
from tests.unit.operations.mitigation.simulated_cluster import NOON

BROKER = FindingSubject("orders", HealthCondition.BROKER_DOWN, 2)
SLOW = FindingSubject("orders", HealthCondition.DEGRADED, 2)


def of(subject: FindingSubject, *phases: HealthState) -> Sequence[Finding]:
    """Through these phases, a minute each from noon on."""
    pairs = pairwise(phases)
    return [
        build_finding(subject, before, after, NOON + timedelta(minutes=minute), {})
        for minute, (before, after) in enumerate(pairs)
    ]


def test_who_is_named_is_sick_since_it_was_first_named() -> None:
    story = of(
        BROKER,
        HealthState.HEALTHY,
        HealthState.SUSPECT,
        HealthState.BROKER_DOWN,
        HealthState.NETWORK_UNAVAILABLE,
    )
    since = NOON + timedelta(minutes=1)
    assert find_active_alerts(story, "orders") == (ActiveAlert(2, HealthState.NETWORK_UNAVAILABLE, since),)


def test_what_it_is_called_counts_from_when_it_is() -> None:
    """One that was cut off for long and is rebooted is down since then, and may be up again in a minute."""
    phases = (
        HealthState.HEALTHY,
        HealthState.BROKER_DOWN,
        HealthState.NETWORK_UNAVAILABLE,
        HealthState.BROKER_DOWN,
    )
    assert find_active_alerts(of(BROKER, *phases), "orders") == (
        ActiveAlert(2, HealthState.BROKER_DOWN, NOON, state_since=NOON + timedelta(minutes=2)),
    )
    again = (*phases, HealthState.NETWORK_UNAVAILABLE)
    assert find_active_alerts(of(BROKER, *again), "orders") == (
        ActiveAlert(2, HealthState.NETWORK_UNAVAILABLE, NOON, state_since=NOON + timedelta(minutes=2)),
    )


def test_who_is_cleared_is_not_and_one_broker_may_be_sick_in_two_ways() -> None:
    well_again = of(BROKER, HealthState.HEALTHY, HealthState.BROKER_DOWN, HealthState.HEALTHY)
    slow = of(SLOW, HealthState.HEALTHY, HealthState.DEGRADED)
    assert find_active_alerts([*slow, *well_again], "orders") == (ActiveAlert(2, HealthState.DEGRADED, NOON),)
    both = [*slow, *of(BROKER, HealthState.HEALTHY, HealthState.BROKER_DOWN)]
    assert [one.state for one in find_active_alerts(both, "orders")] == [
        HealthState.DEGRADED,
        HealthState.BROKER_DOWN,
    ]


def test_other_clusters_paths_and_vantages_are_left_out() -> None:
    others = [
        *of(
            FindingSubject("payments", HealthCondition.DEGRADED, 2), HealthState.HEALTHY, HealthState.DEGRADED
        ),
        *of(
            FindingSubject("orders", HealthCondition.PATH, vantage="a", target_broker_id=2),
            HealthState.HEALTHY,
            HealthState.PATH,
        ),
        *of(
            FindingSubject("orders", HealthCondition.VANTAGE_ILL, vantage="a"),
            HealthState.HEALTHY,
            HealthState.VANTAGE_ILL,
        ),
    ]
    assert find_active_alerts(others, "orders") == ()


def test_a_whole_cluster_is_nobody_by_name() -> None:
    down = of(
        FindingSubject("orders", HealthCondition.CLUSTER_DOWN), HealthState.HEALTHY, HealthState.CLUSTER_DOWN
    )
    assert find_active_alerts(down, "orders") == (ActiveAlert(None, HealthState.CLUSTER_DOWN, NOON),)


def test_a_broker_is_well_since_the_last_of_its_findings_ended() -> None:
    down = of(BROKER, HealthState.HEALTHY, HealthState.SUSPECT, HealthState.BROKER_DOWN, HealthState.HEALTHY)
    assert find_healthy_since(down, "orders") == {2: NOON + timedelta(minutes=2)}
    assert find_healthy_since(down, "payments") == {}
    slow = of(SLOW, HealthState.HEALTHY, HealthState.DEGRADED)
    assert find_healthy_since([*slow, *down], "orders") == {}
    doubted = of(BROKER, HealthState.HEALTHY, HealthState.SUSPECT, HealthState.HEALTHY)
    assert find_healthy_since(doubted, "orders") == {}
