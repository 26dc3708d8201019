from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise

from fleetgauge_core.detection import (
    Chain,
    Finding,
    Phase,
    Subject,
)
from fleetgauge_core.detection.finding import finding
from fleetgauge_operations.mitigation.situation import Sick, sick_now, well_since
from tests.unit.operations.mitigation.world import NOON

BROKER = Subject("orders", Chain.BROKER_DOWN, 2)
SLOW = Subject("orders", Chain.DEGRADED, 2)


def of(subject: Subject, *phases: Phase) -> Sequence[Finding]:
    """Through these phases, a minute each from noon on."""
    pairs = pairwise(phases)
    return [
        finding(subject, before, after, NOON + timedelta(minutes=minute), {})
        for minute, (before, after) in enumerate(pairs)
    ]


def test_who_is_named_is_sick_since_it_was_first_named() -> None:
    story = of(BROKER, Phase.HEALTHY, Phase.SUSPECT, Phase.BROKER_DOWN, Phase.NETWORK_UNAVAILABLE)
    since = NOON + timedelta(minutes=1)
    assert sick_now(story, "orders") == (Sick(2, Phase.NETWORK_UNAVAILABLE, since),)


def test_what_it_is_called_counts_from_when_it_is() -> None:
    """One that was cut off for long and is rebooted is down since then, and may be up again in a minute."""
    phases = (Phase.HEALTHY, Phase.BROKER_DOWN, Phase.NETWORK_UNAVAILABLE, Phase.BROKER_DOWN)
    assert sick_now(of(BROKER, *phases), "orders") == (
        Sick(2, Phase.BROKER_DOWN, NOON, called_since=NOON + timedelta(minutes=2)),
    )
    again = (*phases, Phase.NETWORK_UNAVAILABLE)
    assert sick_now(of(BROKER, *again), "orders") == (
        Sick(2, Phase.NETWORK_UNAVAILABLE, NOON, called_since=NOON + timedelta(minutes=2)),
    )


def test_who_is_cleared_is_not_and_one_broker_may_be_sick_in_two_ways() -> None:
    well_again = of(BROKER, Phase.HEALTHY, Phase.BROKER_DOWN, Phase.HEALTHY)
    slow = of(SLOW, Phase.HEALTHY, Phase.DEGRADED)
    assert sick_now([*slow, *well_again], "orders") == (Sick(2, Phase.DEGRADED, NOON),)
    both = [*slow, *of(BROKER, Phase.HEALTHY, Phase.BROKER_DOWN)]
    assert [one.phase for one in sick_now(both, "orders")] == [Phase.DEGRADED, Phase.BROKER_DOWN]


def test_other_clusters_paths_and_vantages_are_left_out() -> None:
    others = [
        *of(Subject("payments", Chain.DEGRADED, 2), Phase.HEALTHY, Phase.DEGRADED),
        *of(Subject("orders", Chain.PATH, vantage="a", towards=2), Phase.HEALTHY, Phase.PATH),
        *of(Subject("orders", Chain.VANTAGE_ILL, vantage="a"), Phase.HEALTHY, Phase.VANTAGE_ILL),
    ]
    assert sick_now(others, "orders") == ()


def test_a_whole_cluster_is_nobody_by_name() -> None:
    down = of(Subject("orders", Chain.CLUSTER_DOWN), Phase.HEALTHY, Phase.CLUSTER_DOWN)
    assert sick_now(down, "orders") == (Sick(None, Phase.CLUSTER_DOWN, NOON),)


def test_a_broker_is_well_since_the_last_of_its_findings_ended() -> None:
    down = of(BROKER, Phase.HEALTHY, Phase.SUSPECT, Phase.BROKER_DOWN, Phase.HEALTHY)
    assert well_since(down, "orders") == {2: NOON + timedelta(minutes=2)}
    assert well_since(down, "payments") == {}
    slow = of(SLOW, Phase.HEALTHY, Phase.DEGRADED)
    assert well_since([*slow, *down], "orders") == {}
    doubted = of(BROKER, Phase.HEALTHY, Phase.SUSPECT, Phase.HEALTHY)
    assert well_since(doubted, "orders") == {}
